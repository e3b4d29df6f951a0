//! A query in the machine: the prompt, the end of the input, the end of the run.

use std::time::Duration;

use claude_wire::session::{Event, Plan, QueryLimits, Run};

use crate::session_play::oversized;
use crate::session_play::{
    ANSWER, INIT, Play, RESULT, failure, message, permission, session_state, success,
};

fn plan() -> Plan {
    with_limits(QueryLimits::default())
}

fn with_limits(limits: QueryLimits) -> Plan {
    Plan::new(Run::Query { prompt: Some(message("m")), limits })
}

fn query() -> Play {
    let mut play = Play::of(plan());
    assert_eq!(play.effects(), ["state Initializing", &format!("ask {INIT} initialize")]);
    assert_eq!(play.line(&success(INIT, "{}")), ["state Running", "say m"]);
    play
}

fn delivered(line: &str) -> String {
    format!("deliver {line}")
}

#[test]
fn the_prompt_is_sent_after_the_handshake_and_the_input_closed_after_the_result() {
    let mut play = query();
    assert!(play.line(&session_state("running")).is_empty());
    assert_eq!(play.line(ANSWER), [delivered(ANSWER)]);
    assert_eq!(play.line(RESULT), [delivered(RESULT)]);
    // The state is for the host only, but the table sees it.
    assert_eq!(play.line(&session_state("idle")), ["close input"]);
    assert_eq!(play.die(0), ["end Finished"]);
    // A CLI that reports no state.
    let mut play = query();
    assert_eq!(play.line(RESULT), [&delivered(RESULT), "close input"]);
}

#[test]
fn a_query_tracks_no_turns() {
    let mut play = query();
    let result = r#"{"type":"result","user_message_uuids":["m"]}"#;
    assert_eq!(play.line(result), [&delivered(result), "close input"]);
}

#[test]
fn a_prompt_on_the_command_line_is_not_written() {
    let mut plan = Plan::new(Run::Query { prompt: None, limits: QueryLimits::default() });
    plan.initialize = None;
    let mut play = Play::of(plan);
    assert_eq!(play.effects(), ["state Running"]);
    // Nor is such a CLI told anything when it is stopped.
    play.line(&session_state("running"));
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
}

#[test]
fn an_open_callback_holds_the_run() {
    let mut plan = plan();
    plan.permissions = true;
    let mut play = Play::ready(plan);
    play.line(&permission("p"));
    assert_eq!(play.line(RESULT), [delivered(RESULT)]);
    assert_eq!(play.answers(1, "{}"), ["answer p {}", "close input"]);
    // After that, nothing can be answered.
    assert!(play.line(&permission("q")).is_empty());
}

#[test]
fn a_cli_that_says_nothing_and_ends_well_gives_warnings_only() {
    let mut play = Play::of(plan());
    play.effects();
    assert_eq!(play.die(0), ["warn EmptyOutput", "end Finished"]);
    let mut play = query();
    play.line(ANSWER);
    assert_eq!(play.die(0), ["warn ExitWithoutResult", "end Finished"]);
    let mut play = Play::of(plan());
    play.effects();
    assert_eq!(
        play.die(1),
        ["end Failed(Process { exit: Code(1), stopped: false, silent: true })"]
    );
}

#[test]
fn a_failed_result_before_the_handshake_is_a_failed_start() {
    let failed = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;
    let mut play = Play::of(plan());
    play.effects();
    assert_eq!(play.line(failed)[0], delivered(failed));
    assert_eq!(play.die(1).last().unwrap(), "end Failed(ExitedDuringInit(Code(1)))");
}

#[test]
fn a_permission_request_is_delivered_before_its_callback_runs_if_the_plan_says_so() {
    use claude_wire::session::DeliveredPermissions;

    let questions = permission("p").replace("Bash", "AskUserQuestion");
    for (delivered, expected) in [
        (DeliveredPermissions::None, [1, 1]),
        (DeliveredPermissions::All, [2, 2]),
        (DeliveredPermissions::AllButQuestions, [2, 1]),
    ] {
        let mut plan = plan();
        plan.permissions = true;
        plan.delivered_permissions = delivered;
        for (line, expected) in [&permission("p"), &questions].into_iter().zip(expected) {
            let mut play = Play::ready(plan.clone());
            let effects = play.line(line);
            assert_eq!(effects.len(), expected, "{effects:?}");
            assert!(expected == 1 || effects[0] == format!("deliver permission {line}"));
            assert!(effects[expected - 1].starts_with("run "), "{effects:?}");
        }
    }
}

