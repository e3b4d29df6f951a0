//! The end of a query, for each row of the termination table, on the simulated CLI.

use std::time::Duration;

use claude_agent_kit::Exit;
use claude_agent_kit::{Collected, ErrorKind, Limits, Timeouts, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults, Point};
use tests_e2e::harness::Harness;

use crate::support::{
    FakeProgram, HANDSHAKE, LIMIT, RESULT, SHORT, ask, codes, count, error_of, faulty,
    faulty_process, hello, in_time, kind_of, run,
};

/// Runs a query in memory on a CLI that has these faults and exits by itself.
async fn run_with(faults: Faults) -> Collected {
    ask("hello", faulty(faults).await.options().timeouts(Timeouts::new().exit_grace(LIMIT))).await
}

/// Runs a query on a process that has these faults and exits by itself.
async fn run_process_with(faults: &str) -> Collected {
    ask("hello", faulty_process(faults).await.options().timeouts(Timeouts::new().exit_grace(LIMIT)))
        .await
}

/// Runs a query in memory on a CLI that has these faults and must be stopped.
async fn run_until_stopped(faults: Faults) -> Collected {
    ask("hello", faulty(faults).await.options().timeouts(Timeouts::new().exit_grace(SHORT))).await
}

/// Runs a query on a process that has these faults and must be stopped.
async fn run_process_until_stopped(faults: &str) -> Collected {
    ask("hello", faulty_process(faults).await.options().timeouts(Timeouts::new().exit_grace(SHORT)))
        .await
}

/// Script lines that close stdout and keep running.
const CLOSE_STDOUT_AND_LIVE: &str = "exec 1>&-; while :; do sleep 0.05; done";

fn assert_finished(collected: &Collected, warnings: &[WarningCode]) {
    assert_eq!(codes(collected), warnings);
    assert!(collected.error.is_none(), "{:?}", collected.error);
}

/// Returns a model that immediately replies with an error.
fn error_script() -> Script {
    let error = Reply::error(400, "invalid_request_error", "no").header("x-should-retry", "false");
    Script::new().otherwise([error])
}

#[test]
fn query_ends_with_result_exit_and_eof() {
    run(async {
        for collected in [run_with(Faults::new()).await, run_process_with("").await] {
            assert_finished(&collected, &[]);
            assert_eq!(count(&collected, "result"), 1);
            assert_eq!(collected.text(), "Hello.");
        }
    });
}

#[test]
fn messages_after_a_result_are_delivered_without_a_warning() {
    run(async {
        let collected = run_with(Faults::new().after("result", Fault::Messages(3))).await;
        assert_finished(&collected, &[]);
        assert_eq!(count(&collected, "assistant"), 4);
        let place = |kind| collected.messages().rposition_of(kind);
        assert!(place("assistant") > place("result"));
    });
}

/// Finds the position of the last message of a type.
trait LastPosition {
    fn rposition_of(self, kind: &str) -> Option<usize>;
}

impl<'a, I: Iterator<Item = &'a claude_wire::Message>> LastPosition for I {
    fn rposition_of(self, kind: &str) -> Option<usize> {
        let of_kind = self.enumerate().filter(|(_, message)| message.body.kind() == Some(kind));
        of_kind.last().map(|(at, _)| at)
    }
}

#[test]
fn control_frames_are_not_delivered() {
    run(async {
        for collected in [run_with(Faults::new()).await, run_process_with("").await] {
            for message in collected.messages() {
                let raw = message.raw_str().unwrap();
                assert!(!raw.contains("\"sdk_host_only\":true"), "{raw}");
                assert!(!raw.contains("\"control_response\""), "{raw}");
            }
        }
    });
}

#[test]
fn failing_exit_after_a_success_result_is_a_warning() {
    run(async {
        let after = |fault| Faults::new().after("result", fault);
        for (collected, exit) in [
            (run_with(after(Fault::Exit(3))).await, Exit::Code(3)),
            (run_with(after(Fault::Signal(11))).await, Exit::Signal(11)),
            (run_process_with("after result exit 3").await, Exit::Code(3)),
            (run_process_with("after result signal SIGKILL").await, Exit::Signal(9)),
        ] {
            assert_finished(&collected, &[WarningCode::NonZeroExitAfterResult]);
            assert_eq!(collected.warnings().next().unwrap().exit(), Some(exit));
            assert!(!collected.result().unwrap().is_error());
        }
    });
}

