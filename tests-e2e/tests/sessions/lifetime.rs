//! How sessions start and end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::transport::Exit;
use claude_agent_kit::{
    ErrorKind, Include, Limits, Options, Permission, Session, SessionState, Timeouts,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::stage::Stage;
use tests_e2e::stage::processes::exists;

use crate::play::{Notes, is_piece, kind, on_both, start, touching, turn};
use crate::puppet;
use crate::support::{
    Fake, HANDSHAKE, LIMIT, SHORT, SIM, faulty, hello, in_time, on_all, real, run, until,
};

/// Compiles only if a handle can be shared between tasks and threads.
const fn can_go_everywhere<T: Clone + Send + Sync + 'static>() {}
const _: () = can_go_everywhere::<Session>();

/// Returns all states from now on.
pub(crate) async fn steps(session: &Session) -> Vec<SessionState> {
    let mut events = session.events();
    let mut seen = Vec::new();
    while let Some(event) = in_time(events.next()).await {
        seen.push(event);
    }
    seen
}

fn story() -> Script {
    Script::new().otherwise([Reply::text("Once upon a time there was").deltas_of(5).hold()])
}

#[test]
fn when_the_cli_is_killed_everybody_is_told_at_once_and_nothing_is_lost() {
    run(async {
        for stage in [
            Stage::sim_process(story(), SIM).await.unwrap(),
            Stage::real(story(), real()).await.unwrap(),
        ] {
            let session = start(stage.options().include(Include::PARTIAL_MESSAGES)).await;
            let mut messages = session.messages();
            let mut running = session.send("story").await.unwrap();
            while !is_piece(&in_time(running.next()).await.unwrap().unwrap()) {}
            let pid = session.pid().unwrap();
            let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
            assert!(killed.success());
            // An operation that is sent while the CLI dies fails, whichever comes first.
            let asked = in_time(session.mcp().status()).await.unwrap_err();
            assert_eq!(asked.kind(), ErrorKind::TransportClosed);
            assert_eq!(asked.exit(), Some(Exit::Signal(9)), "{asked}");
            let error = in_time(running.finish()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed);
            assert_eq!(error.exit(), Some(Exit::Signal(9)));
            let last = steps(&session).await.pop();
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
            until("it is reaped", || !exists(pid)).await;
        }
    });
}

#[test]
fn closing_leaves_a_complete_transcript_on_disk() {
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
        let stage = Stage::real(script(), real()).await.unwrap();
        let session = start(stage.options()).await;
        turn(&session, "one please").await;
        // The session is stopped as soon as the result has arrived.
        let running = session.send("two please").await.unwrap();
        in_time(running.finish()).await.unwrap();
        in_time(session.stop()).await.unwrap();
        let kept = transcripts(stage.root());
        for said in ["one please", "first", "two please", "second"] {
            assert!(kept.contains(said), "{said} is missing in {kept}");
        }
        for line in kept.lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "cut off: {line}");
        }
    });
}

#[test]
fn pending_operations_fail_when_the_cli_ends_under_them() {
    run(async {
        let (session, mut puppet) = puppet::running(Options::new()).await;
        let asking: Vec<_> = (0..10)
            .map(|_| {
                let session = session.clone();
                tokio::spawn(async move { session.mcp().status().await })
            })
            .collect();
        for _ in 0..10 {
            puppet.asked("mcp_status").await;
        }
        puppet.exit(Exit::Code(3));
        for asked in asking {
            let error = in_time(asked).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
            assert_eq!(error.operation(), Some("mcp_status"));
        }
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
        let late = in_time(session.mcp().status()).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TransportClosed);
    });
}

/// Returns a CLI that runs `then` after the handshake and one further line.
fn after_a_request(then: &str) -> Fake {
    Fake::new(&format!("{HANDSHAKE}{then}"))
}

#[test]
fn a_pending_operation_says_how_the_cli_died_however_late_it_says_so() {
    puppet::on_paused_clock(async {
        let (session, mut puppet) = puppet::running(Options::new()).await;
        let dies = async {
            puppet.asked("mcp_status").await;
            puppet.close_output();
            tokio::time::sleep(Duration::from_secs(1)).await;
            puppet.complain("no space left\n").await;
            puppet.exit(Exit::Code(3));
        };
        let (asked, ()) = tokio::join!(session.mcp().status(), dies);
        let error = asked.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
        assert_eq!(error.exit(), Some(Exit::Code(3)), "{error}");
        assert_eq!(error.stderr_tail(), Some("no space left\n"), "{error}");
    });
}

