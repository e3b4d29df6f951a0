//! Interrupts before, at and after the start of a turn.

use std::time::Duration;

use claude_agent_kit::{ErrorKind, Include, Options, Session, Turn, TurnInterruption};
use serde_json::{Value, json};

use crate::fake_cli::{self, FakeCli};
use crate::helpers::{
    ENDLESS_ROUNDS, endless_script, interrupt_each_turn, interrupt_session_after_each_send,
    is_delta, on_both, start, turn,
};
use crate::support::{hello, in_time, on_all, run};

#[test]
fn turn_can_be_interrupted_right_after_its_message_was_sent() {
    on_all(endless_script, async |harness| {
        let session = start(harness.options()).await;
        interrupt_each_turn(&session, ENDLESS_ROUNDS).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupt_reports_ended_turns_and_queued_messages() {
    on_all(endless_script, async |harness| {
        let session = start(harness.options()).await;
        interrupt_session_after_each_send(&session, ENDLESS_ROUNDS).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupting_a_queued_message_withdraws_it_and_keeps_the_running_turn() {
    on_both(endless_script, async |harness| {
        let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut first = session.send("first").await.unwrap();
        while !is_delta(&in_time(first.next()).await.unwrap().unwrap()) {}
        let second = session.send("second").await.unwrap();
        assert_eq!(in_time(second.interrupt()).await.unwrap(), TurnInterruption::Withdrawn);
        assert_eq!(in_time(second.interrupt()).await.unwrap(), TurnInterruption::Withdrawn);
        let error = in_time(second.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnCancelled);
        harness.api().release_held();
        let outcome = in_time(first.finish()).await.unwrap();
        assert!(!outcome.result.is_error());
        assert_eq!(outcome.text, "A long answer.");
        session.stop().await.unwrap();
    });
}

#[test]
fn a_turn_that_takes_too_long_is_interrupted_and_has_its_outcome() {
    on_both(endless_script, async |harness| {
        let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut first = session.send("first").await.unwrap();
        while !is_delta(&in_time(first.next()).await.unwrap().unwrap()) {}
        let queued = session.send("second").await.unwrap();
        let error = in_time(queued.finish_within(Duration::ZERO)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnCancelled, "{error}");
        let outcome = in_time(first.finish_within(Duration::ZERO)).await.unwrap();
        assert_eq!(outcome.into_result().unwrap_err().kind(), ErrorKind::Interrupted);
        let last = session.send("again").await.unwrap();
        let outcome = in_time(last.finish_within(Duration::from_secs(3600))).await.unwrap();
        assert_eq!(outcome.into_result().unwrap().text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn a_turn_that_ignores_its_interrupt_is_not_waited_for_without_limit() {
    fake_cli::on_paused_clock(async {
        let (_session, mut cli, turn, user) = session_with_message().await;
        let finished = tokio::spawn(turn.finish_within(Duration::from_secs(1)));
        reject_withdrawal(&mut cli, &user).await;
        cli.send_lifecycle(&user, "started").await;
        let interrupt = cli.expect_request("interrupt").await;
        cli.respond(&interrupt, json!({"still_queued": []})).await;
        let error = finished.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlTimeout, "{error}");
    });
}

#[test]
fn ended_turn_cannot_be_interrupted() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let mut turn = session.send("hello").await.unwrap();
        while in_time(turn.next()).await.is_some() {}
        assert_eq!(in_time(turn.interrupt()).await.unwrap(), TurnInterruption::AlreadyEnded);
        let idle = in_time(session.interrupt()).await.unwrap();
        assert!(idle.turns.is_empty() && idle.still_queued.is_empty());
        session.stop().await.unwrap();
        assert_eq!(in_time(turn.interrupt()).await.unwrap(), TurnInterruption::AlreadyEnded);
    });
}

/// Returns a session with its fake CLI, to which one message was sent.
async fn session_with_message() -> (Session, FakeCli, Turn, Value) {
    let (session, mut cli) = fake_cli::connect(Options::new()).await;
    let turn = session.send("hello").await.unwrap();
    let user = cli.read_line().await;
    (session, cli, turn, user)
}

/// Responds that the message cannot be withdrawn.
async fn reject_withdrawal(cli: &mut FakeCli, user: &Value) {
    let cancel = cli.expect_request("cancel_async_message").await;
    assert_eq!(cancel["request"]["message_uuid"], user["uuid"]);
    cli.respond(&cancel, json!({"cancelled": false})).await;
}

/// An interrupt would end the preceding turn.
#[test]
fn queued_message_is_withdrawn_and_not_interrupted() {
    run(async {
        // The CLI does not know the message yet, and drops it when it arrives.
        let (_session, mut cli, turn, user) = session_with_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            reject_withdrawal(&mut cli, &user).await;
            cli.send_lifecycle(&user, "queued").await;
            cli.send_lifecycle(&user, "cancelled").await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::Withdrawn);
        let error = in_time(turn.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnCancelled);
        // The message arrives in the queue between the two requests.
        let (_session, mut cli, turn, user) = session_with_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            reject_withdrawal(&mut cli, &user).await;
            let cancel = cli.expect_request("cancel_async_message").await;
            cli.respond(&cancel, json!({"cancelled": true})).await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::Withdrawn);
    });
}

#[test]
fn turn_that_starts_during_the_withdrawal_is_interrupted() {
    run(async {
        let (_session, mut cli, turn, user) = session_with_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            reject_withdrawal(&mut cli, &user).await;
            cli.send_lifecycle(&user, "started").await;
            let interrupt = cli.expect_request("interrupt").await;
            cli.respond(&interrupt, json!({"still_queued": []})).await;
            // The result follows immediately; the turn still counts as interrupted and not as
            // already ended.
            cli.send_result(&user).await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::Interrupted);
        in_time(turn.finish()).await.unwrap();
    });
}

#[test]
fn turn_that_ends_during_the_withdrawal_is_reported_as_ended() {
    run(async {
        let (session, mut cli, turn, user) = session_with_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            let cancel = cli.expect_request("cancel_async_message").await;
            cli.send_result(&user).await;
            cli.respond(&cancel, json!({"cancelled": false})).await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::AlreadyEnded);
        drop(tokio::spawn(async move { session.mcp().status().await }));
        cli.expect_request("mcp_status").await;
    });
}

#[test]
fn interrupt_gives_up_if_the_cli_never_reports_the_message() {
    fake_cli::on_paused_clock(async {
        let (session, mut cli) = fake_cli::connect(Options::new()).await;
        let turn = session.with_timeout(Duration::from_secs(5)).send("hello").await.unwrap();
        let user = cli.read_line().await;
        let reject_always = async {
            loop {
                reject_withdrawal(&mut cli, &user).await;
            }
        };
        let interrupted = tokio::select! {
            interrupted = turn.interrupt() => interrupted,
            () = reject_always => unreachable!("the interrupt never ends"),
        };
        assert_eq!(interrupted.unwrap(), TurnInterruption::StillQueued);
    });
}

#[test]
fn message_sent_after_an_interrupt_is_not_reported_as_ended() {
    run(async {
        let (session, mut cli, first, user) = session_with_message().await;
        cli.send_lifecycle(&user, "started").await;
        let (interruption, second) = tokio::join!(session.interrupt(), async {
            let interrupt = cli.expect_request("interrupt").await;
            let second = session.send("second").await.unwrap();
            let user = cli.read_line().await;
            cli.send_lifecycle(&user, "started").await;
            cli.respond(&interrupt, json!({"still_queued": []})).await;
            second
        });
        let turns = interruption.unwrap().turns;
        assert_eq!(turns, [first.message_id().clone()]);
        assert!(!turns.contains(second.message_id()));
    });
}
