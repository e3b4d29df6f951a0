//! Turns in which the CLI replays a deferred tool call.

use std::process::Command;

use claude_agent_kit::hook::{HookResponse, PreToolUse, input::PreToolUseInput};
use claude_agent_kit::{
    Conversation, ErrorKind, Exit, Item, Limits, Options, Session, TurnInterruption,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::Body;
use claude_wire::id::SessionId;
use tests_e2e::harness::Harness;
use tests_e2e::prove::deferred;

use crate::helpers::{has_file, is_result, real_with_and_without_tools, with_and_without_tools};
use crate::support::{hello, in_time, until};

type Response = HookResponse<PreToolUseInput>;

/// A command that is still running when the replay is interrupted or killed.
const LONG_COMMAND: &str = "echo once >> executed; sleep 20";

fn resume(harness: &Harness, id: &SessionId, response: fn() -> Response) -> Options {
    harness.api().set_script(Script::new().otherwise([Reply::text("Done.")]));
    deferred::options(harness)
        .conversation(Conversation::resume(id.clone()))
        .on(PreToolUse, move |_, _| async move { response() })
}

fn executions(harness: &Harness) -> usize {
    let text = std::fs::read_to_string(harness.project().join(deferred::MARK));
    text.unwrap_or_default().lines().count()
}

#[test]
fn replayed_turn_ends_with_the_result_of_the_replay() {
    with_and_without_tools(hello, async |harness| {
        let id = deferred::defer(&harness).await.unwrap();
        // Deferred again: the model does not continue.
        let session = Session::open(resume(&harness, &id, HookResponse::defer)).await.unwrap();
        let turn = in_time(session.replayed_turn()).await.unwrap().unwrap();
        let outcome = in_time(turn.finish()).await.unwrap().into_result().unwrap();
        let call = outcome.result.deferred_tool_use.as_ref().unwrap();
        assert_eq!((call.tool_name.as_deref(), &*outcome.text), (Some("Bash"), ""));
        assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
        session.stop().await.unwrap();
        assert_eq!(executions(&harness), 0);

        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        let turn = in_time(session.replayed_turn()).await.unwrap().unwrap();
        let outcome = in_time(turn.finish()).await.unwrap().into_result().unwrap();
        assert_eq!((&*outcome.text, outcome.result.deferred_tool_use.is_none()), ("Done.", true));
        assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
        assert!(outcome.cost.usd > 0.0 && !outcome.is_confirmed && outcome.shared_with.is_empty());
        assert_eq!(executions(&harness), 1);
        // The turn is returned once, and the session continues.
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        let next = session.send("next").await.unwrap();
        assert_eq!(in_time(next.finish()).await.unwrap().text, "Done.");
        session.stop().await.unwrap();

        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        session.stop().await.unwrap();
        assert_eq!(executions(&harness), 1);
    });
}

#[test]
fn replayed_turn_of_a_denied_call_lets_the_model_continue() {
    with_and_without_tools(hello, async |harness| {
        let id = deferred::defer(&harness).await.unwrap();
        let deny = || HookResponse::deny("not approved");
        let session = Session::open(resume(&harness, &id, deny)).await.unwrap();
        let mut turn = in_time(session.replayed_turn()).await.unwrap().unwrap();
        let mut denials = 0;
        while let Some(item) = in_time(turn.next()).await {
            if let Item::Message(message) = item.unwrap()
                && let Body::User(user) = &message.body
            {
                denials += user.tool_results().filter(|result| result.is_error()).count();
            }
        }
        let outcome = turn.finish().await.unwrap().into_result().unwrap();
        assert_eq!((&*outcome.text, denials), ("Done.", 1));
        session.stop().await.unwrap();
        assert!(!has_file(&harness, deferred::MARK));
    });
}

#[test]
fn session_without_a_deferred_call_has_no_replayed_turn() {
    with_and_without_tools(hello, async |harness| {
        let session = Session::open(deferred::options(&harness)).await.unwrap();
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        let outcome = in_time(session.send("hi").await.unwrap().finish()).await.unwrap();
        let id = outcome.session_id().unwrap().clone();
        session.stop().await.unwrap();
        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        session.stop().await.unwrap();
    });
}

#[test]
fn untaken_replayed_turn_delays_nothing_and_hides_nothing() {
    with_and_without_tools(hello, async |harness| {
        // All messages since the start, also after the replay has started.
        let id = deferred::defer(&harness).await.unwrap();
        let small = || Limits::new().backlog_soft_bytes(1);
        let options = resume(&harness, &id, HookResponse::allow).limits(small());
        let session = Session::start(options).await.unwrap();
        let mut messages = session.messages();
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        let mut lifecycle = Vec::new();
        loop {
            let item = in_time(messages.next()).await.unwrap().unwrap();
            if let Item::Message(message) = &item
                && let Body::CommandLifecycle(command) = &message.body
            {
                lifecycle.push(command.state.clone().unwrap().as_str().to_owned());
            }
            if is_result(&item) {
                break;
            }
        }
        assert_eq!(lifecycle, ["started"]);
        drop(messages);
        session.stop().await.unwrap();

        // A message that is sent gets its own turn, after the replay.
        let id = deferred::defer(&harness).await.unwrap();
        let options = resume(&harness, &id, HookResponse::allow).limits(small());
        let session = Session::open(options).await.unwrap();
        let turn = session.send("next").await.unwrap();
        assert!(session.replayed_turn().await.unwrap().is_none());
        assert_eq!(in_time(turn.finish()).await.unwrap().text, "Done.");
        session.stop().await.unwrap();

        // Nothing is read at all.
        let id = deferred::defer(&harness).await.unwrap();
        let options = resume(&harness, &id, HookResponse::allow).limits(small());
        let session = Session::start(options).await.unwrap();
        until("the call runs", || executions(&harness) == 3).await;
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn message_sent_during_a_replay_has_its_own_turn() {
    with_and_without_tools(hello, async |harness| {
        let id = deferred::defer(&harness).await.unwrap();
        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        let replay = in_time(session.replayed_turn()).await.unwrap().unwrap();
        let next = session.send("next").await.unwrap();
        assert_ne!(replay.message_id(), next.message_id());
        let replay = in_time(replay.finish()).await.unwrap();
        let next = in_time(next.finish()).await.unwrap();
        assert_eq!((&*replay.text, &*next.text), ("Done.", "Done."));
        assert_ne!(replay.result.uuid, next.result.uuid);
        session.stop().await.unwrap();
        assert_eq!(executions(&harness), 1);
    });
}

#[test]
fn interrupt_ends_a_replayed_turn() {
    with_and_without_tools(hello, async |harness| {
        let id = deferred::defer_command(&harness, LONG_COMMAND).await.unwrap();
        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        let turn = in_time(session.replayed_turn()).await.unwrap().unwrap();
        until("the call runs", || executions(&harness) == 1).await;
        assert_eq!(in_time(turn.interrupt()).await.unwrap(), TurnInterruption::Interrupted);
        let error = in_time(turn.finish()).await.unwrap().into_result().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
        let next = session.send("next").await.unwrap();
        assert_eq!(in_time(next.finish()).await.unwrap().text, "Done.");
        session.stop().await.unwrap();
        // The interrupted call has a result, so it is not replayed.
        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        session.stop().await.unwrap();
        assert_eq!(executions(&harness), 1);
    });
}

#[test]
fn killed_cli_ends_a_replayed_turn_and_replays_the_call_again() {
    real_with_and_without_tools(hello, async |harness| {
        let id = deferred::defer_command(&harness, LONG_COMMAND).await.unwrap();
        let session = Session::open(resume(&harness, &id, HookResponse::allow)).await.unwrap();
        let turn = in_time(session.replayed_turn()).await.unwrap().unwrap();
        until("the call runs", || executions(&harness) == 1).await;
        let pid = session.pid().unwrap().to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        let error = in_time(turn.finish()).await.unwrap_err();
        assert_eq!(error.exit(), Some(Exit::Signal(9)), "{error}");
        // The transcript does not show that the call was running.
        let deny = || HookResponse::deny("it was executed before");
        let session = Session::open(resume(&harness, &id, deny)).await.unwrap();
        let turn = in_time(session.replayed_turn()).await.unwrap().unwrap();
        assert_eq!(in_time(turn.finish()).await.unwrap().text, "Done.");
        session.stop().await.unwrap();
        assert_eq!(executions(&harness), 1);
    });
}
