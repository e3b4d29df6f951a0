//! User messages and their turns.

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{ErrorKind, Include, Options, Permission, Session, SessionState};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::Body;
use claude_wire::content::{ContentBlock, ImageBlock};
use serde_json::json;

use crate::fake_cli;
use crate::helpers::{
    find, in_memory, is_delta, is_result, kind, model_received, on_both, start, turn,
};
use crate::support::{hello, in_time, on_all, run};

#[test]
fn three_turns_run_in_one_session() {
    let script = || {
        Script::new()
            .when("one", [Reply::text("1").usage(100, 7)])
            .when("two", [Reply::text("2").usage(200, 11)])
            .when("three", [Reply::text("3")])
    };
    on_all(script, async |harness| {
        let session = Session::start(harness.options()).await.unwrap();
        assert!(session.server_info().unwrap().models.as_slice().len() > 1);
        for (prompt, answer) in [("one", "1"), ("two", "2"), ("three", "3")] {
            let turn = session.send(prompt).await.unwrap();
            let outcome = turn.finish().await.unwrap();
            assert_eq!(outcome.text, answer);
            assert!(outcome.is_confirmed && outcome.shared_with.is_empty());
            let usd = outcome.cost.usd;
            assert!(usd > 0.0 && usd < 0.0012, "{usd}");
        }
        assert_eq!(session.stop().await.unwrap(), Some(claude_agent_kit::Exit::Code(0)));
    });
}

