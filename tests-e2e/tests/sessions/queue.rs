//! Several messages at once: the CLI decides which of them share a turn.

use claude_agent_kit::{ErrorKind, Include, Options, Prompt, Session, Turn};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::message::Priority;
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::fake_cli;
use crate::helpers::{bash, find, has_file, is_delta, on_both, start, turn};
use crate::support::{hello, in_time, on_all, run, until};

/// Returns a model whose tool runs until the file `go` exists.
fn waiting_tool_script() -> Script {
    bash(&["touch begun; until [ -e go ]; do sleep 0.05; done"])
}

/// Starts a session and a turn whose tool is running.
async fn start_running_tool(harness: &Harness) -> (Session, Turn) {
    let session = start(harness.options().allowed_tools(["Bash"])).await;
    let running = session.send("run it").await.unwrap();
    until("the tool runs", || has_file(harness, "begun")).await;
    (session, running)
}

/// Sends a message and waits until the CLI has queued it.
async fn send_queued(session: &Session, prompt: &str) -> Turn {
    let mut messages = session.messages();
    let turn = session.send(prompt).await.unwrap();
    let id = turn.message_id().as_str();
    find(&mut messages, |item| {
        let raw = item.message().and_then(|message| message.raw_str().map(str::to_owned));
        raw.is_some_and(|raw| raw.contains("command_lifecycle") && raw.contains(id))
    })
    .await;
    turn
}

#[test]
fn two_concurrent_messages_have_separate_results() {
    on_all(hello, async |harness| {
        let session = start(harness.options()).await;
        let (first, second) = tokio::join!(session.send("first"), session.send("second"));
        let (first, second) = (first.unwrap(), second.unwrap());
        let (first, second) =
            in_time(async { tokio::join!(first.finish(), second.finish()) }).await;
        let (first, second) = (first.unwrap(), second.unwrap());
        assert_ne!(first.result.uuid, second.result.uuid);
        assert!(first.is_confirmed && second.is_confirmed);
        assert!(first.shared_with.is_empty() && second.shared_with.is_empty());
        session.stop().await.unwrap();
    });
}

#[test]
fn two_of_three_concurrent_messages_share_a_result() {
    // The first answer is held until the other messages are queued, however slow the machine is.
    let script = || {
        let hello = || Reply::text("Hello.");
        Script::new()
            .when("first", [hello().hold()])
            .when("second", [hello()])
            .when("third", [hello()])
    };
    on_all(script, async |harness| {
        let session = start(harness.options()).await;
        let first = session.send("first").await.unwrap();
        harness
            .api()
            .wait_for_request(|request| {
                request.prompts().iter().any(|prompt| prompt.contains("first"))
            })
            .await;
        let second = send_queued(&session, "second").await;
        let third = send_queued(&session, "third").await;
        harness.api().release_held();
        let (second_id, third_id) = (second.message_id().clone(), third.message_id().clone());
        let first = in_time(first.finish()).await.unwrap();
        let second = in_time(second.finish()).await.unwrap();
        let third = in_time(third.finish()).await.unwrap();
        assert!(first.shared_with.is_empty());
        assert_ne!(first.result.uuid, second.result.uuid);
        assert_eq!(second.result.uuid, third.result.uuid);
        assert_eq!((second.text.as_str(), third.text.as_str()), ("Hello.", "Hello."));
        assert_eq!((second.shared_with, third.shared_with), (vec![third_id], vec![second_id]));
        session.stop().await.unwrap();
    });
}

#[test]
fn message_sent_while_a_tool_runs_joins_its_turn() {
    on_both(waiting_tool_script, async |harness| {
        let (session, running) = start_running_tool(&harness).await;
        let joining = send_queued(&session, "and hurry").await;
        let (first, second) = (running.message_id().clone(), joining.message_id().clone());
        std::fs::write(harness.project().join("go"), "").unwrap();
        let running = in_time(running.finish()).await.unwrap();
        let joining = in_time(joining.finish()).await.unwrap();
        assert_eq!(running.result.uuid, joining.result.uuid);
        assert_eq!((running.shared_with, joining.shared_with), (vec![second], vec![first]));
        assert_eq!(running.text, "Done.");
        session.stop().await.unwrap();
    });
}