#[test]
fn failing_exit_after_an_error_result_is_expected() {
    run(async {
        for faults in [Faults::new(), Faults::new().after("result", Fault::Exit(7))] {
            let harness = Harness::faulty(error_script(), faults).await.unwrap();
            let collected = ask("hello", harness.options()).await;
            assert_finished(&collected, &[]);
            assert!(collected.result().unwrap().is_error());
        }
        let harness = Harness::sim_process(error_script(), crate::support::SIM).await.unwrap();
        let mut stream = claude_agent_kit::query("hello", harness.options()).await.unwrap();
        while let Some(item) = stream.next().await {
            assert!(item.unwrap().warning().is_none());
        }
        assert_eq!(stream.close().await, Some(Exit::Code(1)));
    });
}

#[test]
fn failing_exit_is_an_error_in_strict_mode() {
    run(async {
        let harness = faulty(Faults::new().after("result", Fault::Exit(3))).await;
        let collected = ask("hello", harness.options().strict_exit_status(true)).await;
        let error = error_of(&collected);
        assert_eq!((error.kind(), error.exit()), (ErrorKind::NonZeroExit, Some(Exit::Code(3))));
        assert!(error.help().is_some(), "{error}");
        assert_eq!(codes(&collected), []);
        assert!(collected.result().is_some(), "the result is delivered anyway");
        // After an error result the exit status adds nothing.
        let harness = Harness::faulty(error_script(), Faults::new()).await.unwrap();
        assert_finished(&ask("hello", harness.options().strict_exit_status(true)).await, &[]);
    });
}

#[test]
fn grandchild_that_holds_stdout_open_is_a_warning() {
    run(async {
        let after = run_process_with("after result leave-grandchild 20s").await;
        assert_finished(&after, &[WarningCode::StdoutHeldOpen]);
        assert!(after.result().is_some());
        let before = run_process_with("before assistant leave-grandchild 20s").await;
        let expected = [WarningCode::StdoutHeldOpen, WarningCode::ExitWithoutResult];
        assert_finished(&before, &expected);
        // A CLI that fails before its result and leaves an orphan process.
        let fake =
            FakeProgram::new(&format!("{HANDSHAKE} echo '{{\"type\":\"x\"}}'; sleep 20 & exit 4"));
        let collected = ask("hello", fake.options()).await;
        let error = error_of(&collected);
        assert_eq!((error.kind(), error.exit()), (ErrorKind::ProcessFailed, Some(Exit::Code(4))));
    });
}

#[test]
fn orphan_that_floods_a_pipe_does_not_delay_the_end() {
    // On one thread, a task that does not yield blocks all others.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for place in ["", ">&2"] {
        let endless = format!("yes '{{\"type\":\"auth_status\"}}' {place} & exit 0");
        let fake = FakeProgram::new(&format!("{HANDSHAKE}{RESULT}{endless}"));
        runtime.block_on(in_time(async {
            let mut stream = claude_agent_kit::query("hello", fake.options()).await.unwrap();
            let mut warnings = Vec::new();
            // The items are dropped, because there are many of them.
            while let Some(item) = stream.next().await {
                warnings.extend(item.unwrap().warning().map(claude_agent_kit::Warning::code));
            }
            let held = [WarningCode::StdoutHeldOpen];
            assert_eq!(warnings, if place.is_empty() { &held[..] } else { &[] });
        }));
    }
}

#[test]
fn process_that_lives_after_result_and_eof_is_stopped() {
    run(async {
        let faults = Faults::new().after("result", Fault::CloseStdout).after("result", Fault::Hang);
        let fake = FakeProgram::new(&format!("{HANDSHAKE}{RESULT}{CLOSE_STDOUT_AND_LIVE}"));
        let by_shell =
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT))).await;
        for collected in [run_until_stopped(faults).await, by_shell] {
            assert_finished(&collected, &[WarningCode::StoppedAfterResult]);
            assert!(collected.result().is_some());
        }
    });
}

/// Returns the second state report, which is that the CLI is idle.
fn when_idle() -> Point {
    Point::After("system/session_state_changed".to_owned(), 2)
}

