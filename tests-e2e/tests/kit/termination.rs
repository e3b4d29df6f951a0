//! When a query is over, row by row of its table, on the simulation.

use std::time::Duration;

use claude_agent_kit::transport::Exit;
use claude_agent_kit::{Collected, ErrorKind, Limits, Timeouts, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults, Point};
use tests_e2e::stage::Stage;

use crate::support::{
    Fake, HANDSHAKE, LIMIT, RESULT, SHORT, ask, codes, count, error_of, faulty, faulty_process,
    hello, in_time, kind_of, run,
};

/// What a query gives on a simulation in memory with these faults, which ends by itself.
async fn with(faults: Faults) -> Collected {
    ask("hello", faulty(faults).await.options().timeouts(Timeouts::new().exit_grace(LIMIT))).await
}

/// What a query gives on a simulation as a process with these faults, which ends by itself.
async fn process_with(faults: &str) -> Collected {
    ask("hello", faulty_process(faults).await.options().timeouts(Timeouts::new().exit_grace(LIMIT)))
        .await
}

/// The same in memory, of a simulation that has to be stopped.
async fn stopped_with(faults: Faults) -> Collected {
    ask("hello", faulty(faults).await.options().timeouts(Timeouts::new().exit_grace(SHORT))).await
}

/// The same as a process.
async fn stopped_process_with(faults: &str) -> Collected {
    ask("hello", faulty_process(faults).await.options().timeouts(Timeouts::new().exit_grace(SHORT)))
        .await
}

/// Lines of a script that close stdout and go on.
const LIVE_ON: &str = "exec 1>&-; while :; do sleep 0.05; done";

fn assert_finished(collected: &Collected, warnings: &[WarningCode]) {
    assert_eq!(codes(collected), warnings);
    assert!(collected.error.is_none(), "{:?}", collected.error);
}

/// A model whose answer is an error, at once.
fn refusing() -> Script {
    let error = Reply::error(400, "invalid_request_error", "no").header("x-should-retry", "false");
    Script::new().otherwise([error])
}

#[test]
fn a_result_the_exit_and_the_end_of_output_are_the_end() {
    run(async {
        for collected in [with(Faults::new()).await, process_with("").await] {
            assert_finished(&collected, &[]);
            assert_eq!(count(&collected, "result"), 1);
            assert_eq!(collected.text(), "Hello.");
        }
    });
}

#[test]
fn messages_after_a_result_are_delivered_without_a_warning() {
    run(async {
        let collected = with(Faults::new().after("result", Fault::Messages(3))).await;
        assert_finished(&collected, &[]);
        assert_eq!(count(&collected, "assistant"), 4);
        let place = |kind| collected.messages().rposition_of(kind);
        assert!(place("assistant") > place("result"));
    });
}

/// Where the last message of a type stands.
trait Places {
    fn rposition_of(self, kind: &str) -> Option<usize>;
}

impl<'a, I: Iterator<Item = &'a claude_wire::Message>> Places for I {
    fn rposition_of(self, kind: &str) -> Option<usize> {
        let of_kind = self.enumerate().filter(|(_, message)| message.body.kind() == Some(kind));
        of_kind.last().map(|(at, _)| at)
    }
}

#[test]
fn what_is_for_the_sdk_alone_is_consumed() {
    run(async {
        for collected in [with(Faults::new()).await, process_with("").await] {
            for message in collected.messages() {
                let raw = message.raw_str().unwrap();
                assert!(!raw.contains("\"sdk_host_only\":true"), "{raw}");
                assert!(!raw.contains("\"control_response\""), "{raw}");
            }
        }
    });
}

#[test]
fn a_failing_exit_after_a_good_result_is_a_warning() {
    run(async {
        let after = |fault| Faults::new().after("result", fault);
        for (collected, exit) in [
            (with(after(Fault::Exit(3))).await, Exit::Code(3)),
            (with(after(Fault::Signal(11))).await, Exit::Signal(11)),
            (process_with("after result exit 3").await, Exit::Code(3)),
            (process_with("after result signal SIGKILL").await, Exit::Signal(9)),
        ] {
            assert_finished(&collected, &[WarningCode::NonZeroExitAfterResult]);
            assert_eq!(collected.warnings().next().unwrap().exit(), Some(exit));
            assert!(!collected.result().unwrap().is_error());
        }
    });
}