#[test]
fn hook_denies_and_permission_callback_allows() {
    let script = || {
        Script::new().when(
            "files",
            [
                Reply::tool("Bash", json!({"command": "touch denied"}))
                    .and_tool("Bash", json!({"command": "touch allowed"})),
                Reply::text("done"),
            ],
        )
    };
    on_all(script, async |harness| {
        let options = harness
            .options()
            .on(PreToolUse.matching("Bash"), |call, _| async move {
                let command = call.input.map(|input| input.to_string()).unwrap_or_default();
                if command.contains("denied") {
                    HookResponse::deny("no")
                } else {
                    HookResponse::new()
                }
            })
            .can_use_tool(|_, _| async move { Permission::allow() });
        let session = Session::start(options).await.unwrap();
        let outcome = session.send("files").await.unwrap().finish().await.unwrap();
        assert_eq!(outcome.text, "done");
        assert!(!harness.project().join("denied").exists());
        assert!(harness.project().join("allowed").exists());
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupt_ends_the_turn_and_not_the_session() {
    let script = || {
        Script::new()
            .when("story", [Reply::text("Once upon a time").hold()])
            .when("again", [Reply::text("yes")])
    };
    on_all(script, async |harness| {
        let session =
            Session::start(harness.options().include(Include::PARTIAL_MESSAGES)).await.unwrap();
        let turn = session.send("story").await.unwrap();
        harness
            .api()
            .wait_for_request(|request| {
                request.last_prompt().is_some_and(|prompt| prompt.contains("story"))
            })
            .await;
        session.interrupt().await.unwrap();
        let outcome = turn.finish().await.unwrap();
        assert!(outcome.result.is_error());
        let outcome = session.send("again").await.unwrap().finish().await.unwrap();
        assert_eq!(outcome.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn turn_dropped_midway_does_not_affect_others() {
    let script = || {
        Script::new()
            .when("story", [Reply::text("Once upon a time").deltas_of(3).hold()])
            .when("again", [Reply::text("yes")])
    };
    on_both(script, async |harness| {
        let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut messages = session.messages();
        let mut story = session.send("story").await.unwrap();
        while !is_delta(&in_time(story.next()).await.unwrap().unwrap()) {}
        drop(story);
        // A turn that is never read.
        drop(session.send("again").await.unwrap());
        harness.api().release_held();
        find(&mut messages, is_result).await;
        find(&mut messages, is_result).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn first_message_stream_includes_earlier_messages() {
    run(async {
        let (session, mut cli) = fake_cli::open(Options::new()).await;
        cli.send_text("before the handshake").await;
        cli.handshake().await;
        session.ready().await.unwrap();
        cli.send_text("after the handshake").await;
        // When the response arrives, the message before it has been read.
        let second_handle = session.clone();
        let status = tokio::spawn(async move { second_handle.mcp().status().await });
        let request = cli.expect_request("mcp_status").await;
        cli.respond(&request, json!({})).await;
        in_time(status).await.unwrap().unwrap();
        let (mut first, mut second) = (session.messages(), session.messages());
        cli.send_text("at last").await;
        for text in ["before the handshake", "after the handshake", "at last"] {
            let item = in_time(first.next()).await.unwrap().unwrap();
            assert!(format!("{:?}", item.message().unwrap().raw_str()).contains(text));
        }
        let item = in_time(second.next()).await.unwrap().unwrap();
        assert!(format!("{:?}", item.message().unwrap().raw_str()).contains("at last"));
    });
}

#[test]
fn message_stream_has_all_messages_since_its_creation_and_no_control_frames() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let first = session.messages();
        turn(&session, "hello").await;
        session.mcp().status().await.unwrap();
        let second = session.messages();
        turn(&session, "hello again").await;
        session.stop().await.unwrap();
        for (mut stream, turns) in [(first, 2), (second, 1)] {
            let mut kinds = Vec::new();
            while let Some(item) = in_time(stream.next()).await {
                kinds.push(kind(&item.unwrap()));
            }
            let count = |wanted| kinds.iter().filter(|kind| *kind == wanted).count();
            assert_eq!((count("result"), count("assistant")), (turns, turns));
            assert!(kinds.iter().all(|kind| !kind.starts_with("control_")), "{kinds:?}");
        }
    });
}

#[test]
fn turn_contains_only_its_own_items() {
    let script = || Script::new().when("one", [Reply::text("1")]).when("two", [Reply::text("2")]);
    on_all(script, async |harness| {
        let session = start(harness.options()).await;
        for (prompt, answer) in [("one", "1"), ("two", "2")] {
            let mut turn = session.send(prompt).await.unwrap();
            let mut kinds = Vec::new();
            while let Some(item) = in_time(turn.next()).await {
                let item = item.unwrap();
                if let Some(Body::Assistant(assistant)) =
                    item.message().map(|message| &message.body)
                {
                    assert_eq!(assistant.text(), answer);
                }
                kinds.push(kind(&item));
            }
            assert_eq!(kinds.last().map(String::as_str), Some("result"), "{kinds:?}");
            assert_eq!(kinds.iter().filter(|kind| *kind == "result").count(), 1);
            // Items that were already read are included.
            assert_eq!(turn.finish().await.unwrap().text, answer);
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn new_event_stream_begins_with_the_current_state() {
    on_all(hello, async |harness| {
        let session = Session::open(harness.options()).await.unwrap();
        let mut early = session.events();
        session.ready().await.unwrap();
        let mut late = session.events();
        assert!(matches!(late.next().await, Some(SessionState::Running)));
        session.end_input().await.unwrap();
        let mut names = Vec::new();
        while let Some(event) = in_time(early.next()).await {
            let name = format!("{event:?}");
            names.push(name.split('(').next().unwrap().to_owned());
        }
        let expected = ["Starting", "Initializing", "Running", "Completed"];
        // The stream starts with the state at the time it was created.
        assert!(
            expected.ends_with(&names.iter().map(String::as_str).collect::<Vec<_>>()),
            "{names:?}"
        );
        assert!(matches!(late.next().await, Some(SessionState::Completed(_))));
        assert!(late.next().await.is_none());
        // The final state is always delivered.
        let mut after = session.events();
        assert!(matches!(after.next().await, Some(SessionState::Completed(_))));
        assert!(after.next().await.is_none());
    });
}

#[test]
fn turn_started_by_the_cli_has_an_origin() {
    let script = || {
        let input = json!({"description": "Greet", "prompt": "greet the world",
                           "subagent_type": "general-purpose", "run_in_background": true});
        Script::new()
            .when("greet the world", [Reply::text("Greeted.").hold()])
            .otherwise([Reply::tool("Agent", input), Reply::text("Done.")])
    };
    on_both(script, async |harness| {
        let session = start(harness.options()).await;
        let mut messages = session.messages();
        let outcome = turn(&session, "delegate").await;
        assert!(outcome.result.origin.is_none());
        // The background agent sends its request at its own pace.
        let is_agents = |prompt: &String| prompt.contains("greet the world");
        in_time(harness.api().wait_for_request(|request| request.prompts().iter().any(is_agents)))
            .await;
        harness.api().release_held();
        find(&mut messages, is_result).await;
        let own = find(&mut messages, is_result).await;
        let Some(Body::Result(result)) = own.message().map(|message| &message.body) else {
            panic!("{own:?}")
        };
        let origin = result.origin.as_ref().unwrap();
        assert_eq!(origin.kind.as_ref().unwrap().as_str(), "task-notification");
        assert!(result.user_message_uuids.as_slice().is_empty());
        session.stop().await.unwrap();
    });
}

#[test]
fn images_and_documents_reach_the_model() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let document = json!({
            "type": "document", "title": "A tale",
            "source": {"type": "text", "media_type": "text/plain", "data": "Once upon a time."},
        });
        let document: ContentBlock = serde_json::from_str(&document.to_string()).unwrap();
        let image = ContentBlock::Image(ImageBlock::base64("image/png", PNG));
        let blocks = vec![ContentBlock::text("what is this?"), image, document];
        let outcome = in_time(session.send(blocks).await.unwrap().finish()).await.unwrap();
        assert_eq!(outcome.text, "Hello.");
        for part in ["image/png", "what is this?", "Once upon a time."] {
            assert!(model_received(&harness, part), "{part}");
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn empty_prompt_is_rejected_before_it_is_sent() {
    in_memory(hello(), async |harness| {
        let session = start(harness.options()).await;
        for empty in ["", "  \n"] {
            let error = session.send(empty).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        }
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}