#[test]
fn stdin_is_closed_after_a_result_and_a_cli_that_ignores_it_is_stopped() {
    run(async {
        let deaf = run_until_stopped(Faults::new().at(when_idle(), Fault::Hang)).await;
        assert_finished(&deaf, &[WarningCode::StoppedAfterResult]);
        let deaf = run_process_until_stopped("after system/session_state_changed 2 hang").await;
        assert_finished(&deaf, &[WarningCode::StoppedAfterResult]);
        // For a CLI that reports no state, the result ends the turn.
        let fake = FakeProgram::new(&format!(
            "{HANDSHAKE}{RESULT} read -r more; echo '{{\"type\":\"auth_status\"}}'"
        ));
        let collected =
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(LIMIT))).await;
        assert_finished(&collected, &[]);
        assert_eq!(count(&collected, "auth_status"), 1, "the CLI reports the end of its stdin");
    });
}

#[test]
fn cli_that_never_reports_idle_has_until_the_ceiling() {
    run(async {
        let idle = Point::Before("system/session_state_changed".to_owned(), 2);
        let harness = faulty(Faults::new().at(idle, Fault::Swallow)).await;
        let options =
            harness.options().timeouts(Timeouts::new().exit_grace(LIMIT).background_ceiling(SHORT));
        assert_finished(&ask("hello", options).await, &[WarningCode::StoppedAfterResult]);
    });
}

#[test]
fn successful_exit_without_a_result_is_a_warning() {
    run(async {
        for collected in [
            run_with(Faults::new().before("result", Fault::Exit(0))).await,
            run_process_with("before result exit 0").await,
        ] {
            assert_finished(&collected, &[WarningCode::ExitWithoutResult]);
            assert!(collected.result().is_none());
            assert_eq!(collected.text(), "Hello.", "earlier items are delivered");
        }
    });
}

#[test]
fn successful_exit_without_output_is_a_warning() {
    run(async {
        let fake = FakeProgram::new("exit 0");
        let collected = ask("hello", fake.options().print_mode(true)).await;
        assert_finished(&collected, &[WarningCode::EmptyOutput]);
        assert_eq!(collected.items.len(), 1);
        // The row applies with a handshake too.
        assert_finished(&ask("hello", fake.options()).await, &[WarningCode::EmptyOutput]);
        let collected = run_with(Faults::new().at_start(Fault::Exit(0))).await;
        assert_finished(&collected, &[WarningCode::EmptyOutput]);
    });
}

#[test]
fn failing_exit_without_a_result_is_an_error_with_details() {
    run(async {
        let before = |fault| Faults::new().before("result", fault);
        for (collected, exit) in [
            (run_with(before(Fault::Exit(3))).await, Exit::Code(3)),
            (run_with(before(Fault::Signal(11))).await, Exit::Signal(11)),
            (run_process_with("before result stderr 200 exit 3").await, Exit::Code(3)),
            (run_process_with("before result stderr 200 signal SIGKILL").await, Exit::Signal(9)),
        ] {
            let error = error_of(&collected);
            assert_eq!((error.kind(), error.exit()), (ErrorKind::ProcessFailed, Some(exit)));
            assert!(!error.stopped_by_sdk());
            assert!(error.session_id().is_some(), "the session can be resumed");
            assert_eq!(codes(&collected), []);
            assert_eq!(collected.text(), "Hello.", "earlier items are delivered");
        }
        let loud = run_process_with("before result stderr 200 exit 3").await;
        let error = error_of(&loud);
        assert!(error.stderr_tail().unwrap().contains("flood its stderr"));
        assert!(error.to_string().contains("flood its stderr"), "{error}");
    });
}

#[test]
fn process_that_closed_stdout_without_a_result_is_stopped_with_an_error() {
    run(async {
        let faults =
            Faults::new().before("assistant", Fault::CloseStdout).before("assistant", Fault::Hang);
        let fake = FakeProgram::new(&format!(
            "{HANDSHAKE} echo '{{\"type\":\"x\"}}'\n{CLOSE_STDOUT_AND_LIVE}"
        ));
        let by_shell =
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT))).await;
        for collected in [run_until_stopped(faults).await, by_shell] {
            let error = error_of(&collected);
            assert_eq!(error.kind(), ErrorKind::ProcessFailed);
            assert!(error.stopped_by_sdk(), "{error}");
            assert!(error.exit().is_some());
        }
    });
}