#[test]
fn after_an_error_result_a_failing_exit_is_what_is_expected() {
    run(async {
        for faults in [Faults::new(), Faults::new().after("result", Fault::Exit(7))] {
            let stage = Stage::faulty(refusing(), faults).await.unwrap();
            let collected = ask("hello", stage.options()).await;
            assert_finished(&collected, &[]);
            assert!(collected.result().unwrap().is_error());
        }
        let stage = Stage::sim_process(refusing(), crate::support::SIM).await.unwrap();
        let mut stream = claude_agent_kit::query("hello", stage.options()).await.unwrap();
        while let Some(item) = stream.next().await {
            assert!(item.unwrap().warning().is_none());
        }
        assert_eq!(stream.close().await, Some(Exit::Code(1)));
    });
}

#[test]
fn a_strict_host_gets_the_failing_exit_as_an_error() {
    run(async {
        let stage = faulty(Faults::new().after("result", Fault::Exit(3))).await;
        let collected = ask("hello", stage.options().strict_exit_status(true)).await;
        let error = error_of(&collected);
        assert_eq!((error.kind(), error.exit()), (ErrorKind::NonZeroExit, Some(Exit::Code(3))));
        assert!(error.suggestion().is_some(), "{error}");
        assert_eq!(codes(&collected), []);
        assert!(collected.result().is_some(), "the result is there all the same");
        // After an error result the exit says nothing new.
        let stage = Stage::faulty(refusing(), Faults::new()).await.unwrap();
        assert_finished(&ask("hello", stage.options().strict_exit_status(true)).await, &[]);
    });
}

#[test]
fn a_grandchild_that_holds_the_output_is_a_warning_and_then_its_row() {
    run(async {
        let after = process_with("after result leave-grandchild 20s").await;
        assert_finished(&after, &[WarningCode::StdoutHeldOpen]);
        assert!(after.result().is_some());
        let before = process_with("before assistant leave-grandchild 20s").await;
        let expected = [WarningCode::StdoutHeldOpen, WarningCode::ExitWithoutResult];
        assert_finished(&before, &expected);
        // One that fails before its result, and leaves somebody behind.
        let fake = Fake::new(&format!("{HANDSHAKE} echo '{{\"type\":\"x\"}}'; sleep 20 & exit 4"));
        let collected = ask("hello", fake.options()).await;
        let error = error_of(&collected);
        assert_eq!((error.kind(), error.exit()), (ErrorKind::ProcessFailed, Some(Exit::Code(4))));
    });
}

#[test]
fn somebody_who_fills_a_pipe_after_the_end_of_the_cli_holds_up_nobody() {
    // On one thread: whoever does not give way holds up everything.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for place in ["", ">&2"] {
        let endless = format!("yes '{{\"type\":\"auth_status\"}}' {place} & exit 0");
        let fake = Fake::new(&format!("{HANDSHAKE}{RESULT}{endless}"));
        runtime.block_on(in_time(async {
            let mut stream = claude_agent_kit::query("hello", fake.options()).await.unwrap();
            let mut warnings = Vec::new();
            // What comes is not kept: there is much of it.
            while let Some(item) = stream.next().await {
                warnings.extend(item.unwrap().warning().map(claude_agent_kit::Warning::code));
            }
            let held = [WarningCode::StdoutHeldOpen];
            assert_eq!(warnings, if place.is_empty() { &held[..] } else { &[] });
        }));
    }
}

#[test]
fn after_a_result_and_the_end_of_output_a_living_process_is_stopped() {
    run(async {
        let faults = Faults::new().after("result", Fault::CloseStdout).after("result", Fault::Hang);
        let fake = Fake::new(&format!("{HANDSHAKE}{RESULT}{LIVE_ON}"));
        let by_shell =
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT))).await;
        for collected in [stopped_with(faults).await, by_shell] {
            assert_finished(&collected, &[WarningCode::StoppedAfterResult]);
            assert!(collected.result().is_some());
        }
    });
}

/// The second report of the state is that the CLI is idle.
fn when_idle() -> Point {
    Point::After("system/session_state_changed".to_owned(), 2)
}

