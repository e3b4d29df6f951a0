//! A query in the machine: the prompt, the end of the input, the end of the run.

use std::time::Duration;

use claude_agent_core::session::{Event, Plan, QueryLimits, RunMode};

use crate::session_harness::oversized;
use crate::session_harness::{
    ANSWER, Harness, INIT, RESULT, failure, message, permission, session_state, success,
};

fn plan() -> Plan {
    with_limits(QueryLimits::default())
}

fn with_limits(limits: QueryLimits) -> Plan {
    Plan::new(RunMode::Query { prompt: Some(message("m")), limits })
}

fn query() -> Harness {
    let mut harness = Harness::new(plan());
    assert_eq!(harness.effects(), ["state Initializing", &format!("request {INIT} initialize")]);
    assert_eq!(harness.line(&success(INIT, "{}")), ["state Running", "send m"]);
    harness
}

fn delivered(line: &str) -> String {
    format!("deliver {line}")
}

#[test]
fn prompt_is_sent_after_the_handshake_and_stdin_closed_after_the_result() {
    let mut harness = query();
    assert!(harness.line(&session_state("running")).is_empty());
    assert_eq!(harness.line(ANSWER), [delivered(ANSWER)]);
    assert_eq!(harness.line(RESULT), [delivered(RESULT)]);
    // The state is for the host only, but the table sees it.
    assert_eq!(harness.line(&session_state("idle")), ["close stdin"]);
    assert_eq!(harness.end_process(0), ["end Finished"]);
    // A CLI that reports no state.
    let mut harness = query();
    assert_eq!(harness.line(RESULT), [&delivered(RESULT), "close stdin"]);
}

#[test]
fn a_query_tracks_no_turns() {
    let mut harness = query();
    let result = r#"{"type":"result","user_message_uuids":["m"]}"#;
    assert_eq!(harness.line(result), [&delivered(result), "close stdin"]);
}

#[test]
fn a_prompt_on_the_command_line_is_not_written() {
    let mut plan = Plan::new(RunMode::Query { prompt: None, limits: QueryLimits::default() });
    plan.initialize = None;
    let mut harness = Harness::new(plan);
    assert_eq!(harness.effects(), ["state Running"]);
    // Nor is such a CLI told anything when it is stopped.
    harness.line(&session_state("running"));
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
}

#[test]
fn pending_callback_delays_the_end() {
    let mut plan = plan();
    plan.permissions = true;
    let mut harness = Harness::ready(plan);
    harness.line(&permission("p"));
    assert_eq!(harness.line(RESULT), [delivered(RESULT)]);
    assert_eq!(harness.respond(1, "{}"), ["respond p {}", "close stdin"]);
    // After that, nothing can be answered.
    assert!(harness.line(&permission("q")).is_empty());
}

#[test]
fn successful_exit_without_output_only_warns() {
    let mut harness = Harness::new(plan());
    harness.effects();
    assert_eq!(harness.end_process(0), ["warn EmptyOutput", "end Finished"]);
    let mut harness = query();
    harness.line(ANSWER);
    assert_eq!(harness.end_process(0), ["warn ExitWithoutResult", "end Finished"]);
    let mut harness = Harness::new(plan());
    harness.effects();
    assert_eq!(
        harness.end_process(1),
        ["end Failed(Process { exit: Code(1), stopped: false, silent: true })"]
    );
}

#[test]
fn a_failed_result_before_the_handshake_is_a_failed_start() {
    let failed = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;
    let mut harness = Harness::new(plan());
    harness.effects();
    assert_eq!(harness.line(failed)[0], delivered(failed));
    assert_eq!(harness.end_process(1).last().unwrap(), "end Failed(ExitedDuringInit(Code(1)))");
}

#[test]
fn a_permission_request_is_delivered_before_its_callback_runs_if_the_plan_says_so() {
    use claude_agent_core::session::DeliveredPermissions;

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
            let mut harness = Harness::ready(plan.clone());
            let effects = harness.line(line);
            assert_eq!(effects.len(), expected, "{effects:?}");
            assert!(expected == 1 || effects[0] == format!("deliver permission {line}"));
            assert!(effects[expected - 1].starts_with("run "), "{effects:?}");
        }
    }
}

