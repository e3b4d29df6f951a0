//! The termination table of a query, row by row, and in random orders.

use std::time::Duration;

use claude_agent_core::session::{Effect, Event, Plan, QueryLimits, RunMode};
use claude_wire::Exit;
use proptest::prelude::*;

use crate::session_harness::{Harness, cancel, message, permission, shown};

/// What happens in a run; times are in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Line(&'static str),
    Eof,
    Exits(Exit),
    Opened,
    Closed,
    Pass(u64),
}
use Happens::{Closed, Eof, Exits, Line, Opened, Pass};

const fn code(code: i32) -> Happens {
    Exits(Exit::Code(code))
}

const fn signal(signal: i32) -> Happens {
    Exits(Exit::Signal(signal))
}

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
const SHELL_DONE: Happens =
    Line(r#"{"type":"system","subtype":"task_notification","task_id":"s","status":"completed"}"#);
const AGENT_DONE: Happens =
    Line(r#"{"type":"system","subtype":"task_notification","task_id":"a","status":"completed"}"#);

/// A query without a handshake, so that nothing is said before its first event.
fn query(limits: QueryLimits) -> Harness {
    let mut plan = Plan::new(RunMode::Query { prompt: Some(message("m")), limits });
    plan.initialize = None;
    plan.permissions = true;
    Harness::new(plan)
}

/// Plays a run, and returns what is done to the process and how the run ended.
fn play(events: &[Happens]) -> Vec<String> {
    play_with(QueryLimits::default(), events)
}

fn play_with(limits: QueryLimits, events: &[Happens]) -> Vec<String> {
    let mut harness = query(limits);
    let mut steps = Vec::new();
    let mut permissions = 0;
    for event in events {
        let event = match event {
            Line(line) => Event::Line((*line).into()),
            Eof => Event::StdoutEnded(None),
            Exits(exit) => Event::Exited(*exit),
            Opened => {
                permissions += 1;
                Event::Line(permission(&format!("p{permissions}")).into())
            }
            // Perhaps of one that is not open any more.
            Closed => Event::Line(cancel(&format!("p{permissions}")).into()),
            Pass(time) => {
                harness.now += Duration::from_millis(*time);
                Event::Tick
            }
        };
        harness.machine.handle(event, harness.now);
        while let Some(effect) = harness.machine.next_effect() {
            match effect {
                Effect::CloseStdin | Effect::Terminate | Effect::Warn(_) | Effect::End(_) => {
                    steps.push(shown(&effect));
                }
                _ => {}
            }
        }
    }
    steps
}

const CLOSE: &str = "close stdin";
const STOP: &str = "terminate";
const FINISHED: &str = "end Finished";

/// The end and its warnings.
fn ends(events: &[Happens]) -> Vec<String> {
    let mut steps = play(events);
    steps.retain(|step| step != CLOSE && step != STOP);
    steps
}

fn failed(exit: Exit, stopped: bool, silent: bool) -> String {
    format!("end Failed(Process {{ exit: {exit:?}, stopped: {stopped}, silent: {silent} }})")
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn result_and_successful_exit_finish_a_query() {
    assert_eq!(ends(&[ANSWER, RESULT, Eof, code(0)]), [FINISHED]);
    assert_eq!(ends(&[ANSWER, RESULT, code(0), Eof]), [FINISHED]);
    // A second turn of a background agent changes nothing.
    assert_eq!(ends(&[RESULT, ANSWER, RESULT, Eof, code(0)]), [FINISHED]);
}

#[test]
fn failed_exit_after_a_successful_result_warns() {
    let told = |exit: Exit| [format!("warn NonZeroExitAfterResult({exit:?})"), FINISHED.to_owned()];
    assert_eq!(ends(&[RESULT, Eof, code(1)]), told(Exit::Code(1)));
    assert_eq!(ends(&[RESULT, Eof, signal(9)]), told(Exit::Signal(9)));
    assert_eq!(ends(&[ERROR, Eof, code(1)]), [FINISHED]);
    // The last result counts.
    assert_eq!(ends(&[ERROR, RESULT, Eof, code(1)]), told(Exit::Code(1)));
}

#[test]
fn a_strict_query_fails_where_another_warns() {
    let mut limits = QueryLimits::default();
    limits.strict_exit_status = true;
    let ends = |events: &[Happens]| play_with(limits, events).pop().unwrap();
    assert_eq!(ends(&[RESULT, Eof, code(1)]), "end Failed(NonZeroExitAfterResult(Code(1)))");
    assert_eq!(ends(&[RESULT, Eof, code(0)]), FINISHED);
    assert_eq!(ends(&[ERROR, Eof, code(1)]), FINISHED);
}

#[test]
fn exit_without_a_result_warns_or_fails() {
    assert_eq!(ends(&[ANSWER, Eof, code(0)]), ["warn ExitWithoutResult", FINISHED]);
    assert_eq!(ends(&[Eof, code(0)]), ["warn EmptyOutput", FINISHED]);
    assert_eq!(ends(&[Eof, code(1)]), [failed(Exit::Code(1), false, true)]);
    assert_eq!(ends(&[ANSWER, Eof, signal(15)]), [failed(Exit::Signal(15), false, false)]);
}

#[test]
fn an_unknown_exit_after_a_result_is_a_good_end_and_without_one_an_error() {
    assert_eq!(ends(&[RESULT, Eof, Exits(Exit::Unknown)]), [FINISHED]);
    let without = ends(&[ANSWER, Eof, Exits(Exit::Unknown)]);
    assert_eq!(without, [failed(Exit::Unknown, false, false)]);
}

#[test]
fn closed_stdout_gives_the_process_a_grace_period() {
    assert_eq!(play(&[ANSWER, Eof, Pass(4_999)]), nothing());
    let stopped = play(&[ANSWER, Eof, Pass(5_000), code(143)]);
    assert_eq!(stopped, [CLOSE, STOP, &failed(Exit::Code(143), true, false)]);
    let after_result = play(&[RUNNING, RESULT, Eof, Pass(5_000), code(143)]);
    assert_eq!(after_result, [CLOSE, STOP, "warn StoppedAfterResult", FINISHED]);
}

#[test]
fn held_open_stdout_is_read_for_a_limited_time() {
    let held = ["warn StdoutHeldOpen", FINISHED];
    assert_eq!(play(&[RUNNING, RESULT, code(0), Pass(99)]), nothing());
    assert_eq!(ends(&[RUNNING, RESULT, code(0), Pass(100)]), held);
    // Each byte gives it another 100 ms.
    assert_eq!(play(&[RUNNING, RESULT, code(0), Pass(90), ANSWER, Pass(90)]), nothing());
    // But two seconds are all.
    let mut flood = vec![RUNNING, RESULT, code(0)];
    for _ in 0..25 {
        flood.extend([Pass(80), ANSWER]);
    }
    assert_eq!(ends(&flood), held);
    // What arrives behind the exit counts: the result is decoded before the exit is acted on.
    assert_eq!(ends(&[code(0), RESULT, Eof]), [FINISHED]);
}

#[test]
fn stdin_is_closed_when_the_cli_is_idle_after_a_result() {
    assert_eq!(play(&[RUNNING, RESULT]), nothing());
    assert_eq!(play(&[RUNNING, RESULT, IDLE]), [CLOSE]);
    // Idle before any result is not the end.
    assert_eq!(play(&[IDLE, ANSWER]), nothing());
    // A CLI that reports no state is done with its result, unless an agent works.
    assert_eq!(play(&[RESULT]), [CLOSE]);
    assert_eq!(play(&[AGENT, RESULT]), nothing());
    assert_eq!(play(&[AGENT, RESULT, AGENT_DONE]), [CLOSE]);
    assert_eq!(play(&[SHELL, RESULT]), [CLOSE]);
    // Nor while the host owes an answer.
    assert_eq!(play(&[Opened, RESULT]), nothing());
    assert_eq!(play(&[Opened, RESULT, Closed]), [CLOSE]);
}

#[test]
fn a_turn_that_begins_after_stdin_was_closed_may_be_finished() {
    assert_eq!(play(&[RUNNING, RESULT, IDLE, RUNNING, Pass(60_000)]), [CLOSE]);
    let done = [RUNNING, RESULT, IDLE, RUNNING, Pass(60_000), RESULT, IDLE];
    assert_eq!(play(&[&done[..], &[Pass(4_999)]].concat()), [CLOSE]);
    assert_eq!(play(&[&done[..], &[Pass(5_000)]].concat()), [CLOSE, STOP]);
}

#[test]
fn background_tasks_delay_the_end_up_to_the_ceiling() {
    assert_eq!(play(&[RUNNING, RESULT, Pass(599_999)]), nothing());
    assert_eq!(
        play(&[RUNNING, RESULT, Pass(600_000), code(143), Eof]),
        [CLOSE, STOP, "warn StoppedAfterResult", FINISHED]
    );
}

#[test]
fn background_shell_delays_the_end_only_if_configured() {
    for waits in [false, true] {
        let mut limits = QueryLimits::default();
        limits.wait_for_shells = waits;
        let until_idle = play_with(limits, &[SHELL, RESULT, IDLE]);
        assert_eq!(until_idle.is_empty(), waits);
        assert_eq!(play_with(limits, &[SHELL, RESULT, IDLE, SHELL_DONE]), [CLOSE]);
    }
}

#[test]
fn silence_ends_nothing_without_an_idle_timeout() {
    assert_eq!(play(&[ANSWER, Pass(86_400_000)]), nothing());
    let mut limits = QueryLimits::default();
    limits.idle_timeout = Some(Duration::from_secs(60));
    let silent = [ANSWER, Pass(60_000), code(143), Eof];
    assert_eq!(play_with(limits, &silent[..1]), nothing());
    assert_eq!(play_with(limits, &[ANSWER, Pass(59_999)]), nothing());
    assert_eq!(play_with(limits, &silent), [CLOSE, STOP, "end Failed(IdleTimeout)"]);
    // Nothing can come any more, so that it is not the silence.
    limits.idle_timeout = Some(Duration::from_secs(2));
    let closed = play_with(limits, &[ANSWER, Eof, Pass(2_000), code(143)]);
    assert_eq!(closed, [CLOSE, STOP, &failed(Exit::Code(143), true, false)]);
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
        Just(code(0)),
        Just(code(1)),
        Just(signal(9)),
        Just(Opened),
        Just(Closed),
        (0_u64..700_000).prop_map(Pass),
    ]
}

proptest! {
    #[test]
    fn in_any_order_a_run_ends_once_and_results_are_never_errors(
        events in proptest::collection::vec(event(), 0..20),
    ) {
        let mut whole = events.clone();
        // Whatever came before, the process ends and its output too.
        whole.extend([code(0), Eof, Pass(10_000)]);
        let steps = play(&whole);
        let count = |wanted: &str| steps.iter().filter(|step| step.starts_with(wanted)).count();
        prop_assert!(steps.last().is_some_and(|step| step.starts_with("end ")), "{steps:?}");
        prop_assert!(count("end ") == 1 && count(CLOSE) <= 1 && count(STOP) <= 1, "{steps:?}");
        let exit = whole.iter().position(|event| matches!(event, Exits(_)));
        let had_result = whole[..exit.unwrap()].iter().any(|event| {
            matches!(event, Line(line) if line.contains("\"result\""))
        });
        if had_result {
            prop_assert_eq!(steps.last().map(String::as_str), Some(FINISHED));
        }
    }
}

#[test]
fn tasks_beyond_the_tracked_ones_still_delay_the_end() {
    const TASKS: usize = 5_000;
    let task = |subtype: &str, number: usize| {
        format!(
            r#"{{"type":"system","subtype":"{subtype}","task_id":"{number}","task_type":"local_agent","status":"completed"}}"#
        )
    };
    let mut harness = query(QueryLimits::default());
    let mut closes = |line: &str| harness.line(line).contains(&CLOSE.to_owned());
    for number in 0..TASKS {
        closes(&task("task_started", number));
    }
    assert!(!closes(r#"{"type":"result"}"#));
    for number in 1..TASKS {
        assert!(!closes(&task("task_notification", number)), "{number}");
    }
    assert!(closes(&task("task_notification", 0)));
}
