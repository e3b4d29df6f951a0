//! How sessions start and end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use claude_agent_kit::Exit;
use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::{
    ErrorKind, Include, Limits, Options, Permission, Session, SessionState, Timeouts,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::exists;

use crate::fake_cli;
use crate::helpers::{Notes, is_delta, kind, on_both, start, touch_script, turn};
use crate::support::{
    FakeProgram, HANDSHAKE, LIMIT, SHORT, SIM, faulty, hello, in_time, on_all, real, run, until,
};

/// Compiles only if a handle can be shared between tasks and threads.
const fn assert_shareable<T: Clone + Send + Sync + 'static>() {}
const _: () = assert_shareable::<Session>();

/// Returns all states from now on.
pub(crate) async fn remaining_states(session: &Session) -> Vec<SessionState> {
    let mut events = session.events();
    let mut seen = Vec::new();
    while let Some(event) = in_time(events.next()).await {
        seen.push(event);
    }
    seen
}

fn story_script() -> Script {
    Script::new().otherwise([Reply::text("Once upon a time there was").deltas_of(5).hold()])
}

#[test]
fn killed_cli_fails_all_waiters_immediately_and_loses_nothing() {
    run(async {
        for harness in [
            Harness::sim_process(story_script(), SIM).await.unwrap(),
            Harness::real(story_script(), real()).await.unwrap(),
        ] {
            let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
            let mut messages = session.messages();
            let mut running = session.send("story").await.unwrap();
            while !is_delta(&in_time(running.next()).await.unwrap().unwrap()) {}
            let pid = session.pid().unwrap();
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            assert!(killed.success());
            // An operation that is sent while the CLI dies fails, whichever comes first.
            let error = in_time(session.mcp().status()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed);
            assert_eq!(error.exit(), Some(Exit::Signal(9)), "{error}");
            let error = in_time(running.finish()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed);
            assert_eq!(error.exit(), Some(Exit::Signal(9)));
            let last = remaining_states(&session).await.pop();
            assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
            let mut read = Vec::new();
            let error = loop {
                match in_time(messages.next()).await.unwrap() {
                    Ok(item) => read.push(kind(&item)),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::ProcessFailed);
            assert!(read.iter().any(|kind| kind == "stream_event"), "{read:?}");
            assert!(messages.next().await.is_none());
            assert_eq!(session.stop().await.unwrap_err().kind(), ErrorKind::ProcessFailed);
            until("the process is reaped", || !exists(pid)).await;
        }
    });
}

#[test]
fn stop_leaves_a_complete_transcript_on_disk() {
    /// Returns the text of all transcripts below a directory.
    fn transcripts(directory: &Path) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                text.push_str(&transcripts(&path));
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
        text
    }
    let script =
        || Script::new().when("one", [Reply::text("first")]).when("two", [Reply::text("second")]);
    run(async {
        let harness = Harness::real(script(), real()).await.unwrap();
        let session = start(harness.options()).await;
        turn(&session, "one please").await;
        // The session is stopped as soon as the result has arrived.
        let running = session.send("two please").await.unwrap();
        in_time(running.finish()).await.unwrap();
        in_time(session.stop()).await.unwrap();
        let kept = transcripts(harness.root());
        for text in ["one please", "first", "two please", "second"] {
            assert!(kept.contains(text), "{text} is missing in {kept}");
        }
        for line in kept.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "cut off: {line}");
        }
    });
}

#[test]
fn pending_operations_fail_when_the_cli_exits() {
    run(async {
        let (session, mut cli) = fake_cli::connect(Options::new()).await;
        let operations: Vec<_> = (0..10)
            .map(|_| {
                let session = session.clone();
                tokio::spawn(async move { session.mcp().status().await })
            })
            .collect();
        for _ in 0..10 {
            cli.expect_request("mcp_status").await;
        }
        cli.exit(Exit::Code(3));
        for operation in operations {
            let error = in_time(operation).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
            assert_eq!(error.operation(), Some("mcp_status"));
        }
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
        let late = in_time(session.mcp().status()).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TransportClosed);
    });
}