#[test]
fn after_a_result_the_input_is_closed_and_a_cli_that_ignores_that_is_stopped() {
    run(async {
        let deaf = stopped_with(Faults::new().at(when_idle(), Fault::Hang)).await;
        assert_finished(&deaf, &[WarningCode::StoppedAfterResult]);
        let deaf = stopped_process_with("after system/session_state_changed 2 hang").await;
        assert_finished(&deaf, &[WarningCode::StoppedAfterResult]);
        // One that reports no state is believed when it says its result.
        let fake = Fake::new(&format!(
            "{HANDSHAKE}{RESULT} read -r more; echo '{{\"type\":\"auth_status\"}}'"
        ));
        let collected =
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(LIMIT))).await;
        assert_finished(&collected, &[]);
        assert_eq!(count(&collected, "auth_status"), 1, "it saw the end of its input and said so");
    });
}

#[test]
fn a_cli_that_never_says_that_it_is_idle_has_until_the_ceiling() {
    run(async {
        let idle = Point::Before("system/session_state_changed".to_owned(), 2);
        let stage = faulty(Faults::new().at(idle, Fault::Swallow)).await;
        let options =
            stage.options().timeouts(Timeouts::new().exit_grace(LIMIT).background_ceiling(SHORT));
        assert_finished(&ask("hello", options).await, &[WarningCode::StoppedAfterResult]);
    });
}

#[test]
fn an_exit_without_a_result_is_a_warning_if_it_looks_well() {
    run(async {
        for collected in [
            with(Faults::new().before("result", Fault::Exit(0))).await,
            process_with("before result exit 0").await,
        ] {
            assert_finished(&collected, &[WarningCode::ExitWithoutResult]);
            assert!(collected.result().is_none());
            assert_eq!(collected.text(), "Hello.", "what came before is there");
        }
    });
}

#[test]
fn an_exit_without_any_output_is_a_warning_if_it_looks_well() {
    run(async {
        let fake = Fake::new("exit 0");
        let collected = ask("hello", fake.options().print_mode(true)).await;
        assert_finished(&collected, &[WarningCode::EmptyOutput]);
        assert_eq!(collected.items.len(), 1);
        // The table holds in the form with a handshake too.
        assert_finished(&ask("hello", fake.options()).await, &[WarningCode::EmptyOutput]);
        let collected = with(Faults::new().at_start(Fault::Exit(0))).await;
        assert_finished(&collected, &[WarningCode::EmptyOutput]);
    });
}

#[test]
fn a_failing_exit_without_a_result_is_an_error_with_its_reasons() {
    run(async {
        let before = |fault| Faults::new().before("result", fault);
        for (collected, exit) in [
            (with(before(Fault::Exit(3))).await, Exit::Code(3)),
            (with(before(Fault::Signal(11))).await, Exit::Signal(11)),
            (process_with("before result stderr 200 exit 3").await, Exit::Code(3)),
            (process_with("before result stderr 200 signal SIGKILL").await, Exit::Signal(9)),
        ] {
            let error = error_of(&collected);
            assert_eq!((error.kind(), error.exit()), (ErrorKind::ProcessFailed, Some(exit)));
            assert!(!error.stopped_by_sdk() && !error.stdout_was_empty());
            assert!(error.session_id().is_some(), "the session can be resumed");
            assert_eq!(codes(&collected), []);
            assert_eq!(collected.text(), "Hello.", "what came before is there");
        }
        let loud = process_with("before result stderr 200 exit 3").await;
        let error = error_of(&loud);
        assert!(error.stderr_tail().unwrap().contains("flood its stderr"));
        assert!(error.to_string().contains("flood its stderr"), "{error}");
    });
}

#[test]
fn without_a_result_a_process_that_closed_its_output_is_stopped_with_an_error() {
    run(async {
        let faults =
            Faults::new().before("assistant", Fault::CloseStdout).before("assistant", Fault::Hang);
        let fake = Fake::new(&format!("{HANDSHAKE} echo '{{\"type\":\"x\"}}'\n{LIVE_ON}"));
        let by_shell =
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT))).await;
        for collected in [stopped_with(faults).await, by_shell] {
            let error = error_of(&collected);
            assert_eq!(error.kind(), ErrorKind::ProcessFailed);
            assert!(error.stopped_by_sdk(), "{error}");
            assert!(error.exit().is_some());
        }
    });
}

