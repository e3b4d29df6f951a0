//! How a session ends: by stop, by the end of its input, by itself.

use claude_wire::session::{Event, Exit, Plan, Run};

use crate::session_play::{
    ANSWER, INIT, Play, hook, lifecycle, permission, result_for, session_state, success,
    with_callbacks,
};

#[test]
fn a_session_at_rest_is_stopped_by_closing_its_input() {
    let mut play = Play::session();
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
    // Reading goes on.
    assert_eq!(play.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert_eq!(play.die(0), ["end Stopped"]);
    assert_eq!(play.machine.wake_at(), None);
    // Nothing comes after the end.
    assert!(play.line(ANSWER).is_empty());
    assert!(play.happens(Event::Tick).is_empty());
}

#[test]
fn a_process_that_does_not_end_is_terminated_and_at_last_killed() {
    let mut play = Play::session();
    play.stop();
    assert!(play.pass(4_999).is_empty());
    assert_eq!(play.pass(1), ["terminate"]);
    assert!(play.pass(4_999).is_empty());
    assert_eq!(play.pass(1), ["kill"]);
    assert!(play.pass(100_000).is_empty());
    let exit = Exit::Signal(9);
    assert!(play.happens(Event::Exited(exit)).is_empty());
    assert_eq!(play.pass(100), ["end Stopped"]);
}

#[test]
fn a_turn_that_runs_is_interrupted_and_its_result_waited_for() {
    let mut play = Play::session();
    play.send(1, "m");
    play.line(&lifecycle("m", "started"));
    assert_eq!(play.stop(), ["state Stopping", "ask req_2_00000000 interrupt"]);
    assert!(play.line(&success("req_2_00000000", "{}")).is_empty());
    assert!(play.pass(999).is_empty());
    let result = result_for(&["m"]);
    assert_eq!(
        play.line(&result),
        [format!("deliver {result}"), "turn m ended with []".to_owned(), "close input".to_owned()]
    );
    assert_eq!(play.die(1), ["end Stopped"]);
}

#[test]
fn a_turn_that_does_not_end_is_not_waited_for_longer_than_a_second() {
    let mut play = Play::session();
    play.line(&session_state("running"));
    assert_eq!(play.stop(), ["state Stopping", "ask req_2_00000000 interrupt"]);
    assert!(play.pass(999).is_empty());
    assert_eq!(play.pass(1), ["close input"]);
    assert_eq!(play.pass(5_000), ["terminate"]);
    // A message that waited inside the CLI and was dropped is no turn to wait for.
    let mut play = Play::session();
    play.send(1, "m");
    assert_eq!(play.stop().len(), 2);
    assert!(play.line(&lifecycle("m", "cancelled")).contains(&"close input".to_owned()));
    // Nor is one whose end cannot be seen.
    let mut play = Play::session();
    play.send(1, "m");
    play.stop();
    assert_eq!(play.eof(), ["close input"]);
}

#[test]
fn an_idle_session_is_not_interrupted() {
    let mut play = Play::session();
    play.line(&session_state("running"));
    play.line(&session_state("idle"));
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
}

const TURN_BEGINS: &str = r#"{"type":"system","subtype":"init"}"#;

/// A session whose only turn has its result, and whose CLI is not idle yet.
fn after_a_result() -> Play {
    let mut play = Play::session();
    play.send(1, "m");
    play.line(&session_state("running"));
    play.line(TURN_BEGINS);
    play.line(&result_for(&["m"]));
    play
}

#[test]
fn a_stop_after_the_result_waits_for_idle_and_interrupts_nothing() {
    let mut play = after_a_result();
    assert_eq!(play.stop(), ["state Stopping"]);
    assert_eq!(play.line(&session_state("idle")), ["close input"]);
    // The same lines are written if the stop comes after that.
    let mut play = after_a_result();
    play.line(&session_state("idle"));
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
}

#[test]
fn a_stop_after_the_result_does_not_wait_for_idle_for_ever() {
    let mut play = after_a_result();
    play.stop();
    assert!(play.pass(999).is_empty());
    assert_eq!(play.pass(1), ["close input"]);
    let mut play = after_a_result();
    play.stop();
    assert_eq!(play.eof(), ["close input"]);
}

#[test]
fn a_stop_after_the_result_interrupts_a_turn_that_the_cli_begins_by_itself() {
    for begins in [TURN_BEGINS.to_owned(), session_state("running")] {
        let mut play = after_a_result();
        play.stop();
        let effects = play.line(&begins);
        assert_eq!(effects.last().unwrap(), "ask req_2_00000000 interrupt", "{effects:?}");
        let result = result_for(&[]);
        assert_eq!(play.line(&result), [format!("deliver {result}"), "close input".to_owned()]);
    }
}

#[test]
fn a_stop_after_a_result_interrupts_another_turn_that_waits() {
    let mut play = after_a_result();
    play.send(2, "n");
    assert_eq!(play.stop(), ["state Stopping", "ask req_2_00000000 interrupt"]);
}

#[test]
fn a_stop_before_the_handshake_ends_interrupts_nothing() {
    let mut play = Play::of(Plan::new(Run::Session));
    play.effects();
    play.ask(1);
    play.send(2, "m");
    assert_eq!(
        play.stop(),
        ["state Stopping", "1: refused Stopped", "2: refused Stopped", "close input"]
    );
    assert!(play.line(&success(INIT, "{}")).is_empty(), "nobody cares any more");
    assert_eq!(play.die(0), ["end Stopped"]);
}

#[test]
fn a_session_is_stopped_once() {
    let mut play = Play::session();
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
    assert!(play.stop().is_empty());
    assert_eq!(play.die(0), ["end Stopped"]);
    assert!(play.stop().is_empty());
}

#[test]
fn pending_operations_are_told_that_the_session_was_stopped() {
    let mut play = Play::session();
    play.ask(1);
    assert_eq!(play.stop(), ["state Stopping", "1: refused Stopped", "close input"]);
    assert_eq!(play.ask(3), ["3: refused Stopped"]);
}

#[test]
fn no_request_is_answered_once_the_session_is_being_stopped() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 1;
    let mut play = Play::ready(plan);
    play.line(&hook("a", "hook_0"));
    play.line(&permission("b"));
    assert_eq!(play.stop(), ["state Stopping", "cancel 1", "close input"]);
    // What arrives is not run, and what ends is not answered.
    assert!(play.line(&hook("c", "hook_0")).is_empty());
    assert!(play.line(&permission("d")).is_empty());
    assert!(play.answers(1, "{}").is_empty());
    assert_eq!(play.die(0), ["end Stopped"]);
}