#[test]
fn queued_message_runs_after_an_interrupt() {
    let script = || {
        Script::new().when("second", [Reply::text("Two.")]).otherwise([Reply::text(
            "A long answer.",
        )
        .deltas_of(3)
        .hold()])
    };
    on_both(script, async |harness| {
        let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut first = session.send("first").await.unwrap();
        while !is_delta(&in_time(first.next()).await.unwrap().unwrap()) {}
        let second = send_queued(&session, "second").await;
        let response = session.interrupt().await.unwrap();
        assert_eq!(response.turns, [first.message_id().clone()]);
        assert_eq!(response.still_queued, [second.message_id().clone()]);
        assert!(in_time(first.finish()).await.unwrap().result.is_error());
        let second = in_time(second.finish()).await.unwrap();
        assert_eq!(second.text, "Two.");
        assert!(second.shared_with.is_empty());
        session.stop().await.unwrap();
    });
}

#[test]
fn queued_message_can_be_cancelled() {
    on_both(waiting_tool_script, async |harness| {
        let (session, running) = start_running_tool(&harness).await;
        let mut withdrawn = send_queued(&session, "never mind").await;
        assert!(withdrawn.cancel().await.unwrap());
        assert!(!withdrawn.cancel().await.unwrap(), "a message cannot be withdrawn twice");
        let error = loop {
            match in_time(withdrawn.next()).await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::TurnCancelled);
        assert!(withdrawn.next().await.is_none());
        std::fs::write(harness.project().join("go"), "").unwrap();
        let outcome = in_time(running.finish()).await.unwrap();
        assert!(outcome.shared_with.is_empty());
        assert_eq!(outcome.text, "Done.");
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupt_all_drops_queued_messages() {
    let script = || {
        Script::new()
            .when("again", [Reply::text("yes")])
            .otherwise([Reply::text("A long answer.").deltas_of(3).hold()])
    };
    on_both(script, async |harness| {
        let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut first = session.send("first").await.unwrap();
        while !is_delta(&in_time(first.next()).await.unwrap().unwrap()) {}
        let second = send_queued(&session, "second").await;
        let response = session.interrupt_all().await.unwrap();
        assert_eq!(response.turns, [first.message_id().clone()]);
        assert_eq!(response.cancelled, [second.message_id().clone()]);
        let error = in_time(second.finish()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TurnCancelled);
        assert!(in_time(first.finish()).await.unwrap().result.is_error());
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn every_priority_is_accepted() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        for priority in [Priority::Now, Priority::Next, Priority::Later] {
            let prompt = Prompt::from("hello").priority(priority);
            let outcome = in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
            assert_eq!(outcome.text, "Hello.");
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn message_id_can_be_any_text_that_is_not_blank() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        for id in ["not a uuid", "7D9F3C1E-0000-4000-8000-00000000000A"] {
            let sent = session.send(Prompt::from("hello").with_id(id)).await.unwrap();
            let outcome = in_time(sent.finish()).await.unwrap();
            assert!(outcome.is_confirmed, "{id}");
            assert_eq!(outcome.text, "Hello.");
        }
        for id in ["", " "] {
            let error = session.send(Prompt::from("hello").with_id(id)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn priority_and_id_of_a_message_are_sent() {
    run(async {
        let (session, mut cli) = fake_cli::connect(Options::new()).await;
        let id = "7d9f3c1e-0000-4000-8000-000000000001";
        let prompt = Prompt::from("hello").priority(Priority::Later).with_id(id);
        let sent = session.send(prompt).await.unwrap();
        assert_eq!(sent.message_id().as_str(), id);
        let line = cli.read_line().await;
        assert_eq!((&line["uuid"], &line["priority"]), (&json!(id), &json!("later")));
        assert_eq!(line["message"], json!({"role": "user", "content": "hello"}));
        assert_eq!(line["parent_tool_use_id"], json!(null));
    });
}

#[test]
fn results_without_ids_are_matched_in_sending_order_and_unconfirmed() {
    run(async {
        let (session, mut cli) = fake_cli::connect(Options::new()).await;
        let first = session.send("first").await.unwrap();
        let second = session.send("second").await.unwrap();
        cli.read_line().await;
        cli.read_line().await;
        for text in ["one", "two"] {
            cli.send_text(text).await;
            let line = json!({"type": "result", "subtype": "success", "is_error": false,
                              "result": text, "session_id": "s"});
            cli.send(line).await;
        }
        let first = in_time(first.finish()).await.unwrap();
        let second = in_time(second.finish()).await.unwrap();
        assert_eq!(first.result.result.as_deref(), Some("one"));
        assert_eq!(second.result.result.as_deref(), Some("two"));
        assert!(!first.is_confirmed && !second.is_confirmed);
    });
}