#[test]
fn a_cli_that_closed_its_output_and_lives_on_holds_up_nobody_for_long() {
    run(async {
        let fake = after_a_request("exec >&-; read -r more");
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
fn a_pending_operation_ends_with_the_cli_although_nobody_reads_messages() {
    let flood = "i=0; while [ $i -lt 200 ]; do echo '{\"type\":\"system\",\"subtype\":\"x\"}'; \
                 i=$((i+1)); done; exit 3";
    run(async {
        let fake = after_a_request(flood);
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
fn a_crash_in_the_handshake_is_told_to_everybody_who_waits() {
    run(async {
        let fake = Fake::new(
            "read -r line; until [ -e go ]; do sleep 0.01; done; echo 'no licence' >&2; exit 7",
        );
        let session = Session::open(fake.options()).await.unwrap();
        // The CLI exits when all three are waiting.
        let go = async { std::fs::write(fake.beside("go"), "").unwrap() };
        let (ready, asked, sent, ()) = in_time(async {
            tokio::join!(session.ready(), session.mcp().status(), session.send("x"), go)
        })
        .await;
        let error = ready.unwrap_err();
        assert_eq!(
            (error.kind(), error.exit()),
            (ErrorKind::ExitedDuringInit, Some(Exit::Code(7)))
        );
        assert!(error.stderr_tail().unwrap().contains("no licence"));
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::NotInitialized);
        assert!(sent.is_err());
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
    });
}

#[test]
fn a_handshake_without_an_answer_is_over_when_its_time_is() {
    run(async {
        let stage = faulty(Faults::new().before("control_response", Fault::Hang)).await;
        // The operations do not wait for the exit of the process.
        let options = stage
            .options()
            .timeouts(Timeouts::new().initialize(SHORT).exit_grace(Duration::from_secs(3600)));
        let session = Session::open(options).await.unwrap();
        let error = in_time(session.ready()).await.unwrap_err();
        assert_eq!((error.kind(), error.limit()), (ErrorKind::InitializeTimeout, Some(SHORT)));
        let asked = in_time(session.mcp().status()).await.unwrap_err();
        assert_eq!(asked.kind(), ErrorKind::NotInitialized);
    });
}

#[test]
fn a_handshake_that_is_refused_is_told_at_once() {
    run(async {
        let options =
            Options::new().timeouts(Timeouts::new().exit_grace(Duration::from_secs(3600)));
        let (session, mut puppet) = puppet::open(options).await;
        let request = puppet.asked("initialize").await;
        puppet.refuse(&request, "you are not welcome").await;
        let error = in_time(session.ready()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeRejected);
        assert!(error.to_string().contains("you are not welcome"), "{error}");
        let error = in_time(session.send("hello")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInitialized, "{error}");
        puppet.exit(Exit::Code(0));
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
    });
}

#[test]
fn a_guard_does_not_start_on_a_cli_that_has_none() {
    run(async {
        let options = Options::new().on(PreToolUse.fail_closed(), |_, _| async {});
        let (session, mut puppet) = puppet::open(options).await;
        let request = puppet.asked("initialize").await;
        assert_eq!(request["request"]["hooks"]["PreToolUse"][0]["onFailure"], "block");
        puppet.answer(&request, serde_json::json!({})).await;
        let error = in_time(session.ready()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeRejected, "{error}");
    });
}

#[test]
fn dropping_the_last_handle_ends_the_cli() {
    run(async {
        for stage in [
            Stage::sim_process(story(), SIM).await.unwrap(),
            Stage::real(story(), real()).await.unwrap(),
        ] {
            let session = start(stage.options().include(Include::PARTIAL_MESSAGES)).await;
            let pid = session.pid().unwrap();
            let (other, messages) = (session.clone(), session.messages());
            let mut running = session.send("story").await.unwrap();
            drop(session);
            drop(other);
            drop(messages);
            // A turn is a handle too.
            while !is_piece(&in_time(running.next()).await.unwrap().unwrap()) {}
            assert!(exists(pid));
            drop(running);
            until("it ends and is reaped", || !exists(pid)).await;
        }
    });
}

#[test]
fn a_session_is_stopped_once_however_often_it_is_asked() {
    on_all(hello, async |stage| {
        let session = start(stage.options()).await;
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
fn dropping_the_future_of_a_stop_does_not_stop_the_end() {
    on_both(hello, async |stage| {
        let session = start(stage.options()).await;
        let stopping = session.clone();
        let stop = tokio::spawn(async move { stopping.stop().await });
        until("it began", || format!("{session:?}").contains("Stop")).await;
        stop.abort();
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Stopped(_))), "{last:?}");
    });
}

#[test]
fn a_callback_may_stop_its_own_session() {
    on_both(touching, async |stage| {
        let handle: Notes<Session> = Notes::new();
        let ours = handle.clone();
        let options = stage.options().can_use_tool(move |_, _| {
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
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Stopped(_))), "{last:?}");
        assert!(!stage.project().join("made").exists());
    });
}

#[test]
fn an_input_that_is_ended_completes_the_session() {
    on_all(hello, async |stage| {
        let session = start(stage.options()).await;
        let running = session.send("hello").await.unwrap();
        session.end_input().await.unwrap();
        let error = session.mcp().status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputEnded, "{error}");
        let error = session.send("more").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputEnded, "{error}");
        // The running turn is completed.
        assert_eq!(in_time(running.finish()).await.unwrap().text, "Hello.");
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Completed(Some(Exit::Code(0))))), "{last:?}");
        let error = session.mcp().status().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputEnded, "{error}");
        assert_eq!(session.stop().await.unwrap(), Some(Exit::Code(0)));
    });
}

