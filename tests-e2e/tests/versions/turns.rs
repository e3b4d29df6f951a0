//! Every turn ends, however the CLI reports its end.

use std::fs;
use std::path::Path;

use claude_agent_kit::hook::{HookResponse, PreToolUse, UserPromptSubmit};
use claude_agent_kit::{
    Conversation, ErrorKind, Prompt, Session, SessionId, Turn, TurnInterruption, TurnOutcome,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::prove::deferred;

use crate::helpers::{bash, has_file, start, touch_script, turn};
use crate::on_each;
use crate::support::{hello, in_time, until};

/// Sends all prompts and waits for all turns.
async fn send_all(session: &Session, prompts: &[&str]) -> Vec<TurnOutcome> {
    let mut turns: Vec<Turn> = Vec::new();
    for prompt in prompts {
        turns.push(session.send(*prompt).await.unwrap());
    }
    let mut outcomes = Vec::new();
    for turn in turns {
        outcomes.push(in_time(turn.finish()).await.unwrap());
    }
    outcomes
}

#[test]
fn four_concurrent_messages_all_end() {
    on_each(hello, async |harness| {
        let session = start(harness.options()).await;
        let outcomes = send_all(&session, &["one", "two", "three", "four"]).await;
        assert!(outcomes.iter().all(|outcome| !outcome.result.is_error()));
        assert_eq!(turn(&session, "again").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

#[test]
fn message_that_joins_a_turn_ends_with_it() {
    let script = || bash(&["touch begun; until [ -e go ]; do sleep 0.05; done"]);
    on_each(script, async |harness| {
        let session = start(harness.options().allowed_tools(["Bash"])).await;
        let first = session.send("run it").await.unwrap();
        until("the tool runs", || has_file(&harness, "begun")).await;
        let second = session.send("and hurry").await.unwrap();
        fs::write(harness.project().join("go"), "").unwrap();
        assert!(!in_time(first.finish()).await.unwrap().result.is_error());
        assert!(!in_time(second.finish()).await.unwrap().result.is_error());
        session.stop().await.unwrap();
    });
}

#[test]
fn message_that_joins_a_turn_of_the_cli_ends_with_it() {
    let wait = |file: &str| format!("until [ -e {file} ]; do sleep 0.05; done");
    let script = || {
        let background = json!({"command": wait("end"), "run_in_background": true});
        let busy = json!({"command": format!("touch begun; {}", wait("go"))});
        Script::new().when("and hurry", [Reply::text("Hurried.")]).otherwise([
            Reply::tool("Bash", background),
            Reply::text("Started."),
            Reply::tool("Bash", busy),
            Reply::text("It is done."),
        ])
    };
    on_each(script, async |harness| {
        let session = start(harness.options().allowed_tools(["Bash"])).await;
        turn(&session, "start it").await;
        fs::write(harness.project().join("end"), "").unwrap();
        until("the tool of the CLI's own turn runs", || has_file(&harness, "begun")).await;
        let joined = session.send("and hurry").await.unwrap();
        fs::write(harness.project().join("go"), "").unwrap();
        assert!(in_time(joined.finish()).await.unwrap().text.contains("Hurried."));
        session.stop().await.unwrap();
    });
}

#[test]
fn slash_commands_end_their_turns() {
    on_each(hello, async |harness| {
        let session = start(harness.options()).await;
        for prompt in ["hello", "/cost", "/no-such-command", "/compact", "hello", "/clear"] {
            turn(&session, prompt).await;
        }
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

#[test]
fn prompt_blocked_by_a_hook_ends_its_turn() {
    on_each(hello, async |harness| {
        let options = harness.options().on(UserPromptSubmit, |call, _| async move {
            let blocked = call.prompt.as_ref().is_some_and(|prompt| prompt.contains("secret"));
            if blocked { HookResponse::block("not here") } else { HookResponse::new() }
        });
        let session = start(options).await;
        let outcome = turn(&session, "the secret").await;
        assert_eq!(outcome.text, "");
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
        assert_eq!(harness.api().requests().len(), 1);
    });
}

#[test]
fn deferred_call_ends_its_turn() {
    on_each(touch_script, async |harness| {
        let options = harness.options().on(PreToolUse, |_, _| async { HookResponse::defer() });
        let session = start(options).await;
        let outcome = turn(&session, "run it").await;
        assert!(outcome.result.deferred_tool_use.as_ref().is_some());
        assert!(!has_file(&harness, "made"));
        session.stop().await.unwrap();
    });
}

#[test]
fn replayed_turn_is_delivered_with_and_without_an_in_process_server() {
    let play = async |harness: Harness| {
        let id = deferred::defer(&harness).await.unwrap();
        harness.api().set_script(Script::new().otherwise([Reply::text("Done.")]));
        let options = deferred::options(&harness)
            .conversation(Conversation::resume(id))
            .on(PreToolUse, |_, _| async { HookResponse::allow() });
        let session = Session::open(options).await.unwrap();
        let replay = in_time(session.replayed_turn()).await.unwrap().unwrap();
        assert_eq!(in_time(replay.finish()).await.unwrap().into_result().unwrap().text, "Done.");
        session.stop().await.unwrap();
        assert!(has_file(&harness, deferred::MARK));
    };
    on_each(touch_script, play);
    on_each(touch_script, async |harness| play(harness.with_tools()).await);
}

#[test]
fn denied_deferred_call_is_not_executed_on_resume() {
    let play = async |harness: Harness| {
        let id = in_time(deferred::defer(&harness)).await.unwrap();
        let options = deferred::options(&harness);
        let deny = || HookResponse::deny("not approved");
        let denied = deferred::resume(&harness, options, id, deny);
        assert_eq!(in_time(denied).await.unwrap(), 1);
        assert!(!has_file(&harness, deferred::MARK));
    };
    on_each(hello, play);
    on_each(hello, async |harness| play(harness.with_tools()).await);
}

#[test]
fn queued_message_survives_an_interrupt_and_ends() {
    let script = || {
        Script::new().when("second", [Reply::text("Two.")]).otherwise([Reply::text(
            "A long answer.",
        )
        .deltas_of(3)
        .hold()])
    };
    on_each(script, async |harness| {
        let session = start(harness.options()).await;
        let first = session.send("first").await.unwrap();
        until("the model receives a request", || !harness.api().requests().is_empty()).await;
        let second = session.send("second").await.unwrap();
        session.interrupt().await.unwrap();
        assert!(in_time(first.finish()).await.unwrap().result.is_error());
        assert_eq!(in_time(second.finish()).await.unwrap().text, "Two.");
        session.stop().await.unwrap();
    });
}

#[test]
fn failing_api_ends_the_turn() {
    let script = || {
        let refused = Reply::error(400, "invalid_request_error", "not right");
        Script::new().when("hello", [refused]).when("again", [Reply::text("Better.")])
    };
    on_each(script, async |harness| {
        let session = start(harness.options()).await;
        assert!(turn(&session, "hello").await.result.is_error());
        assert_eq!(turn(&session, "again").await.text, "Better.");
        session.stop().await.unwrap();
    });
}

/// The host was killed before the model answered: the transcript ends with the message.
#[test]
fn a_message_that_was_not_answered_can_be_sent_again() {
    on_each(hello, async |harness| {
        let id = "0f442871-3937-45c3-94cd-b042f2c7dcb0";
        let prompt = || Prompt::from("hello").with_id(id);
        let session = start(harness.options()).await;
        in_time(session.send(prompt()).await.unwrap().finish()).await.unwrap();
        let conversation = session.session_id().unwrap();
        session.stop().await.unwrap();
        cut_before_the_answer(&harness.root().join("home"), &conversation);
        let resumed = Conversation::resume(conversation);
        let session = start(harness.options().conversation(resumed)).await;
        let outcome = in_time(session.send(prompt()).await.unwrap().finish()).await.unwrap();
        assert_eq!(outcome.into_result().unwrap().text, "Hello.");
        assert_eq!(harness.api().requests().len(), 2);
        session.stop().await.unwrap();
    });
}

/// Removes the answer of the model, and all that follows it, from a transcript.
fn cut_before_the_answer(home: &Path, session: &SessionId) {
    let projects = home.join(".claude/projects");
    let folders = fs::read_dir(projects).unwrap().map(|folder| folder.unwrap().path());
    let mut files = folders.map(|folder| folder.join(format!("{session}.jsonl")));
    let file = files.find(|file| file.exists()).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let is_answer = |line: &&str| line.contains(r#""type":"assistant""#);
    assert!(text.lines().any(|line| is_answer(&line)));
    let kept: String =
        text.lines().take_while(|line| !is_answer(line)).flat_map(|line| [line, "\n"]).collect();
    fs::write(file, kept).unwrap();
}

#[test]
fn message_with_a_used_id_is_rejected() {
    on_each(hello, async |harness| {
        let id = "0f442871-3937-45c3-94cd-b042f2c7dcb0";
        let prompt = || Prompt::from("hello").with_id(id);
        let session = start(harness.options()).await;
        in_time(session.send(prompt()).await.unwrap().finish()).await.unwrap();
        let error = session.send(prompt()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        let conversation = session.session_id().unwrap();
        session.stop().await.unwrap();
        // The conversation contains the message: the CLI completes it without a request to the
        // model.
        let resumed = Conversation::resume(conversation);
        let session = start(harness.options().conversation(resumed)).await;
        let mut turn = session.send(prompt()).await.unwrap();
        while let Some(Ok(_)) = in_time(turn.next()).await {}
        assert_eq!(in_time(turn.interrupt()).await.unwrap(), TurnInterruption::AlreadyEnded);
        let error = turn.finish().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoResult, "{error}");
        assert_eq!(harness.api().requests().len(), 1);
        session.stop().await.unwrap();
    });
}