/// Returns a CLI that runs `then` after the handshake and one further line.
fn cli_after_a_request(then: &str) -> FakeProgram {
    FakeProgram::new(&format!("{HANDSHAKE}{then}"))
}

#[test]
fn pending_operation_error_contains_a_late_exit_status() {
    fake_cli::on_paused_clock(async {
        let (session, mut cli) = fake_cli::connect(Options::new()).await;
        let dies = async {
            cli.expect_request("mcp_status").await;
            cli.close_stdout();
            tokio::time::sleep(Duration::from_secs(1)).await;
            cli.write_stderr("no space left\n").await;
            cli.exit(Exit::Code(3));
        };
        let (status, ()) = tokio::join!(session.mcp().status(), dies);
        let error = status.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
        assert_eq!(error.exit(), Some(Exit::Code(3)), "{error}");
        assert_eq!(error.stderr_tail(), Some("no space left\n"), "{error}");
    });
}

#[test]
fn operations_fail_quickly_if_the_cli_closed_stdout_and_lives() {
    run(async {
        let fake = cli_after_a_request("exec >&-; read -r more");
        let session =
            start(fake.options().timeouts(Timeouts::new().exit_grace(Duration::from_secs(3600))))
                .await;
        // The first operation waits briefly for the exit of the CLI, the later ones do not.
        for _ in 0..50 {
            let error = in_time(session.mcp().status()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
            assert_eq!(error.exit(), None, "{error}");
        }
        assert!(exists(session.pid().unwrap()));
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn pending_operation_fails_at_exit_even_if_messages_are_unread() {
    let flood = "i=0; while [ $i -lt 200 ]; do echo '{\"type\":\"system\",\"subtype\":\"x\"}'; \
                 i=$((i+1)); done; exit 3";
    run(async {
        let fake = cli_after_a_request(flood);
        let session = start(
            fake.options()
                .limits(Limits::new().backlog_soft_bytes(500).backlog_hard_bytes(1_000_000)),
        )
        .await;
        let messages = session.messages();
        let error = in_time(session.mcp().status()).await.unwrap_err();
        assert_eq!(error.exit(), Some(Exit::Code(3)), "{error}");
        drop(messages);
    });
}

#[test]
fn crash_during_the_handshake_fails_all_waiters() {
    run(async {
        let fake = FakeProgram::new(
            "read -r line; until [ -e go ]; do sleep 0.01; done; echo 'no licence' >&2; exit 7",
        );
        let session = Session::open(fake.options()).await.unwrap();
        // The CLI exits when all three are waiting.
        let go = async { std::fs::write(fake.sibling("go"), "").unwrap() };
        let (ready, status, sent, ()) = in_time(async {
            tokio::join!(session.ready(), session.mcp().status(), session.send("x"), go)
        })
        .await;
        let error = ready.unwrap_err();
        assert_eq!(
            (error.kind(), error.exit()),
            (ErrorKind::ExitedDuringInit, Some(Exit::Code(7)))
        );
        assert!(error.stderr_tail().unwrap().contains("no licence"));
        assert_eq!(status.unwrap_err().kind(), ErrorKind::NotInitialized);
        assert!(sent.is_err());
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
    });
}

#[test]
fn handshake_without_a_response_times_out() {
    run(async {
        let harness = faulty(Faults::new().before("control_response", Fault::Hang)).await;
        // The operations do not wait for the exit of the process.
        let options = harness
            .options()
            .timeouts(Timeouts::new().initialize(SHORT).exit_grace(Duration::from_secs(3600)));
        let session = Session::open(options).await.unwrap();
        let error = in_time(session.ready()).await.unwrap_err();
        assert_eq!((error.kind(), error.limit()), (ErrorKind::InitializeTimeout, Some(SHORT)));
        let error = in_time(session.mcp().status()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInitialized);
    });
}

#[test]
fn rejected_handshake_is_reported_immediately() {
    run(async {
        let options =
            Options::new().timeouts(Timeouts::new().exit_grace(Duration::from_secs(3600)));
        let (session, mut cli) = fake_cli::open(options).await;
        let request = cli.expect_request("initialize").await;
        cli.respond_error(&request, "you are not welcome").await;
        let error = in_time(session.ready()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeRejected);
        assert!(error.to_string().contains("you are not welcome"), "{error}");
        let error = in_time(session.send("hello")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInitialized, "{error}");
        cli.exit(Exit::Code(0));
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
    });
}

#[test]
fn guard_needs_a_cli_that_supports_fail_closed_hooks() {
    run(async {
        let options = Options::new().on(PreToolUse.fail_closed(), |_, _| async {});
        let (session, mut cli) = fake_cli::open(options).await;
        let request = cli.expect_request("initialize").await;
        assert_eq!(request["request"]["hooks"]["PreToolUse"][0]["onFailure"], "block");
        cli.respond(&request, serde_json::json!({})).await;
        let error = in_time(session.ready()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeRejected, "{error}");
    });
}

#[test]
fn dropping_the_last_handle_ends_the_cli() {
    run(async {
        for harness in [
            Harness::sim_process(story_script(), SIM).await.unwrap(),
            Harness::real(story_script(), real()).await.unwrap(),
        ] {
            let session = start(harness.options().include(Include::PARTIAL_MESSAGES)).await;
            let pid = session.pid().unwrap();
            let (other, messages) = (session.clone(), session.messages());
            let mut running = session.send("story").await.unwrap();
            drop(session);
            drop(other);
            drop(messages);
            // A turn is a handle too.
            while !is_delta(&in_time(running.next()).await.unwrap().unwrap()) {}
            assert!(exists(pid));
            drop(running);
            until("the process ends and is reaped", || !exists(pid)).await;
        }
    });
}

#[test]
fn session_is_stopped_once_by_concurrent_stops() {
    on_all(hello, async |harness| {
        let session = start(harness.options()).await;
        turn(&session, "hello").await;
        let mut events = session.events();
        assert!(matches!(events.next().await, Some(SessionState::Running)));
        let stops: Vec<_> = (0..8)
            .map(|_| {
                let session = session.clone();
                tokio::spawn(async move { session.stop().await })
            })
            .collect();
        for stopped in stops {
            assert_eq!(in_time(stopped).await.unwrap().unwrap(), Some(Exit::Code(0)));
        }
        assert_eq!(session.stop().await.unwrap(), Some(Exit::Code(0)));
        assert!(matches!(events.next().await, Some(SessionState::Stopping)));
        assert!(matches!(events.next().await, Some(SessionState::Stopped(Some(Exit::Code(0))))));
        assert!(events.next().await.is_none());
        for error in [
            session.send("more").await.unwrap_err(),
            session.mcp().status().await.unwrap_err(),
            session.end_input().await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::SessionStopped, "{error}");
        }
    });
}

#[test]
fn dropping_the_stop_future_does_not_cancel_the_stop() {
    on_both(hello, async |harness| {
        let session = start(harness.options()).await;
        let stopping = session.clone();
        let stop = tokio::spawn(async move { stopping.stop().await });
        until("the stop has begun", || format!("{session:?}").contains("Stop")).await;
        stop.abort();
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Stopped(_))), "{last:?}");
    });
}