#[test]
fn after_a_failed_result_exit_1_completes_the_session_and_any_other_exit_fails_it() {
    let refused = Script::new().otherwise([Reply::error(400, "invalid_request_error", "no")]);
    run(async {
        let stage = Stage::real(refused, real()).await.unwrap();
        let session = start(stage.options()).await;
        assert!(turn(&session, "hello").await.result.is_error());
        session.end_input().await.unwrap();
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Completed(Some(Exit::Code(1))))), "{last:?}");
        for (exit, ends_input, failed) in [
            (Exit::Code(0), true, false),
            (Exit::Code(1), true, true),
            (Exit::Signal(9), true, true),
            (Exit::Code(0), false, true),
        ] {
            let (session, puppet) = puppet::running(Options::new()).await;
            if ends_input {
                session.end_input().await.unwrap();
            }
            puppet.exit(exit);
            let last = steps(&session).await.pop();
            let is_failed = matches!(last, Some(SessionState::Failed(_)));
            assert_eq!(is_failed, failed, "{exit:?} {last:?}");
        }
    });
}

#[test]
fn operations_that_wait_at_the_stop_are_told_so() {
    run(async {
        let (session, mut puppet) =
            puppet::running(Options::new().timeouts(Timeouts::new().exit_grace(LIMIT))).await;
        let asking = session.clone();
        let asked = tokio::spawn(async move { asking.mcp().status().await });
        puppet.asked("mcp_status").await;
        let stopping = session.clone();
        let stop = tokio::spawn(async move { stopping.stop().await });
        let error = in_time(asked).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SessionStopped);
        assert!(puppet.next().await.is_none());
        puppet.exit(Exit::Code(5));
        assert_eq!(in_time(stop).await.unwrap().unwrap(), Some(Exit::Code(5)));
        let last = steps(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Stopped(Some(Exit::Code(5))))), "{last:?}");
    });
}

#[test]
fn a_stop_interrupts_the_turn_that_runs_and_answers_nothing_more() {
    run(async {
        let options = Options::new().timeouts(Timeouts::new().exit_grace(LIMIT));
        let options = options.can_use_tool(|_, _| async { Permission::allow() });
        let (session, mut puppet) = puppet::running(options).await;
        let running = session.send("hello").await.unwrap();
        let user = puppet.hear().await;
        puppet.lifecycle(&user, "started").await;
        puppet.ask_permission("before").await;
        assert_eq!(puppet.hear().await["response"]["request_id"], "before");
        let stopping = session.clone();
        let stop = tokio::spawn(async move { stopping.stop().await });
        let interrupt = puppet.asked("interrupt").await;
        puppet.ask_permission("after").await;
        puppet.talk("one more thing").await;
        puppet.answer(&interrupt, serde_json::json!({"still_queued": []})).await;
        puppet.result(&user).await;
        assert!(puppet.next().await.is_none(), "the input is closed and nothing was answered");
        puppet.exit(Exit::Code(0));
        in_time(stop).await.unwrap().unwrap();
        assert_eq!(in_time(running.finish()).await.unwrap().text, "one more thing");
    });
}