#[test]
fn after_the_result_nothing_becomes_an_error() {
    let mut harness = query();
    harness.line(&session_state("running"));
    harness.line(RESULT);
    for _ in 0..10 {
        assert!(harness.line("not JSON")[0].starts_with("warn Malformed"));
    }
    let long = format!(r#"{{"type":"assistant","x":"{}"}}"#, "x".repeat(200_000));
    assert!(harness.handle(oversized(&long))[0].starts_with("warn OversizedLine"));
    assert_eq!(harness.end_process(1), ["warn NonZeroExitAfterResult(Code(1))", "end Finished"]);
    // A result before the answer to the handshake: how it could not begin.
    let early = |line: &str| {
        let mut harness = Harness::new(plan());
        harness.effects();
        assert_eq!(harness.line(r#"{"type":"result","is_error":true}"#).len(), 2);
        harness.interrupt(1);
        harness.line(line);
        harness.advance(100_000);
        harness.end_process(1).pop()
    };
    assert_eq!(early(&failure(INIT, "no")).as_deref(), Some("end Finished"));
    assert_eq!(early(ANSWER).as_deref(), Some("end Finished"));
}

#[test]
fn fifth_consecutive_malformed_line_fails_a_query() {
    let cut_off = r#"{"type":"assistant","message":{"#;
    for malformed in ["not JSON", "7", "{}", cut_off] {
        let mut harness = query();
        for _ in 0..4 {
            assert!(harness.line(malformed)[0].starts_with("warn Malformed"), "{malformed}");
        }
        // Anything with a type begins a new row, whether or not it decodes.
        for other in [ANSWER, r#"{"type":"new"}"#, r#"{"type":"user","message":7}"#] {
            harness.line(other);
            for _ in 0..4 {
                assert!(harness.line(malformed)[0].starts_with("warn Malformed"), "{malformed}");
            }
        }
        let effects = harness.line(malformed);
        assert!(effects[0].starts_with("state Failed(TooManyMalformedLines(5, "), "{effects:?}");
        assert_eq!(effects[1..], ["close stdin"]);
        assert!(harness.end_process(0)[0].starts_with("end Failed(TooManyMalformedLines(5, "));
    }
    // A session goes on.
    let mut harness = Harness::session();
    for _ in 0..20 {
        assert!(harness.line("not JSON")[0].starts_with("warn Malformed"));
    }
}

#[test]
fn oversized_line_before_the_result_fails_a_query() {
    let mut harness = query();
    let long = format!(r#"{{"type":"assistant","x":"{}"}}"#, "x".repeat(200_000));
    let size = long.len();
    assert_eq!(
        harness.handle(oversized(&long)),
        [&format!("state Failed(LineTooLong({size}))"), "close stdin", "terminate"]
    );
    assert!(harness.line(ANSWER).is_empty());
    assert_eq!(harness.advance(5_000), ["kill"]);
    assert_eq!(harness.end_process(143), [format!("end Failed(LineTooLong({size}))")]);
}

#[test]
fn a_query_whose_process_lingers_is_stopped() {
    let mut harness = query();
    harness.line(RESULT);
    assert_eq!(harness.advance(5_000), ["terminate"]);
    assert_eq!(harness.advance(5_000), ["kill"]);
    assert_eq!(harness.end_process(137), ["warn StoppedAfterResult", "end Finished"]);
    // One that closed its output before any result.
    let mut harness = query();
    harness.eof();
    assert_eq!(harness.advance(5_000), ["close stdin", "terminate"]);
    assert_eq!(
        harness.exit(143),
        ["end Failed(Process { exit: Code(143), stopped: true, silent: false })"]
    );
    // One whose input broke.
    let mut harness = query();
    harness.handle(Event::WriteFailed("broken pipe".to_owned()));
    assert_eq!(harness.advance(5_000), ["close stdin", "terminate"]);
    assert_eq!(
        harness.end_process(143),
        ["end Failed(Process { exit: Code(143), stopped: true, silent: false })"]
    );
}

#[test]
fn held_open_stdout_warns() {
    let mut harness = query();
    harness.line(RESULT);
    harness.exit(0);
    assert_eq!(harness.advance(100), ["warn StdoutHeldOpen", "end Finished"]);
    // With limits of its own.
    let mut plan = plan();
    plan.limits.held_open_quiet = Duration::from_secs(1);
    let mut harness = Harness::ready(plan);
    harness.line(RESULT);
    harness.exit(0);
    assert!(harness.advance(999).is_empty());
    assert_eq!(harness.advance(1), ["warn StdoutHeldOpen", "end Finished"]);
}

#[test]
fn the_host_can_stop_a_query_at_any_moment() {
    let mut harness = query();
    assert_eq!(harness.stop(), ["state Stopping", "request req_2_00000000 interrupt"]);
    assert_eq!(harness.line(RESULT), [&delivered(RESULT), "close stdin"]);
    assert_eq!(harness.end_process(1), ["end Stopped"]);
    // After its result.
    let mut harness = query();
    harness.line(RESULT);
    assert_eq!(harness.stop(), ["state Stopping"]);
    assert_eq!(harness.advance(5_000), ["terminate"]);
    harness.exit(143);
    assert_eq!(harness.advance(100), ["end Stopped"]);
    // Before its handshake.
    let mut harness = Harness::new(plan());
    harness.effects();
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
    assert_eq!(harness.end_process(0), ["end Stopped"]);
    // While it is being stopped already.
    let mut harness = query();
    harness.eof();
    harness.advance(5_000);
    assert_eq!(harness.stop(), ["state Stopping"]);
    assert_eq!(harness.exit(143), ["end Stopped"]);
}

#[test]
fn idle_timeout_pauses_while_a_callback_is_pending() {
    let mut limits = QueryLimits::default();
    limits.idle_timeout = Some(Duration::from_secs(10));
    let mut plan = with_limits(limits);
    plan.permissions = true;
    let mut harness = Harness::ready(plan);
    assert!(harness.advance(9_000).is_empty());
    harness.line(&permission("p"));
    assert!(harness.advance(600_000).is_empty());
    harness.respond(1, "{}");
    assert!(harness.advance(9_999).is_empty());
    assert_eq!(harness.advance(1), ["close stdin", "terminate"]);
    assert_eq!(harness.end_process(143), ["end Failed(IdleTimeout)"]);
}

#[test]
fn rejected_handshake_fails_a_query_too() {
    let mut harness = Harness::new(plan());
    harness.effects();
    assert_eq!(
        harness.line(&failure(INIT, "no")),
        [r#"state Failed(InitializeRejected("no"))"#, "close stdin"]
    );
    assert_eq!(harness.end_process(0), [r#"end Failed(InitializeRejected("no"))"#]);
}

#[test]
fn incomplete_last_line_warns_before_the_end_of_a_query() {
    let mut harness = query();
    harness.line(RESULT);
    harness.handle(Event::LastLine("half".into()));
    assert_eq!(harness.end_process(0), [r#"warn IncompleteLastLine(b"half")"#, "end Finished"]);
    // A whole one counts.
    let mut harness = query();
    harness.handle(Event::LastLine(RESULT.into()));
    assert_eq!(harness.end_process(0), ["end Finished"]);
}
