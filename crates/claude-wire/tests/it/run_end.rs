//! The termination table, row by row, and in random orders.

use std::time::Duration;

use claude_wire::Envelope;
use claude_wire::session::{Ending, Exit, RunEnd, RunEndLimits, RunEvent, RunStep, RunWarning};
use proptest::prelude::*;

/// What happens in a run; times are in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Line(&'static str),
    Eof,
    Exit(i32),
    Signal(i32),
    Opened,
    Closed,
    Pass(u64),
}
use Happens::{Closed, Eof, Line, Opened, Pass, Signal};

const ANSWER: Happens = Line(r#"{"type":"assistant"}"#);
const RESULT: Happens = Line(r#"{"type":"result","is_error":false}"#);
const ERROR: Happens = Line(r#"{"type":"result","is_error":true}"#);
const RUNNING: Happens =
    Line(r#"{"type":"system","subtype":"session_state_changed","state":"running"}"#);
const IDLE: Happens = Line(r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#);
const AGENT: Happens =
    Line(r#"{"type":"system","subtype":"task_started","task_id":"a","task_type":"local_agent"}"#);
const SHELL: Happens =
    Line(r#"{"type":"system","subtype":"task_started","task_id":"s","task_type":"local_bash"}"#);
const AGENT_DONE: Happens =
    Line(r#"{"type":"system","subtype":"task_notification","task_id":"a","status":"completed"}"#);

/// Plays a run; the steps that were more than going on, and the time of the last deadline.
fn play(events: &[Happens]) -> Vec<RunStep> {
    let mut run = RunEnd::new(RunEndLimits::default());
    let mut now = Duration::ZERO;
    let mut steps = Vec::new();
    for event in events {
        let step = match event {
            Line(line) => run.on(&RunEvent::Line(&Envelope::read(line.as_bytes()).unwrap()), now),
            Eof => run.on(&RunEvent::EndOfOutput, now),
            Happens::Exit(code) => run.on(&RunEvent::Exited(Exit::Code(*code)), now),
            Signal(signal) => run.on(&RunEvent::Exited(Exit::Signal(*signal)), now),
            Opened => run.on(&RunEvent::CallbackOpened, now),
            Closed => run.on(&RunEvent::CallbackClosed, now),
            Pass(time) => {
                now += Duration::from_millis(*time);
                run.on(&RunEvent::Tick, now)
            }
        };
        if !matches!(step, RunStep::GoOn(_)) {
            steps.push(step);
        }
    }
    steps
}

fn finished(warnings: &[RunWarning]) -> RunStep {
    RunStep::End(Ending::Finished(warnings.to_vec()))
}

/// The last step, which must be the end.
fn ends(events: &[Happens]) -> RunStep {
    play(events).pop().unwrap_or(RunStep::GoOn(None))
}

#[test]
fn a_result_and_an_exit_are_a_good_end() {
    assert_eq!(ends(&[ANSWER, RESULT, Eof, Happens::Exit(0)]), finished(&[]));
    assert_eq!(ends(&[ANSWER, RESULT, Happens::Exit(0), Eof]), finished(&[]));
    // A second turn of a background agent changes nothing.
    assert_eq!(ends(&[RESULT, ANSWER, RESULT, Eof, Happens::Exit(0)]), finished(&[]));
}

#[test]
fn an_exit_that_is_no_success_is_told_unless_the_result_said_so() {
    let told = |exit| finished(&[RunWarning::NonZeroExitAfterResult(exit)]);
    assert_eq!(ends(&[RESULT, Eof, Happens::Exit(1)]), told(Exit::Code(1)));
    assert_eq!(ends(&[RESULT, Eof, Signal(9)]), told(Exit::Signal(9)));
    assert_eq!(ends(&[ERROR, Eof, Happens::Exit(1)]), finished(&[]));
    // The last result counts.
    assert_eq!(ends(&[ERROR, RESULT, Eof, Happens::Exit(1)]), told(Exit::Code(1)));
}

#[test]
fn an_exit_without_a_result_is_told_or_is_an_error() {
    assert_eq!(ends(&[ANSWER, Eof, Happens::Exit(0)]), finished(&[RunWarning::ExitWithoutResult]));
    assert_eq!(ends(&[Eof, Happens::Exit(0)]), finished(&[RunWarning::EmptyOutput]));
    let failed =
        |exit, stopped, silent| RunStep::End(Ending::ProcessFailed { exit, stopped, silent });
    assert_eq!(ends(&[Eof, Happens::Exit(1)]), failed(Exit::Code(1), false, true));
    assert_eq!(ends(&[ANSWER, Eof, Signal(15)]), failed(Exit::Signal(15), false, false));
}

#[test]
fn an_unknown_exit_after_a_result_is_a_good_end_and_without_one_an_error() {
    let ends = |lines: &[&str]| {
        let mut run = RunEnd::new(RunEndLimits::default());
        for line in lines {
            let envelope = Envelope::read(line.as_bytes()).unwrap();
            run.on(&RunEvent::Line(&envelope), Duration::ZERO);
        }
        run.on(&RunEvent::EndOfOutput, Duration::ZERO);
        run.on(&RunEvent::Exited(Exit::Unknown), Duration::ZERO)
    };
    assert_eq!(ends(&[r#"{"type":"result","is_error":false}"#]), finished(&[]));
    let exit = Exit::Unknown;
    let failed = Ending::ProcessFailed { exit, stopped: false, silent: false };
    assert_eq!(ends(&[r#"{"type":"assistant"}"#]), RunStep::End(failed));
}

#[test]
fn output_that_ends_before_the_process_gives_it_a_grace() {
    assert_eq!(play(&[ANSWER, Eof, Pass(4_999)]), []);
    let stopped = play(&[ANSWER, Eof, Pass(5_000), Happens::Exit(143)]);
    let exit = Exit::Code(143);
    assert_eq!(
        stopped,
        [RunStep::Stop, RunStep::End(Ending::ProcessFailed { exit, stopped: true, silent: false })]
    );
    let after_result = play(&[RUNNING, RESULT, Eof, Pass(5_000), Happens::Exit(143)]);
    assert_eq!(after_result, [RunStep::Stop, finished(&[RunWarning::StoppedAfterResult])]);
}

#[test]
fn a_stdout_that_is_held_open_is_read_while_bytes_come_and_not_for_ever() {
    let held = finished(&[RunWarning::StdoutHeldOpen]);
    assert_eq!(play(&[RUNNING, RESULT, Happens::Exit(0), Pass(99)]), []);
    assert_eq!(ends(&[RUNNING, RESULT, Happens::Exit(0), Pass(100)]), held);
    // Each byte gives it another 100 ms.
    assert_eq!(play(&[RUNNING, RESULT, Happens::Exit(0), Pass(90), ANSWER, Pass(90)]), []);
    // But two seconds are all.
    let mut flood = vec![RUNNING, RESULT, Happens::Exit(0)];
    for _ in 0..25 {
        flood.extend([Pass(80), ANSWER]);
    }
    assert_eq!(ends(&flood), held);
    // What arrives behind the exit counts: the result is decoded before the exit is acted on.
    assert_eq!(ends(&[Happens::Exit(0), RESULT, Eof]), finished(&[]));
}

#[test]
fn stdin_is_closed_when_the_cli_is_idle_after_a_result() {
    let close = [RunStep::CloseInput];
    assert_eq!(play(&[RUNNING, RESULT]), []);
    assert_eq!(play(&[RUNNING, RESULT, IDLE]), close);
    // Idle before any result is not the end.
    assert_eq!(play(&[IDLE, ANSWER]), []);
    // A CLI that reports no state is done with its result, unless an agent works.
    assert_eq!(play(&[RESULT]), close);
    assert_eq!(play(&[AGENT, RESULT]), []);
    assert_eq!(play(&[AGENT, RESULT, AGENT_DONE]), close);
    assert_eq!(play(&[SHELL, RESULT]), close);
    // Nor while the host owes an answer.
    assert_eq!(play(&[Opened, RESULT]), []);
    assert_eq!(play(&[Opened, RESULT, Closed]), close);
}

#[test]
fn a_turn_that_begins_after_stdin_was_closed_may_be_finished() {
    assert_eq!(play(&[RUNNING, RESULT, IDLE, RUNNING, Pass(60_000)]), [RunStep::CloseInput]);
    let done = [RUNNING, RESULT, IDLE, RUNNING, Pass(60_000), RESULT, IDLE];
    assert_eq!(play(&[&done[..], &[Pass(4_999)]].concat()), [RunStep::CloseInput]);
    assert_eq!(play(&[&done[..], &[Pass(5_000)]].concat()), [RunStep::CloseInput, RunStep::Stop]);
}

#[test]
fn background_work_holds_a_run_up_to_the_ceiling() {
    assert_eq!(play(&[RUNNING, RESULT, Pass(599_999)]), []);
    assert_eq!(
        play(&[RUNNING, RESULT, Pass(600_000), Happens::Exit(143), Eof]),
        [RunStep::Stop, finished(&[RunWarning::StoppedAfterResult])]
    );
}

#[test]
fn a_shell_holds_a_run_only_if_it_is_asked_to() {
    let second = Duration::from_secs(1);
    let line = |text: &str| -> Vec<u8> { text.as_bytes().to_vec() };
    let lines = [
        line(
            r#"{"type":"system","subtype":"task_started","task_id":"b1","task_type":"local_bash"}"#,
        ),
        line(r#"{"type":"result","is_error":false}"#),
        line(r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#),
        line(
            r#"{"type":"system","subtype":"task_notification","task_id":"b1","status":"completed"}"#,
        ),
    ];
    for (waits, closes_at) in [(false, 1), (true, 3)] {
        let mut limits = RunEndLimits::default();
        limits.wait_for_shells = waits;
        let mut run = RunEnd::new(limits);
        let steps = lines
            .iter()
            .map(|line| run.on(&RunEvent::Line(&Envelope::read(line).unwrap()), second));
        let closes: Vec<bool> = steps.map(|step| step == RunStep::CloseInput).collect();
        assert_eq!(closes.iter().position(|closes| *closes), Some(closes_at), "{waits}");
    }
}

#[test]
fn silence_is_no_end_unless_a_limit_says_so() {
    assert_eq!(play(&[ANSWER, Pass(86_400_000)]), []);
    let mut limits = RunEndLimits::default();
    limits.idle_timeout = Some(Duration::from_secs(60));
    let mut run = RunEnd::new(limits);
    assert_eq!(
        run.on(&RunEvent::OtherOutput, Duration::ZERO),
        RunStep::GoOn(Some(Duration::from_secs(60)))
    );
    assert_eq!(run.on(&RunEvent::Tick, Duration::from_secs(60)), RunStep::Stop);
    let step = run.on(&RunEvent::Exited(Exit::Code(143)), Duration::from_secs(61));
    assert!(matches!(step, RunStep::GoOn(_)));
    let step = run.on(&RunEvent::EndOfOutput, Duration::from_secs(61));
    assert_eq!(step, RunStep::End(Ending::IdleTimeout));
}

fn event() -> impl Strategy<Value = Happens> {
    prop_oneof![
        Just(ANSWER),
        Just(RESULT),
        Just(ERROR),
        Just(RUNNING),
        Just(IDLE),
        Just(AGENT),
        Just(AGENT_DONE),
        Just(SHELL),
        Just(Eof),
        Just(Happens::Exit(0)),
        Just(Happens::Exit(1)),
        Just(Signal(9)),
        Just(Opened),
        Just(Closed),
        (0_u64..700_000).prop_map(Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn in_any_order_a_run_ends_once_and_results_are_never_errors(
        events in proptest::collection::vec(event(), 0..20),
    ) {
        let mut whole = events.clone();
        // Whatever came before, the process ends and its output too.
        whole.extend([Happens::Exit(0), Eof, Pass(10_000)]);
        let steps = play(&whole);
        prop_assert!(matches!(steps.last(), Some(RunStep::End(_))), "{steps:?}");
        let closes = steps.iter().filter(|step| **step == RunStep::CloseInput).count();
        let stops = steps.iter().filter(|step| **step == RunStep::Stop).count();
        prop_assert!(closes <= 1 && stops <= 1, "{steps:?}");
        let exit = whole.iter().position(|event| matches!(event, Happens::Exit(_) | Signal(_)));
        let had_result = whole[..exit.unwrap()].iter().any(|event| {
            matches!(event, Line(line) if line.contains("\"result\""))
        });
        if had_result {
            prop_assert!(matches!(steps.last(), Some(RunStep::End(Ending::Finished(_)))), "{steps:?}");
        }
    }
}

#[test]
fn more_tasks_than_are_told_apart_still_hold_the_run() {
    const TASKS: usize = 5_000;
    let task = |subtype: &str, number: usize| {
        format!(
            r#"{{"type":"system","subtype":"{subtype}","task_id":"{number}","task_type":"local_agent","status":"completed"}}"#
        )
    };
    let mut run = RunEnd::new(RunEndLimits::default());
    let mut on = |line: &str| {
        run.on(&RunEvent::Line(&Envelope::read(line.as_bytes()).unwrap()), Duration::ZERO)
    };
    for number in 0..TASKS {
        on(&task("task_started", number));
    }
    assert!(matches!(on(r#"{"type":"result"}"#), RunStep::GoOn(_)));
    for number in 1..TASKS {
        assert!(matches!(on(&task("task_notification", number)), RunStep::GoOn(_)), "{number}");
    }
    assert_eq!(on(&task("task_notification", 0)), RunStep::CloseInput);
}