#[test]
fn after_the_result_nothing_becomes_an_error() {
    let mut play = query();
    play.line(&session_state("running"));
    play.line(RESULT);
    for _ in 0..10 {
        assert!(play.line("not JSON")[0].starts_with("warn Malformed"));
    }
    let long = format!(r#"{{"type":"assistant","x":"{}"}}"#, "x".repeat(200_000));
    assert!(play.happens(oversized(&long))[0].starts_with("warn OversizedLine"));
    assert_eq!(play.die(1), ["warn NonZeroExitAfterResult(Code(1))", "end Finished"]);
    // A result before the answer to the handshake: how it could not begin.
    let early = |line: &str| {
        let mut play = Play::of(plan());
        play.effects();
        assert_eq!(play.line(r#"{"type":"result","is_error":true}"#).len(), 2);
        play.ask(1);
        play.line(line);
        play.pass(100_000);
        play.die(1).pop()
    };
    assert_eq!(early(&failure(INIT, "no")).as_deref(), Some("end Finished"));
    assert_eq!(early(ANSWER).as_deref(), Some("end Finished"));
}

#[test]
fn the_fifth_malformed_line_in_a_row_before_the_result_is_the_end() {
    let cut_off = r#"{"type":"assistant","message":{"#;
    for malformed in ["not JSON", "7", "{}", cut_off] {
        let mut play = query();
        for _ in 0..4 {
            assert!(play.line(malformed)[0].starts_with("warn Malformed"), "{malformed}");
        }
        // Anything with a type begins a new row, whether or not it decodes.
        for other in [ANSWER, r#"{"type":"new"}"#, r#"{"type":"user","message":7}"#] {
            play.line(other);
            for _ in 0..4 {
                assert!(play.line(malformed)[0].starts_with("warn Malformed"), "{malformed}");
            }
        }
        let effects = play.line(malformed);
        assert!(effects[0].starts_with("state Failed(TooManyMalformed(5, "), "{effects:?}");
        assert_eq!(effects[1..], ["close input"]);
        assert!(play.die(0)[0].starts_with("end Failed(TooManyMalformed(5, "));
    }
    // A session goes on.
    let mut play = Play::session();
    for _ in 0..20 {
        assert!(play.line("not JSON")[0].starts_with("warn Malformed"));
    }
}

#[test]
fn a_line_that_is_too_long_before_the_result_is_the_end() {
    let mut play = query();
    let long = format!(r#"{{"type":"assistant","x":"{}"}}"#, "x".repeat(200_000));
    let size = long.len();
    assert_eq!(
        play.happens(oversized(&long)),
        [&format!("state Failed(LineTooLong({size}))"), "close input", "terminate"]
    );
    assert!(play.line(ANSWER).is_empty());
    assert_eq!(play.pass(5_000), ["kill"]);
    assert_eq!(play.die(143), [format!("end Failed(LineTooLong({size}))")]);
}

#[test]
fn a_query_whose_process_lingers_is_stopped() {
    let mut play = query();
    play.line(RESULT);
    assert_eq!(play.pass(5_000), ["terminate"]);
    assert_eq!(play.pass(5_000), ["kill"]);
    assert_eq!(play.die(137), ["warn StoppedAfterResult", "end Finished"]);
    // One that closed its output before any result.
    let mut play = query();
    play.eof();
    assert_eq!(play.pass(5_000), ["close input", "terminate"]);
    assert_eq!(
        play.exit(143),
        ["end Failed(Process { exit: Code(143), stopped: true, silent: false })"]
    );
    // One whose input broke.
    let mut play = query();
    play.happens(Event::WriteFailed("broken pipe".to_owned()));
    assert_eq!(play.pass(5_000), ["close input", "terminate"]);
    assert_eq!(
        play.die(143),
        ["end Failed(Process { exit: Code(143), stopped: true, silent: false })"]
    );
}

#[test]
fn an_output_that_is_held_open_is_told() {
    let mut play = query();
    play.line(RESULT);
    play.exit(0);
    assert_eq!(play.pass(100), ["warn StdoutHeldOpen", "end Finished"]);
    // With limits of its own.
    let mut plan = plan();
    plan.limits.held_open_quiet = Duration::from_secs(1);
    let mut play = Play::ready(plan);
    play.line(RESULT);
    play.exit(0);
    assert!(play.pass(999).is_empty());
    assert_eq!(play.pass(1), ["warn StdoutHeldOpen", "end Finished"]);
}

#[test]
fn the_host_can_stop_a_query_at_any_moment() {
    let mut play = query();
    assert_eq!(play.stop(), ["state Stopping", "ask req_2_00000000 interrupt"]);
    assert_eq!(play.line(RESULT), [&delivered(RESULT), "close input"]);
    assert_eq!(play.die(1), ["end Stopped"]);
    // After its result.
    let mut play = query();
    play.line(RESULT);
    assert_eq!(play.stop(), ["state Stopping"]);
    assert_eq!(play.pass(5_000), ["terminate"]);
    play.exit(143);
    assert_eq!(play.pass(100), ["end Stopped"]);
    // Before its handshake.
    let mut play = Play::of(plan());
    play.effects();
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
    assert_eq!(play.die(0), ["end Stopped"]);
    // While it is being stopped already.
    let mut play = query();
    play.eof();
    play.pass(5_000);
    assert_eq!(play.stop(), ["state Stopping"]);
    assert_eq!(play.exit(143), ["end Stopped"]);
}

#[test]
fn silence_counts_only_while_the_host_owes_no_answer() {
    let mut limits = QueryLimits::default();
    limits.idle_timeout = Some(Duration::from_secs(10));
    let mut plan = with_limits(limits);
    plan.permissions = true;
    let mut play = Play::ready(plan);
    assert!(play.pass(9_000).is_empty());
    play.line(&permission("p"));
    assert!(play.pass(600_000).is_empty());
    play.answers(1, "{}");
    assert!(play.pass(9_999).is_empty());
    assert_eq!(play.pass(1), ["close input", "terminate"]);
    assert_eq!(play.die(143), ["end Failed(IdleTimeout)"]);
}

#[test]
fn a_refused_handshake_fails_a_query_too() {
    let mut play = Play::of(plan());
    play.effects();
    assert_eq!(
        play.line(&failure(INIT, "no")),
        [r#"state Failed(InitializeRejected("no"))"#, "close input"]
    );
    assert_eq!(play.die(0), [r#"end Failed(InitializeRejected("no"))"#]);
}

#[test]
fn half_a_last_line_of_a_query_is_told_before_its_end() {
    let mut play = query();
    play.line(RESULT);
    play.happens(Event::LastLine("half".into()));
    assert_eq!(play.die(0), [r#"warn IncompleteLastLine(b"half")"#, "end Finished"]);
    // A whole one counts.
    let mut play = query();
    play.happens(Event::LastLine(RESULT.into()));
    assert_eq!(play.die(0), ["end Finished"]);
}
