//! How a session ends: by stop, by the end of its input, by itself.

use claude_agent_core::session::{Event, Plan, RunMode};
use claude_wire::Exit;

use crate::session_harness::{
    ANSWER, Harness, INIT, hook, lifecycle, permission, result_for, session_state, success,
    with_callbacks,
};

#[test]
fn idle_session_is_stopped_by_closing_stdin() {
    let mut harness = Harness::session();
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
    // Reading goes on.
    assert_eq!(harness.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert_eq!(harness.end_process(0), ["end Stopped"]);
    assert_eq!(harness.machine.wake_at(), None);
    // Nothing comes after the end.
    assert!(harness.line(ANSWER).is_empty());
    assert!(harness.handle(Event::Tick).is_empty());
}

#[test]
fn process_that_does_not_exit_is_terminated_then_killed() {
    let mut harness = Harness::session();
    harness.stop();
    assert!(harness.advance(4_999).is_empty());
    assert_eq!(harness.advance(1), ["terminate"]);
    assert!(harness.advance(4_999).is_empty());
    assert_eq!(harness.advance(1), ["kill"]);
    assert!(harness.advance(100_000).is_empty());
    let exit = Exit::Signal(9);
    assert!(harness.handle(Event::Exited(exit)).is_empty());
    assert_eq!(harness.advance(100), ["end Stopped"]);
}

#[test]
fn stop_interrupts_a_running_turn_and_waits_for_its_result() {
    let mut harness = Harness::session();
    harness.send(1, "m");
    harness.line(&lifecycle("m", "started"));
    assert_eq!(harness.stop(), ["state Stopping", "request req_2_00000000 interrupt"]);
    assert!(harness.line(&success("req_2_00000000", "{}")).is_empty());
    assert!(harness.advance(999).is_empty());
    let result = result_for(&["m"]);
    assert_eq!(
        harness.line(&result),
        [format!("deliver {result}"), "turn m ended with []".to_owned(), "close stdin".to_owned()]
    );
    assert_eq!(harness.end_process(1), ["end Stopped"]);
}

#[test]
fn stop_waits_at_most_a_second_for_a_turn() {
    let mut harness = Harness::session();
    harness.line(&session_state("running"));
    assert_eq!(harness.stop(), ["state Stopping", "request req_2_00000000 interrupt"]);
    assert!(harness.advance(999).is_empty());
    assert_eq!(harness.advance(1), ["close stdin"]);
    assert_eq!(harness.advance(5_000), ["terminate"]);
    // A message that waited inside the CLI and was dropped is no turn to wait for.
    let mut harness = Harness::session();
    harness.send(1, "m");
    assert_eq!(harness.stop().len(), 2);
    assert!(harness.line(&lifecycle("m", "cancelled")).contains(&"close stdin".to_owned()));
    // Nor is one whose end cannot be seen.
    let mut harness = Harness::session();
    harness.send(1, "m");
    harness.stop();
    assert_eq!(harness.eof(), ["close stdin"]);
}

#[test]
fn an_idle_session_is_not_interrupted() {
    let mut harness = Harness::session();
    harness.line(&session_state("running"));
    harness.line(&session_state("idle"));
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
}

const TURN_BEGINS: &str = r#"{"type":"system","subtype":"init"}"#;

/// A session whose only turn has its result, and whose CLI is not idle yet.
fn after_a_result() -> Harness {
    let mut harness = Harness::session();
    harness.send(1, "m");
    harness.line(&session_state("running"));
    harness.line(TURN_BEGINS);
    harness.line(&result_for(&["m"]));
    harness
}

#[test]
fn a_stop_after_the_result_waits_for_idle_and_interrupts_nothing() {
    let mut harness = after_a_result();
    assert_eq!(harness.stop(), ["state Stopping"]);
    assert_eq!(harness.line(&session_state("idle")), ["close stdin"]);
    // The same lines are written if the stop comes after that.
    let mut harness = after_a_result();
    harness.line(&session_state("idle"));
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
}

#[test]
fn stop_after_the_result_waits_for_idle_for_a_limited_time() {
    let mut harness = after_a_result();
    harness.stop();
    assert!(harness.advance(999).is_empty());
    assert_eq!(harness.advance(1), ["close stdin"]);
    let mut harness = after_a_result();
    harness.stop();
    assert_eq!(harness.eof(), ["close stdin"]);
}

#[test]
fn a_stop_after_the_result_interrupts_a_turn_that_the_cli_begins_by_itself() {
    for begins in [TURN_BEGINS.to_owned(), session_state("running")] {
        let mut harness = after_a_result();
        harness.stop();
        let effects = harness.line(&begins);
        assert_eq!(effects.last().unwrap(), "request req_2_00000000 interrupt", "{effects:?}");
        let result = result_for(&[]);
        assert_eq!(harness.line(&result), [format!("deliver {result}"), "close stdin".to_owned()]);
    }
}

#[test]
fn stop_after_a_result_interrupts_a_queued_turn() {
    let mut harness = after_a_result();
    harness.send(2, "n");
    assert_eq!(harness.stop(), ["state Stopping", "request req_2_00000000 interrupt"]);
}

#[test]
fn a_stop_before_the_handshake_ends_interrupts_nothing() {
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    harness.effects();
    harness.interrupt(1);
    harness.send(2, "m");
    assert_eq!(
        harness.stop(),
        ["state Stopping", "1: rejected Stopped", "2: rejected Stopped", "close stdin"]
    );
    assert!(harness.line(&success(INIT, "{}")).is_empty(), "nobody cares any more");
    assert_eq!(harness.end_process(0), ["end Stopped"]);
}

#[test]
fn a_session_is_stopped_once() {
    let mut harness = Harness::session();
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
    assert!(harness.stop().is_empty());
    assert_eq!(harness.end_process(0), ["end Stopped"]);
    assert!(harness.stop().is_empty());
}

#[test]
fn pending_operations_are_rejected_as_stopped() {
    let mut harness = Harness::session();
    harness.interrupt(1);
    assert_eq!(harness.stop(), ["state Stopping", "1: rejected Stopped", "close stdin"]);
    assert_eq!(harness.interrupt(3), ["3: rejected Stopped"]);
}

#[test]
fn requests_get_no_response_while_the_session_is_being_stopped() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 1;
    let mut harness = Harness::ready(plan);
    harness.line(&hook("a", "hook_0"));
    harness.line(&permission("b"));
    assert_eq!(harness.stop(), ["state Stopping", "cancel 1", "close stdin"]);
    // What arrives is not run, and what ends is not answered.
    assert!(harness.line(&hook("c", "hook_0")).is_empty());
    assert!(harness.line(&permission("d")).is_empty());
    assert!(harness.respond(1, "{}").is_empty());
    assert_eq!(harness.end_process(0), ["end Stopped"]);
}