#[test]
fn a_silent_cli_is_waited_for_unless_there_is_a_limit() {
    run(async {
        let held = || Script::new().otherwise([Reply::text("Finally.").hold()]);
        let stage = Stage::in_memory(held()).await.unwrap();
        // Zero is no limit.
        let options = stage.options().timeouts(Timeouts::new().idle(Duration::ZERO));
        let mut stream = claude_agent_kit::query("hello", options).await.unwrap();
        stage.api().wait_for_request(|_| true).await;
        while let Ok(item) = tokio::time::timeout(SHORT, stream.next()).await {
            item.unwrap().unwrap();
        }
        // It was silent for that long, and nothing happened.
        stage.api().release_held();
        let collected = stream.collect().await;
        assert_finished(&collected, &[]);
        assert_eq!(collected.text(), "Finally.");

        let stage = Stage::in_memory(held()).await.unwrap();
        let options = stage.options().timeouts(Timeouts::new().idle(SHORT).exit_grace(SHORT));
        let collected = ask("hello", options).await;
        assert_eq!(kind_of(&collected), Some(ErrorKind::IdleTimeout));
        assert!(collected.result().is_none());
    });
}

#[test]
fn a_child_that_ignores_sigterm_is_killed() {
    run(async {
        let faults = Faults::new()
            .after("result", Fault::IgnoreTerminate)
            .after("result", Fault::CloseStdout)
            .after("result", Fault::Hang);
        let fake = Fake::new(&format!("trap '' TERM\n{HANDSHAKE}{RESULT}{LIVE_ON}"));
        let (in_memory, by_sim, by_shell) = tokio::join!(
            stopped_with(faults),
            stopped_process_with("after system/session_state_changed 2 ignore-sigterm hang"),
            ask("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT))),
        );
        for collected in [in_memory, by_sim, by_shell] {
            assert_finished(&collected, &[WarningCode::StoppedAfterResult]);
        }
    });
}

#[test]
fn once_a_result_was_seen_nothing_becomes_an_error() {
    run(async {
        let faults = Faults::new()
            .after("result", Fault::Bytes(b"garbage\n".repeat(7)))
            .after("result", Fault::LongLine(200_000))
            .after("result", Fault::Bytes(b"{\"type\":\"assi".to_vec()))
            .after("result", Fault::Exit(9));
        let stage = faulty(faults).await;
        let collected =
            ask("hello", stage.options().limits(Limits::new().max_line_bytes(100_000))).await;
        let mut expected = vec![WarningCode::Malformed; 7];
        expected.extend([WarningCode::OversizedLine, WarningCode::NonZeroExitAfterResult]);
        assert_finished(&collected, &expected);
    });
}

#[test]
fn a_result_that_cannot_be_decoded_is_a_result_all_the_same() {
    run(async {
        let strange = b"{\"type\":\"result\",\"is_error\":false,\"session_id\":{}}\n".to_vec();
        let faults = Faults::new()
            .before("result", Fault::Bytes(strange))
            .before("result", Fault::Bytes(b"garbage\n".repeat(7)))
            .before("result", Fault::Exit(0));
        let collected = with(faults).await;
        assert_finished(&collected, &[WarningCode::Malformed; 7]);
        assert_eq!(count(&collected, "result"), 1);
    });
}

#[test]
fn the_last_of_several_results_is_the_final_one() {
    run(in_time(async {
        let second = b"{\"type\":\"result\",\"is_error\":true,\"result\":\"second\"}\n".to_vec();
        let faults = Faults::new().after("result", Fault::Bytes(second));
        let stage = faulty(faults.clone()).await;
        let stream = claude_agent_kit::query("hello", stage.options()).await.unwrap();
        let last = stream.final_result().await.unwrap().unwrap();
        assert_eq!(last.result.as_deref(), Some("second"));
        // The exit is judged by the last one.
        assert_finished(&with(faults.after("result", Fault::Exit(1))).await, &[]);
    }));
}

#[test]
fn a_limit_longer_than_time_itself_is_no_limit() {
    run(async {
        let stage = Stage::in_memory(hello()).await.unwrap();
        let options = stage.options().timeouts(
            Timeouts::new()
                .idle(Duration::MAX)
                .exit_grace(Duration::MAX)
                .initialize(Duration::MAX)
                .background_ceiling(Duration::MAX),
        );
        assert_finished(&ask("hello", options).await, &[]);
    });
}
