//! Operations on a running session, on the simulated and on the real CLI.

use std::time::{Duration, Instant};

use claude_agent_kit::{ErrorKind, Include, Limits, PermissionMode, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults};
use claude_wire::control::HostRequest;
use claude_wire::id::MessageId;
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::helpers::{calls, has_file, is_delta, on_both, start, turn};
use crate::support::{hello, in_time, on_all, run, until};

#[test]
fn interrupt_ends_a_streaming_answer() {
    let script = || {
        Script::new()
            .when("story", [Reply::text("Once upon a time there was").deltas_of(5).hold()])
            .when("again", [Reply::text("yes")])
    };
    on_all(script, async |harness| {
        let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
        let mut story = session.send("story").await.unwrap();
        while !is_delta(&in_time(story.next()).await.unwrap().unwrap()) {}
        let response = session.interrupt().await.unwrap();
        assert_eq!(response.turns, [story.message_id().clone()]);
        assert!(response.still_queued.is_empty());
        let outcome = in_time(story.finish()).await.unwrap();
        assert!(outcome.result.is_error() && outcome.is_confirmed);
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupt_ends_a_running_tool() {
    let script = || {
        Script::new()
            .when("run it", [calls(&["touch begun; sleep 60; touch ended"])])
            .when("again", [Reply::text("yes")])
    };
    on_both(script, async |harness| {
        let session = start(harness.options().allowed_tools(["Bash"])).await;
        let running = session.send("run it").await.unwrap();
        until("the tool runs", || has_file(&harness, "begun")).await;
        session.interrupt().await.unwrap();
        assert!(in_time(running.finish()).await.unwrap().result.is_error());
        assert!(!has_file(&harness, "ended"));
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupt_of_an_idle_session_has_no_effect() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let response = session.interrupt().await.unwrap();
        assert!(response.turns.is_empty() && response.still_queued.is_empty());
        let outcome = turn(&session, "hello").await;
        assert!(!outcome.result.is_error());
        assert_eq!(outcome.text, "Hello.");
        session.interrupt_all().await.unwrap();
        session.stop().await.unwrap();
    });
}

#[test]
fn set_model_applies_from_the_next_request() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let model = || harness.api().requests().last().unwrap().model().to_owned();
        turn(&session, "hello").await;
        let usual = model();
        let response = session.set_model("claude-haiku-5-5").await.unwrap();
        assert_eq!(response.model.as_deref(), Some("claude-haiku-5-5"));
        turn(&session, "hello again").await;
        assert_eq!(model(), "claude-haiku-5-5");
        session.reset_model().await.unwrap();
        turn(&session, "and again").await;
        assert_eq!(model(), usual);
        session.stop().await.unwrap();
    });
}

#[test]
fn set_permission_mode_allows_a_tool_without_a_request() {
    let script = || {
        Script::respond_with(|request| {
            if request.assistant_turns_after_last_prompt() > 0 {
                return Reply::text("Done.");
            }
            let path = request.last_prompt().unwrap_or_default();
            Reply::tool("Write", json!({"file_path": path.trim(), "content": "one\n"}))
        })
    };
    on_both(script, async |harness| {
        let session = start(harness.options()).await;
        let path = |name: &str| harness.project().join(name).to_string_lossy().into_owned();
        turn(&session, &path("before")).await;
        assert!(!has_file(&harness, "before"));
        let response = session.set_permission_mode(PermissionMode::AcceptEdits).await.unwrap();
        assert_eq!(response.mode, Some(PermissionMode::AcceptEdits));
        turn(&session, &path("after")).await;
        assert!(has_file(&harness, "after"));
        session.stop().await.unwrap();
    });
}

/// Returns a model that overwrites the notes.
fn overwrite_script(harness: &Harness) -> Script {
    let notes = harness.project().join("notes.txt");
    Script::new().otherwise([
        Reply::tool("Read", json!({"file_path": notes})),
        Reply::tool("Write", json!({"file_path": notes, "content": "after\n"})),
        Reply::text("Done."),
    ])
}

#[test]
fn rewind_files_restores_files() {
    on_both(hello, async |harness| {
        let notes = harness.project().join("notes.txt");
        std::fs::write(&notes, "before\n").unwrap();
        let text = || std::fs::read_to_string(&notes).unwrap();
        harness.api().set_script(overwrite_script(&harness));
        let options =
            harness.options().permission_mode(PermissionMode::AcceptEdits).file_checkpointing(true);
        let session = start(options).await;
        let change = session.send("change the notes").await.unwrap();
        let id = change.message_id().clone();
        change.finish().await.unwrap();
        assert_eq!(text(), "after\n");
        assert_eq!(session.preview_rewind(id.clone()).await.unwrap().can_rewind, Some(true));
        assert_eq!(text(), "after\n");
        session.rewind_files(id).await.unwrap();
        assert_eq!(text(), "before\n");
        let unknown = MessageId::from("00000000-0000-4000-8000-000000000000");
        let error = session.rewind_files(unknown).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlRejected);
        session.stop().await.unwrap();
    });
}