#[test]
fn callbacks_that_still_run_at_the_end_are_aborted() {
    let mut harness = Harness::ready(with_callbacks());
    harness.line(&hook("a", "hook_0"));
    harness.line(&permission("b"));
    harness.line(&crate::session_harness::cancel("b"));
    assert_eq!(
        harness.end_process(1),
        [
            "cancel 1",
            "abort 1",
            "abort 2",
            "end Failed(Process { exit: Code(1), stopped: false, silent: false })",
        ]
    );
}

#[test]
fn ended_input_lets_the_cli_finish() {
    let mut harness = Harness::ready(with_callbacks());
    harness.interrupt(1);
    harness.line(&hook("a", "hook_0"));
    assert_eq!(harness.end_input(2), ["2: InputEnded", "close stdin", "cancel 1"]);
    assert_eq!(harness.end_input(3), ["3: InputEnded"]);
    assert!(harness.line(&hook("b", "hook_0")).is_empty());
    // What was asked before may still be answered.
    assert_eq!(harness.line(&success("req_2_00000000", "{}")), ["1: Response(Some({}))"]);
    assert_eq!(harness.advance(60_000), ["abort 1"]);
    assert_eq!(harness.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert!(
        harness.finish_callback(1, claude_agent_core::session::CallbackOutcome::Aborted).is_empty()
    );
    assert_eq!(harness.end_process(0), ["end Completed"]);
}

#[test]
fn stdin_is_closed_after_everything_that_was_sent() {
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    harness.effects();
    harness.send(1, "m");
    assert_eq!(harness.end_input(2), ["2: InputEnded"]);
    assert_eq!(
        harness.line(&success(INIT, "{}")),
        ["state Running", "send m", "1: Sent", "close stdin"]
    );
    // Also when it waits for room, or is given up.
    let mut plan = Plan::new(RunMode::Session);
    plan.limits.unwritten_bytes = 1;
    let mut harness = Harness::ready(plan);
    assert!(harness.send(1, "a").is_empty());
    assert!(harness.send(2, "b").is_empty());
    assert_eq!(harness.end_input(3), ["3: InputEnded"]);
    assert_eq!(harness.handle(Event::Written(1_000)), ["send a", "1: Sent"]);
    assert_eq!(harness.forget(2), ["close stdin"]);
}

#[test]
fn a_stop_after_the_end_of_the_input_does_not_wait_for_the_turn() {
    let mut harness = Harness::session();
    harness.send(1, "m");
    harness.end_input(2);
    assert_eq!(harness.stop(), ["state Stopping"]);
    assert_eq!(harness.advance(5_000), ["terminate"]);
    assert_eq!(harness.end_process(143), ["end Stopped"]);
}

#[test]
fn crash_is_reported_after_all_earlier_messages() {
    let mut harness = Harness::ready(with_callbacks());
    harness.interrupt(1);
    harness.send(2, "m");
    assert!(harness.handle(Event::Exited(Exit::Signal(11))).is_empty());
    assert_eq!(harness.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert!(harness.line(&hook("a", "hook_0")).is_empty(), "nobody would read the answer");
    assert_eq!(
        harness.eof(),
        [
            "end Failed(Process { exit: Signal(11), stopped: false, silent: false })",
            r#"1: rejected Closed("the CLI closed stdout")"#,
        ]
    );
    // An output that another process holds open is read while bytes come, not for ever.
    let mut harness = Harness::session();
    harness.interrupt(1);
    harness.exit(0);
    for _ in 0..19 {
        assert!(harness.advance(99).is_empty());
        assert_eq!(harness.line(ANSWER).len(), 1);
    }
    harness.advance(99);
    assert_eq!(harness.line(ANSWER).len(), 1);
    // Two seconds are all.
    assert_eq!(
        harness.advance(20),
        [
            "end Failed(Process { exit: Code(0), stopped: false, silent: false })",
            r#"1: rejected Closed("the CLI exited with exit code 0")"#,
        ]
    );
}

#[test]
fn process_that_closes_stdout_without_exiting_is_stopped() {
    let mut harness = Harness::session();
    harness.interrupt(1);
    harness.handle(Event::StdoutEnded(Some("bad descriptor".to_owned())));
    assert_eq!(harness.machine.evidence().read_error.as_deref(), Some("bad descriptor"));
    assert_eq!(harness.advance(4_999), [r#"1: rejected Closed("the CLI closed stdout")"#]);
    assert_eq!(harness.advance(1), ["close stdin", "terminate"]);
    assert_eq!(harness.advance(5_000), ["kill"]);
    assert_eq!(
        harness.exit(137),
        ["end Failed(Process { exit: Code(137), stopped: true, silent: false })"]
    );
}

#[test]
fn broken_stdin_gives_the_process_a_grace_period() {
    let mut harness = Harness::ready(with_callbacks());
    harness.interrupt(1);
    harness.line(&hook("a", "hook_0"));
    let broken = || Event::WriteFailed("broken pipe".to_owned());
    assert_eq!(harness.handle(broken()), ["cancel 1"]);
    assert!(harness.handle(broken()).is_empty());
    // Nothing is written any more, but what comes is read.
    assert!(harness.line(&hook("b", "hook_0")).is_empty());
    assert!(harness.respond(1, "{}").is_empty());
    assert_eq!(harness.line(ANSWER).len(), 1);
    assert!(harness.advance(4_999).is_empty());
    assert_eq!(harness.advance(1), ["close stdin", "terminate"]);
    assert_eq!(
        harness.end_process(143),
        [
            "end Failed(Process { exit: Code(143), stopped: true, silent: false })",
            r#"1: rejected Closed("the CLI closed stdout")"#,
        ]
    );
    assert_eq!(harness.machine.evidence().write_error.as_deref(), Some("broken pipe"));
    // After the input was closed from here it is no news.
    let mut harness = Harness::session();
    harness.end_input(1);
    harness.handle(broken());
    assert!(harness.advance(60_000).is_empty());
}

#[test]
fn last_line_without_a_line_break_counts_if_it_is_complete() {
    let last = |line: &'static str| Event::LastLine(line.into());
    let mut harness = Harness::session();
    assert_eq!(harness.handle(last(ANSWER)), [format!("deliver {ANSWER}")]);
    let mut harness = Harness::session();
    harness.send(1, "m");
    assert_eq!(harness.handle(last(r#"{"type":"result","user_message_uuids":["m"]}"#)).len(), 3);
    // Half a line is told after a good exit, and kept for the diagnostic after a bad one.
    let half = r#"{"type":"assis"#;
    let mut harness = Harness::session();
    harness.end_input(1);
    assert!(harness.handle(last(half)).is_empty());
    assert_eq!(
        harness.end_process(0),
        [format!("warn IncompleteLastLine(b{half:?})"), "end Completed".to_owned()]
    );
    let mut harness = Harness::session();
    harness.handle(last(half));
    assert_eq!(harness.end_process(1).len(), 1);
    assert_eq!(harness.machine.evidence().last_malformed_line.as_deref(), Some(half.as_bytes()));
}

#[test]
fn the_last_session_id_is_kept() {
    let mut harness = Harness::session();
    assert_eq!(harness.machine.evidence().session_id, None);
    harness.line(r#"{"type":"system","subtype":"init","session_id":"s-1"}"#);
    harness.line(r#"{"type":"result","is_error":true,"session_id":"s-2"}"#);
    let evidence = harness.machine.evidence();
    assert_eq!(evidence.session_id.as_ref().map(AsRef::as_ref), Some("s-2"));
}

#[test]
fn ended_input_is_followed_by_completion_or_failure() {
    let ends = |result: &str, exit: Exit| {
        let mut harness = Harness::session();
        harness.line(result);
        harness.end_input(1);
        harness.eof();
        harness.handle(Event::Exited(exit)).pop().unwrap()
    };
    let failed = |exit: Exit| {
        format!("end Failed(Process {{ exit: {exit:?}, stopped: false, silent: false }})")
    };
    let good = r#"{"type":"result","is_error":false}"#;
    let error = r#"{"type":"result","is_error":true}"#;
    for result in [ANSWER, good, error] {
        assert_eq!(ends(result, Exit::Code(0)), "end Completed");
        assert_eq!(ends(result, Exit::Unknown), "end Completed");
        assert_eq!(ends(result, Exit::Code(2)), failed(Exit::Code(2)));
        assert_eq!(ends(result, Exit::Signal(9)), failed(Exit::Signal(9)));
    }
    // The CLI exits with 1 after a result that is an error.
    assert_eq!(ends(error, Exit::Code(1)), "end Completed");
    assert_eq!(ends(good, Exit::Code(1)), failed(Exit::Code(1)));
}