#[test]
fn callbacks_that_still_run_at_the_end_are_aborted() {
    let mut play = Play::ready(with_callbacks());
    play.line(&hook("a", "hook_0"));
    play.line(&permission("b"));
    play.line(&crate::session_play::cancel("b"));
    assert_eq!(
        play.die(1),
        [
            "cancel 1",
            "abort 1",
            "abort 2",
            "end Failed(Process { exit: Code(1), stopped: false, silent: false })",
        ]
    );
}

#[test]
fn the_end_of_the_input_lets_the_cli_finish() {
    let mut play = Play::ready(with_callbacks());
    play.ask(1);
    play.line(&hook("a", "hook_0"));
    assert_eq!(play.end_input(2), ["2: InputEnded", "close input", "cancel 1"]);
    assert_eq!(play.end_input(3), ["3: InputEnded"]);
    assert!(play.line(&hook("b", "hook_0")).is_empty());
    // What was asked before may still be answered.
    assert_eq!(play.line(&success("req_2_00000000", "{}")), ["1: Answered(Some({}))"]);
    assert_eq!(play.pass(60_000), ["abort 1"]);
    assert_eq!(play.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert!(play.done(1, claude_wire::session::CallOutcome::Gone).is_empty());
    assert_eq!(play.die(0), ["end Completed"]);
}

#[test]
fn the_input_is_closed_after_what_was_sent_before_its_end() {
    let mut play = Play::of(Plan::new(Run::Session));
    play.effects();
    play.send(1, "m");
    assert_eq!(play.end_input(2), ["2: InputEnded"]);
    assert_eq!(
        play.line(&success(INIT, "{}")),
        ["state Running", "say m", "1: Sent", "close input"]
    );
    // Also when it waits for room, or is given up.
    let mut plan = Plan::new(Run::Session);
    plan.limits.unwritten_bytes = 1;
    let mut play = Play::ready(plan);
    assert!(play.send(1, "a").is_empty());
    assert!(play.send(2, "b").is_empty());
    assert_eq!(play.end_input(3), ["3: InputEnded"]);
    assert_eq!(play.happens(Event::Written(1_000)), ["say a", "1: Sent"]);
    assert_eq!(play.forget(2), ["close input"]);
}

#[test]
fn a_stop_after_the_end_of_the_input_does_not_wait_for_the_turn() {
    let mut play = Play::session();
    play.send(1, "m");
    play.end_input(2);
    assert_eq!(play.stop(), ["state Stopping"]);
    assert_eq!(play.pass(5_000), ["terminate"]);
    assert_eq!(play.die(143), ["end Stopped"]);
}

#[test]
fn a_crash_is_told_at_once_after_everything_that_came_before_it() {
    let mut play = Play::ready(with_callbacks());
    play.ask(1);
    play.send(2, "m");
    assert!(play.happens(Event::Exited(Exit::Signal(11))).is_empty());
    assert_eq!(play.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert!(play.line(&hook("a", "hook_0")).is_empty(), "nobody would read the answer");
    assert_eq!(
        play.eof(),
        [
            "end Failed(Process { exit: Signal(11), stopped: false, silent: false })",
            r#"1: refused Closed("the CLI closed its output")"#,
        ]
    );
    // An output that another process holds open is read while bytes come, not for ever.
    let mut play = Play::session();
    play.ask(1);
    play.exit(0);
    for _ in 0..19 {
        assert!(play.pass(99).is_empty());
        assert_eq!(play.line(ANSWER).len(), 1);
    }
    play.pass(99);
    assert_eq!(play.line(ANSWER).len(), 1);
    // Two seconds are all.
    assert_eq!(
        play.pass(20),
        [
            "end Failed(Process { exit: Code(0), stopped: false, silent: false })",
            r#"1: refused Closed("the process ended with exit code 0")"#,
        ]
    );
}

#[test]
fn a_session_that_closes_its_output_and_lives_on_is_stopped() {
    let mut play = Play::session();
    play.ask(1);
    play.happens(Event::OutputEnded(Some("bad descriptor".to_owned())));
    assert_eq!(play.machine.evidence().read_error.as_deref(), Some("bad descriptor"));
    assert_eq!(play.pass(4_999), [r#"1: refused Closed("the CLI closed its output")"#]);
    assert_eq!(play.pass(1), ["close input", "terminate"]);
    assert_eq!(play.pass(5_000), ["kill"]);
    assert_eq!(
        play.exit(137),
        ["end Failed(Process { exit: Code(137), stopped: true, silent: false })"]
    );
}

#[test]
fn a_session_whose_input_breaks_is_given_a_grace_to_end() {
    let mut play = Play::ready(with_callbacks());
    play.ask(1);
    play.line(&hook("a", "hook_0"));
    let broken = || Event::WriteFailed("broken pipe".to_owned());
    assert_eq!(play.happens(broken()), ["cancel 1"]);
    assert!(play.happens(broken()).is_empty());
    // Nothing is written any more, but what comes is read.
    assert!(play.line(&hook("b", "hook_0")).is_empty());
    assert!(play.answers(1, "{}").is_empty());
    assert_eq!(play.line(ANSWER).len(), 1);
    assert!(play.pass(4_999).is_empty());
    assert_eq!(play.pass(1), ["close input", "terminate"]);
    assert_eq!(
        play.die(143),
        [
            "end Failed(Process { exit: Code(143), stopped: true, silent: false })",
            r#"1: refused Closed("the CLI closed its output")"#,
        ]
    );
    assert_eq!(play.machine.evidence().write_error.as_deref(), Some("broken pipe"));
    // After the input was closed from here it is no news.
    let mut play = Play::session();
    play.end_input(1);
    play.happens(broken());
    assert!(play.pass(60_000).is_empty());
}

#[test]
fn a_last_line_without_a_break_counts_if_it_is_whole() {
    let last = |line: &'static str| Event::LastLine(line.into());
    let mut play = Play::session();
    assert_eq!(play.happens(last(ANSWER)), [format!("deliver {ANSWER}")]);
    let mut play = Play::session();
    play.send(1, "m");
    assert_eq!(play.happens(last(r#"{"type":"result","user_message_uuids":["m"]}"#)).len(), 3);
    // Half a line is told after a good exit, and kept for the diagnostic after a bad one.
    let half = r#"{"type":"assis"#;
    let mut play = Play::session();
    play.end_input(1);
    assert!(play.happens(last(half)).is_empty());
    assert_eq!(
        play.die(0),
        [format!("warn IncompleteLastLine(b{half:?})"), "end Completed".to_owned()]
    );
    let mut play = Play::session();
    play.happens(last(half));
    assert_eq!(play.die(1).len(), 1);
    assert_eq!(play.machine.evidence().last_other_line.as_deref(), Some(half.as_bytes()));
}

#[test]
fn the_last_session_id_is_kept() {
    let mut play = Play::session();
    assert_eq!(play.machine.evidence().session_id, None);
    play.line(r#"{"type":"system","subtype":"init","session_id":"s-1"}"#);
    play.line(r#"{"type":"result","is_error":true,"session_id":"s-2"}"#);
    let evidence = play.machine.evidence();
    assert_eq!(evidence.session_id.as_ref().map(AsRef::as_ref), Some("s-2"));
}

#[test]
fn the_end_of_the_input_is_followed_by_a_good_end_or_by_a_failure() {
    let ends = |result: &str, exit: Exit| {
        let mut play = Play::session();
        play.line(result);
        play.end_input(1);
        play.eof();
        play.happens(Event::Exited(exit)).pop().unwrap()
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