#[test]
fn callback_can_stop_its_own_session() {
    on_both(touch_script, async |harness| {
        let handle: Notes<Session> = Notes::new();
        let ours = handle.clone();
        let options = harness.options().can_use_tool(move |_, _| {
            let session = ours.all().pop();
            async move {
                session.unwrap().stop().await.unwrap();
                Permission::allow()
            }
        });
        let session = start(options).await;
        handle.add(session.clone());
        let running = session.send("run it").await.unwrap();
        // The turn is interrupted, or the session ends before its result.
        drop(in_time(running.finish()).await);
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Stopped(_))), "{last:?}");
        assert!(!harness.project().join("made").exists());
    });
}

#[test]
fn end_input_completes_the_session() {
    on_all(hello, async |harness| {
        let session = start(harness.options()).await;
        let running = session.send("hello").await.unwrap();
        session.end_input().await.unwrap();
        let error = session.mcp().status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputEnded, "{error}");
        let error = session.send("more").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputEnded, "{error}");
        // The running turn is completed.
        assert_eq!(in_time(running.finish()).await.unwrap().text, "Hello.");
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Completed(Some(Exit::Code(0))))), "{last:?}");
        let error = session.mcp().status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputEnded, "{error}");
        assert_eq!(session.stop().await.unwrap(), Some(Exit::Code(0)));
    });
}

