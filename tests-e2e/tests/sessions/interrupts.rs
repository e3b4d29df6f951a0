//! Interrupts before, at and after the start of a turn.

use std::time::Duration;

use claude_agent_kit::{ErrorKind, Include, Options, Session, Turn, TurnInterruption};
use serde_json::{Value, json};

use crate::play::{
    ENDLESS_ROUNDS, end_each_turn_at_once, endless, interrupt_each_turn_at_once, is_piece, on_both,
    start, turn,
};
use crate::puppet::{self, Puppet};
use crate::support::{hello, in_time, on_all, run};

#[test]
fn a_turn_can_be_interrupted_right_after_its_message_was_sent() {
    on_all(endless, async |stage| {
        let session = start(stage.options()).await;
        end_each_turn_at_once(&session, ENDLESS_ROUNDS).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn an_interrupt_says_which_turns_it_ended_and_which_messages_still_wait() {
    on_all(endless, async |stage| {
        let session = start(stage.options()).await;
        interrupt_each_turn_at_once(&session, ENDLESS_ROUNDS).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn a_message_behind_another_is_withdrawn_and_the_other_turn_goes_on() {
    on_both(endless, async |stage| {
        let session = start(stage.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut first = session.send("first").await.unwrap();
        while !is_piece(&in_time(first.next()).await.unwrap().unwrap()) {}
        let second = session.send("second").await.unwrap();
        assert_eq!(in_time(second.interrupt()).await.unwrap(), TurnInterruption::Withdrawn);
        assert_eq!(in_time(second.interrupt()).await.unwrap(), TurnInterruption::Withdrawn);
        let error = in_time(second.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnCancelled);
        stage.api().release_held();
        let outcome = in_time(first.finish()).await.unwrap();
        assert!(!outcome.result.is_error());
        assert_eq!(outcome.text, "A long answer.");
        session.stop().await.unwrap();
    });
}

#[test]
fn a_turn_that_has_ended_cannot_be_interrupted() {
    on_both(hello, async |stage| {
        let session = start(stage.options()).await;
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
async fn with_a_message() -> (Session, Puppet, Turn, Value) {
    let (session, mut puppet) = puppet::running(Options::new()).await;
    let turn = session.send("hello").await.unwrap();
    let user = puppet.hear().await;
    (session, puppet, turn, user)
}

/// Responds that the message cannot be withdrawn.
async fn refuse_to_withdraw(puppet: &mut Puppet, user: &Value) {
    let cancel = puppet.asked("cancel_async_message").await;
    assert_eq!(cancel["request"]["message_uuid"], user["uuid"]);
    puppet.answer(&cancel, json!({"cancelled": false})).await;
}

/// An interrupt would end the preceding turn.
#[test]
fn a_message_that_has_not_begun_is_withdrawn_and_never_interrupted() {
    run(async {
        // The CLI does not know the message yet, and drops it when it arrives.
        let (_session, mut puppet, turn, user) = with_a_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            refuse_to_withdraw(&mut puppet, &user).await;
            puppet.lifecycle(&user, "queued").await;
            puppet.lifecycle(&user, "cancelled").await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::Withdrawn);
        let error = in_time(turn.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnCancelled);
        // The message arrives in the queue between the two requests.
        let (_session, mut puppet, turn, user) = with_a_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            refuse_to_withdraw(&mut puppet, &user).await;
            let cancel = puppet.asked("cancel_async_message").await;
            puppet.answer(&cancel, json!({"cancelled": true})).await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::Withdrawn);
    });
}

#[test]
fn a_turn_that_begins_meanwhile_is_interrupted() {
    run(async {
        let (_session, mut puppet, turn, user) = with_a_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            refuse_to_withdraw(&mut puppet, &user).await;
            puppet.lifecycle(&user, "started").await;
            let interrupt = puppet.asked("interrupt").await;
            puppet.answer(&interrupt, json!({"still_queued": []})).await;
            // The result follows immediately; the turn still counts as interrupted and not as
            // already ended.
            puppet.result(&user).await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::Interrupted);
        in_time(turn.finish()).await.unwrap();
    });
}

#[test]
fn a_turn_that_ends_meanwhile_is_told_and_no_other_is_interrupted() {
    run(async {
        let (session, mut puppet, turn, user) = with_a_message().await;
        let (interrupted, ()) = tokio::join!(turn.interrupt(), async {
            let cancel = puppet.asked("cancel_async_message").await;
            puppet.result(&user).await;
            puppet.answer(&cancel, json!({"cancelled": false})).await;
        });
        assert_eq!(interrupted.unwrap(), TurnInterruption::AlreadyEnded);
        drop(tokio::spawn(async move { session.mcp().status().await }));
        puppet.asked("mcp_status").await;
    });
}

#[test]
fn a_cli_that_never_says_where_a_message_is_is_not_asked_for_ever() {
    puppet::on_paused_clock(async {
        let (session, mut puppet) = puppet::running(Options::new()).await;
        let turn = session.with_timeout(Duration::from_secs(5)).send("hello").await.unwrap();
        let user = puppet.hear().await;
        let asked = async {
            loop {
                refuse_to_withdraw(&mut puppet, &user).await;
            }
        };
        let interrupted = tokio::select! {
            interrupted = turn.interrupt() => interrupted,
            () = asked => unreachable!("it asks for ever"),
        };
        assert_eq!(interrupted.unwrap(), TurnInterruption::StillQueued);
    });
}

#[test]
fn a_message_that_is_sent_after_an_interrupt_is_none_that_it_ended() {
    run(async {
        let (session, mut puppet, first, user) = with_a_message().await;
        puppet.lifecycle(&user, "started").await;
        let (interruption, second) = tokio::join!(session.interrupt(), async {
            let interrupt = puppet.asked("interrupt").await;
            let second = session.send("second").await.unwrap();
            let user = puppet.hear().await;
            puppet.lifecycle(&user, "started").await;
            puppet.answer(&interrupt, json!({"still_queued": []})).await;
            second
        });
        let turns = interruption.unwrap().turns;
        assert_eq!(turns, [first.message_id().clone()]);
        assert!(!turns.contains(second.message_id()));
    });
}