#[test]
fn silent_cli_is_awaited_unless_there_is_an_idle_timeout() {
    run(async {
        let held = || Script::new().otherwise([Reply::text("Finally.").hold()]);
        let harness = Harness::in_memory(held()).await.unwrap();
        // Zero disables the timeout.
        let options = harness.options().timeouts(Timeouts::new().idle(Duration::ZERO));
        let mut stream = claude_agent_kit::query("hello", options).await.unwrap();
        harness.api().wait_for_request(|_| true).await;
        while let Ok(item) = tokio::time::timeout(SHORT, stream.next()).await {
            item.unwrap().unwrap();
        }
        // The CLI was silent for longer than that, without an effect.
        harness.api().release_held();
        let collected = stream.collect().await;
        assert_finished(&collected, &[]);
        assert_eq!(collected.text(), "Finally.");

        let harness = Harness::in_memory(held()).await.unwrap();
        let options = harness.options().timeouts(Timeouts::new().idle(SHORT).exit_grace(SHORT));
        let collected = ask("hello", options).await;
        assert_eq!(kind_of(&collected), Some(ErrorKind::IdleTimeout));
        assert!(collected.result().is_none());
    });
}

#[test]
fn cli_that_ignores_sigterm_is_killed() {
    run(async {
        let faults = Faults::new()
            .after("result", Fault::IgnoreTerminate)
            .after("result", Fault::CloseStdout)
            .after("result", Fault::Hang);
        let fake =
            FakeProgram::new(&format!("trap '' TERM\n{HANDSHAKE}{RESULT}{CLOSE_STDOUT_AND_LIVE}"));
        let (in_memory, by_sim, by_shell) = tokio::join!(
            run_until_stopped(faults),
            run_process_until_stopped("after system/session_state_changed 2 ignore-sigterm hang"),
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT))),
        );
        for collected in [in_memory, by_sim, by_shell] {
            assert_finished(&collected, &[WarningCode::StoppedAfterResult]);
        }
    });
}

#[test]
fn nothing_is_an_error_after_a_result() {
    run(async {
        let faults = Faults::new()
            .after("result", Fault::Bytes(b"garbage\n".repeat(7)))
            .after("result", Fault::LongLine(200_000))
            .after("result", Fault::Bytes(b"{\"type\":\"assi".to_vec()))
            .after("result", Fault::Exit(9));
        let harness = faulty(faults).await;
        let collected =
            ask("hello", harness.options().limits(Limits::new().max_line_bytes(100_000))).await;
        let mut expected = vec![WarningCode::Malformed; 7];
        expected.extend([WarningCode::OversizedLine, WarningCode::NonZeroExitAfterResult]);
        assert_finished(&collected, &expected);
    });
}

#[test]
fn undecodable_result_still_counts_as_a_result() {
    run(async {
        let strange = b"{\"type\":\"result\",\"is_error\":false,\"session_id\":{}}\n".to_vec();
        let faults = Faults::new()
            .before("result", Fault::Bytes(strange))
            .before("result", Fault::Bytes(b"garbage\n".repeat(7)))
            .before("result", Fault::Exit(0));
        let collected = run_with(faults).await;
        assert_finished(&collected, &[WarningCode::Malformed; 7]);
        assert_eq!(count(&collected, "result"), 1);
    });
}

#[test]
fn last_of_several_results_is_the_final_one() {
    run(in_time(async {
        let second = b"{\"type\":\"result\",\"is_error\":true,\"result\":\"second\"}\n".to_vec();
        let faults = Faults::new().after("result", Fault::Bytes(second));
        let harness = faulty(faults.clone()).await;
        let stream = claude_agent_kit::query("hello", harness.options()).await.unwrap();
        let collected = stream.collect().await;
        assert_eq!(collected.result().unwrap().result.as_deref(), Some("second"));
        // The exit is judged by the last result.
        assert_finished(&run_with(faults.after("result", Fault::Exit(1))).await, &[]);
    }));
}

#[test]
fn maximum_duration_disables_a_timeout() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let options = harness.options().timeouts(
            Timeouts::new()
                .idle(Duration::MAX)
                .exit_grace(Duration::MAX)
                .initialize(Duration::MAX)
                .background_ceiling(Duration::MAX),
        );
        assert_finished(&ask("hello", options).await, &[]);
    });
}