#[test]
fn exit_1_after_an_error_result_completes_the_session_and_others_fail_it() {
    let refused = Script::new().otherwise([Reply::error(400, "invalid_request_error", "no")]);
    run(async {
        let harness = Harness::real(refused, real()).await.unwrap();
        let session = start(harness.options()).await;
        assert!(turn(&session, "hello").await.result.is_error());
        session.end_input().await.unwrap();
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Completed(Some(Exit::Code(1))))), "{last:?}");
        for (exit, ends_input, failed) in [
            (Exit::Code(0), true, false),
            (Exit::Code(1), true, true),
            (Exit::Signal(9), true, true),
            (Exit::Code(0), false, true),
        ] {
            let (session, cli) = fake_cli::connect(Options::new()).await;
            if ends_input {
                session.end_input().await.unwrap();
            }
            cli.exit(exit);
            let last = remaining_states(&session).await.pop();
            let is_failed = matches!(last, Some(SessionState::Failed(_)));
            assert_eq!(is_failed, failed, "{exit:?} {last:?}");
        }
    });
}

#[test]
fn stop_fails_pending_operations() {
    run(async {
        let (session, mut cli) =
            fake_cli::connect(Options::new().timeouts(Timeouts::new().exit_grace(LIMIT))).await;
        let handle_clone = session.clone();
        let status = tokio::spawn(async move { handle_clone.mcp().status().await });
        cli.expect_request("mcp_status").await;
        let stopping = session.clone();
        let stop = tokio::spawn(async move { stopping.stop().await });
        let error = in_time(status).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SessionStopped);
        assert!(cli.next_line().await.is_none());
        cli.exit(Exit::Code(5));
        assert_eq!(in_time(stop).await.unwrap().unwrap(), Some(Exit::Code(5)));
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Stopped(Some(Exit::Code(5))))), "{last:?}");
    });
}

#[test]
fn stop_interrupts_the_running_turn_and_sends_no_more_responses() {
    run(async {
        let options = Options::new().timeouts(Timeouts::new().exit_grace(LIMIT));
        let options = options.can_use_tool(|_, _| async { Permission::allow() });
        let (session, mut cli) = fake_cli::connect(options).await;
        let running = session.send("hello").await.unwrap();
        let user = cli.read_line().await;
        cli.send_lifecycle(&user, "started").await;
        cli.request_permission("before").await;
        assert_eq!(cli.read_line().await["response"]["request_id"], "before");
        let stopping = session.clone();
        let stop = tokio::spawn(async move { stopping.stop().await });
        let interrupt = cli.expect_request("interrupt").await;
        cli.request_permission("after").await;
        cli.send_text("one more thing").await;
        cli.respond(&interrupt, serde_json::json!({"still_queued": []})).await;
        cli.send_result(&user).await;
        assert!(cli.next_line().await.is_none(), "stdin is closed and nothing was answered");
        cli.exit(Exit::Code(0));
        in_time(stop).await.unwrap().unwrap();
        assert_eq!(in_time(running.finish()).await.unwrap().text, "one more thing");
    });
}