#[test]
fn rewind_files_needs_checkpointing() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let running = session.send("hello").await.unwrap();
        let id = running.message_id().clone();
        running.finish().await.unwrap();
        let error = session.rewind_files(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CheckpointingNotEnabled);
        assert_eq!(error.operation(), Some("rewind_files"));
        session.stop().await.unwrap();
    });
}

#[test]
fn mcp_status_and_context_usage_are_returned() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        turn(&session, "hello").await;
        assert!(session.mcp().status().await.unwrap().mcp_servers.as_slice().is_empty());
        let usage = session.context_usage().await.unwrap();
        assert!(usage.total_tokens.unwrap().as_u64() > Some(0));
        assert!(!usage.categories.as_slice().is_empty());
        // The responses to these operations have no content.
        session.set_max_thinking_tokens(Some(2_000)).await.unwrap();
        session.stop_task("nothing").await.unwrap();
        session.stop().await.unwrap();
    });
}

#[test]
fn rejected_operations_are_errors() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let error = session.set_permission_mode("nonsense").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlRejected);
        assert_eq!(error.code(), Some("invalid_mode"));
        assert_eq!(error.operation(), Some("set_permission_mode"));
        for error in [
            session.mcp().reconnect("missing").await.unwrap_err(),
            session.mcp().enable("missing").await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::ControlRejected, "{error}");
        }
        if harness.program().is_some() {
            // Bypassing permissions was not allowed at startup.
            let mode = PermissionMode::BypassPermissions;
            let error = session.set_permission_mode(mode).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ControlRejected, "{error}");
        }
        let coffee: HostRequest =
            serde_json::from_value(json!({"subtype": "make_coffee", "sugar": true})).unwrap();
        let error = session.request(coffee).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::Unsupported, Some("make_coffee"))
        );
        session.stop().await.unwrap();
    });
}

#[test]
fn a_thousand_sequential_and_sixty_concurrent_operations_succeed() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let real = harness.program().is_some();
        for _ in 0..if real { 150 } else { 1_000 } {
            session.mcp().status().await.unwrap();
        }
        // Nearly the maximum number of pending operations, from many tasks.
        let operations = (0..60).map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.mcp().status().await })
        });
        for operation in operations.collect::<Vec<_>>() {
            operation.await.unwrap().unwrap();
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn operations_before_the_handshake_wait_for_it() {
    on_both(hello, async |harness| {
        let session = Session::open(harness.options()).await.unwrap();
        let running = session.send("hello");
        let (status, running) = tokio::join!(session.mcp().status(), running);
        assert!(status.is_ok());
        assert_eq!(running.unwrap().finish().await.unwrap().text, "Hello.");
        assert!(session.server_info().is_some());
        session.ready().await.unwrap();
        session.stop().await.unwrap();
    });
}

#[test]
fn operation_without_a_response_times_out() {
    let faults = Faults::new().before("control_response/mcp_status", Fault::Swallow);
    run(async {
        let harness = Harness::faulty(hello(), faults).await.unwrap();
        let session = start(harness.options()).await;
        let limit = Duration::from_millis(100);
        let before = Instant::now();
        let error = session.with_timeout(limit).mcp().status().await.unwrap_err();
        assert!(before.elapsed() > limit / 2, "the operation waited");
        assert_eq!(error.kind(), ErrorKind::ControlTimeout);
        assert_eq!(error.operation(), Some("mcp_status"));
        assert!(error.request_id().is_some());
        session.mcp().status().await.unwrap();
        session.stop().await.unwrap();
    });
}

#[test]
fn unread_deltas_do_not_delay_an_operation() {
    for fault in [Fault::Deltas(3_000), Fault::Messages(10_000)] {
        run(async {
            let faults = Faults::new().after("system/init", fault);
            let harness = Harness::faulty(hello(), faults).await.unwrap();
            let options = harness
                .options()
                .limits(Limits::new().backlog_soft_bytes(16 * 1024).backlog_hard_bytes(1 << 30));
            let session = start(options).await;
            let mut messages = session.messages();
            let running = session.send("hello").await.unwrap();
            in_time(session.interrupt()).await.unwrap();
            in_time(session.mcp().status()).await.unwrap();
            in_time(running.finish()).await.unwrap();
            session.stop().await.unwrap();
            let mut count = 0;
            while let Some(item) = messages.next().await {
                item.unwrap();
                count += 1;
            }
            assert!(count >= 3_000, "{count}");
        });
    }
}
