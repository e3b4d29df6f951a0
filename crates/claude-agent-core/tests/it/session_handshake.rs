//! The handshake of a session.

use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{Effect, Event, Machine, Plan, RunMode, RunState};
use claude_wire::Json;
use claude_wire::control::Initialize;

use crate::session_harness::{
    ANSWER, Harness, INIT, failure, hook, permission, request, success, with_callbacks,
};

fn session() -> Harness {
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    assert_eq!(harness.effects(), ["state Initializing", &format!("request {INIT} initialize")]);
    harness
}

#[test]
fn only_the_response_completes_the_handshake() {
    let mut harness = session();
    for line in [
        ANSWER,
        r#"{"type":"system","subtype":"init"}"#,
        &success("req_2_00000000", "{}"),
        &success("req_1_00000001", "{}"),
        &request("r", r#""subtype":"initialize""#),
        r#"{"type":"keep_alive"}"#,
    ] {
        let effects = harness.line(line);
        assert!(!effects.contains(&"state Running".to_owned()), "{line}");
    }
    assert_eq!(harness.line(&success(INIT, "{}")), ["state Running"]);
    // A second answer means nothing.
    assert!(harness.line(&success(INIT, "{}")).is_empty());
    assert!(harness.line(&failure(INIT, "no")).is_empty());
}

#[test]
fn response_is_kept_unchanged() {
    let mut machine = Machine::new(Plan::new(RunMode::Session));
    let line = success(INIT, r#"{"commands": [], "new": 1}"#);
    machine.handle(Event::Line(line.into()), Duration::ZERO);
    let states: Vec<Effect> = std::iter::from_fn(|| machine.next_effect()).collect();
    let Some(Effect::State(RunState::Running(answer))) = states.last() else {
        panic!("{states:?}")
    };
    assert_eq!(answer, r#"{"commands": [], "new": 1}"#);
}

#[test]
fn undecodable_response_completes_the_handshake() {
    let lines = [
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1_00000000","response":{"commands":7}}}"#,
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1_00000000"}}"#,
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_1_00000000","pending_permission_requests":7}}"#,
        r#"{"type":"control_response","response":{"subtype":"new","request_id":"req_1_00000000"}}"#,
        r#"{"type":"control_response","request_id":"req_1_00000000","response":{"subtype":"success"}}"#,
    ];
    for line in lines {
        assert_eq!(session().line(line), ["state Running"], "{line}");
    }
}

#[test]
fn requests_are_served_during_the_handshake() {
    let mut harness = Harness::new(with_callbacks());
    harness.effects();
    assert_eq!(harness.line(&permission("p")), ["run 1 for p"]);
    assert_eq!(
        harness.respond(1, r#"{"behavior":"allow"}"#),
        [r#"respond p {"behavior":"allow"}"#]
    );
}

#[test]
fn rejected_handshake_fails_at_once_and_stops_the_process() {
    let mut harness = session();
    harness.interrupt(1);
    harness.send(2, "m");
    assert_eq!(
        harness.line(&failure(INIT, "no")),
        [
            r#"state Failed(InitializeRejected("no"))"#,
            "1: rejected NotInitialized",
            "2: rejected NotInitialized",
            "close stdin",
        ]
    );
    assert_eq!(harness.interrupt(3), ["3: rejected NotInitialized"]);
    // Nothing more is delivered: the error is the last thing to be read.
    assert!(harness.line(ANSWER).is_empty());
    assert_eq!(harness.advance(5_000), ["terminate"]);
    assert_eq!(harness.end_process(143), [r#"end Failed(InitializeRejected("no"))"#]);
    assert_eq!(harness.interrupt(4), ["4: rejected NotInitialized"]);
}

#[test]
fn handshake_without_a_response_times_out_and_stops_the_process() {
    let mut harness = session();
    harness.interrupt(1);
    assert!(harness.advance(59_999).is_empty());
    assert_eq!(
        harness.advance(1),
        ["state Failed(InitializeTimeout(60s))", "1: rejected NotInitialized", "close stdin"]
    );
    assert_eq!(harness.advance(4_999), [""; 0]);
    assert_eq!(harness.advance(1), ["terminate"]);
    assert_eq!(harness.advance(5_000), ["kill"]);
    // The answer comes too late.
    assert!(harness.line(&success(INIT, "{}")).is_empty());
    assert_eq!(harness.end_process(137), ["end Failed(InitializeTimeout(60s))"]);
}

#[test]
fn exit_during_the_handshake_fails_it_at_once() {
    let mut harness = session();
    harness.interrupt(1);
    harness.send(2, "m");
    assert!(harness.exit(1).is_empty(), "the answer may still be in the pipe");
    assert_eq!(
        harness.eof(),
        [
            "1: rejected NotInitialized",
            "2: rejected NotInitialized",
            "end Failed(ExitedDuringInit(Code(1)))",
        ]
    );
    assert_eq!(harness.machine.wake_at(), None);
    // Another process holds the output: it is not waited for.
    let mut harness = session();
    harness.interrupt(1);
    harness.exit(1);
    assert_eq!(
        harness.advance(100),
        ["end Failed(ExitedDuringInit(Code(1)))", "1: rejected NotInitialized"]
    );
}

#[test]
fn response_before_the_exit_is_handled() {
    let mut harness = session();
    harness.exit(0);
    assert_eq!(harness.line(&success(INIT, "{}")), ["state Running"]);
    assert_eq!(
        harness.eof(),
        ["end Failed(Process { exit: Code(0), stopped: false, silent: false })"]
    );
}

#[test]
fn without_a_handshake_the_session_runs_at_once() {
    let mut plan = Plan::new(RunMode::Session);
    plan.initialize = None;
    let mut harness = Harness::new(plan);
    assert_eq!(harness.effects(), ["state Running"]);
    assert_eq!(harness.interrupt(1), ["request req_1_00000000 interrupt"]);
}

#[test]
fn fail_closed_hooks_need_a_cli_that_supports_them() {
    let check = |answer: &str, reason: &str| {
        let mut harness = Harness::new(with_callbacks());
        harness.effects();
        let effects = harness.line(&success(INIT, answer));
        let expected = format!("state Failed(InitializeRejected({reason:?}))");
        assert_eq!(effects[0], expected, "{answer}");
    };
    let not_supported =
        "the CLI does not support fail-closed hooks, such as the one for PreToolUse";
    check("{}", not_supported);
    check(r#"{"hook_on_failure_supported":false}"#, not_supported);
    check(
        r#"{"hook_on_failure_supported":true,"hooks_applied":false}"#,
        "the CLI did not apply the fail-closed hook for PreToolUse",
    );
    let mut harness = Harness::new(with_callbacks());
    harness.effects();
    let answer = r#"{"hook_on_failure_supported":true,"hooks_applied":true}"#;
    assert_eq!(harness.line(&success(INIT, answer)), ["state Running"]);
}

#[test]
fn unconfirmed_mcp_servers_fail_the_start() {
    let with_servers = || {
        let mut plan = Plan::new(RunMode::Session);
        let mut initialize = Initialize::default();
        initialize.mcp_servers = Some(Json::from_text(r#"{"ext":{"command":"x"}}"#).unwrap());
        plan.initialize = Some(Box::new(initialize));
        let mut harness = Harness::new(plan);
        harness.effects();
        harness
    };
    let failed = "state Failed(McpServersNotApplied)";
    for (answer, expected) in [
        (r#"{"mcp_servers_applied":true}"#, "state Running"),
        (r#"{"mcp_servers_applied":false}"#, failed),
        (r#"{"mcp_servers_applied":null}"#, failed),
        (r#"{"mcp_servers_applied":"true"}"#, failed),
        ("{}", failed),
        ("[]", failed),
    ] {
        let effects = with_servers().line(&success(INIT, answer));
        assert_eq!(effects[0], expected, "{answer}: {effects:?}");
        // Without servers there is nothing to confirm.
        assert_eq!(session().line(&success(INIT, answer))[0], "state Running", "{answer}");
    }
    let mut harness = with_servers();
    harness.line(&success(INIT, "{}"));
    assert_eq!(harness.end_process(0), ["end Failed(McpServersNotApplied)"]);
}

#[test]
fn unloaded_plugins_fail_the_start() {
    for (answer, fails) in [
        (r#"{"plugins_applied":false}"#, true),
        (r#"{"plugins_applied":true}"#, false),
        (r#"{"plugins_applied":null}"#, false),
        ("{}", false),
    ] {
        let mut harness = session();
        let effects = harness.line(&success(INIT, answer));
        let failed = effects[0].contains("InitializeRejected(\"the CLI did not load the plugins");
        assert_eq!(failed, fails, "{answer}: {effects:?}");
        assert_eq!(effects[0] == "state Running", !fails, "{answer}: {effects:?}");
    }
}

#[test]
fn requests_reported_as_pending_are_served_once() {
    let mut harness = Harness::new(with_callbacks());
    harness.effects();
    harness.line(&permission("known"));
    harness.line(&permission("answered"));
    harness.respond(2, "{}");
    let frames = [permission("known"), permission("answered"), permission("new")].join(",");
    let dialog = request("dialog", r#""subtype":"request_user_dialog","dialog_kind":"x""#);
    let line = format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{INIT}","response":{{"hook_on_failure_supported":true}},"pending_permission_requests":[{frames},7],"pending_user_dialog_requests":[{dialog}]}}}}"#
    );
    let effects = harness.line(&line);
    assert_eq!(effects[..2], ["state Running", "run 3 for new"]);
    assert!(
        effects[2].starts_with("warn UnsupportedRequest { request: \"dialog x\""),
        "{effects:?}"
    );
    // After the handshake an id may come again.
    assert_eq!(harness.line(&hook("answered", "hook_0")), ["run 4 for answered"]);
}

#[test]
fn commands_during_the_handshake_are_written_in_order_after_it() {
    let mut harness = session();
    assert!(harness.interrupt(1).is_empty());
    assert!(harness.send(2, "a").is_empty());
    assert!(harness.interrupt(3).is_empty());
    assert!(harness.send(4, "b").is_empty());
    assert_eq!(
        harness.line(&success(INIT, "{}")),
        [
            "state Running",
            "request req_2_00000000 interrupt",
            "send a",
            "2: Sent",
            "request req_3_00000000 interrupt",
            "send b",
            "4: Sent",
        ]
    );
}

#[test]
fn output_during_the_handshake_is_kept_within_a_limit() {
    let mut harness = session();
    harness.line("not JSON");
    harness.line(ANSWER);
    let kept: Vec<Bytes> = harness.machine.evidence().output_before_handshake().cloned().collect();
    assert_eq!(kept, ["not JSON", ANSWER]);
    assert_eq!(harness.machine.evidence().last_malformed_line.as_deref(), Some(&b"not JSON"[..]));
    for _ in 0..100 {
        harness.line(&"x".repeat(1_000));
        harness.line(&"y".repeat(100_000));
    }
    let kept = harness.machine.evidence().output_before_handshake();
    assert!(kept.map(Bytes::len).sum::<usize>() <= 64 * 1024);
    assert_eq!(harness.machine.evidence().last_malformed_line.as_ref().map(Bytes::len), Some(4096));
    harness.line(&success(INIT, "{}"));
    assert_eq!(harness.machine.evidence().output_before_handshake().count(), 0);
}

#[test]
fn ids_carry_the_suffix_of_the_session() {
    let mut plan = Plan::new(RunMode::Session);
    plan.id_suffix = 0xdead_beef;
    let mut harness = Harness::new(plan);
    assert_eq!(harness.effects()[1], "request req_1_deadbeef initialize");
}

#[test]
fn machine_has_waiters_during_the_handshake() {
    let mut harness = session();
    assert!(harness.machine.has_waiters());
    harness.line(&success(INIT, "{}"));
    assert!(!harness.machine.has_waiters());
    harness.interrupt(1);
    assert!(harness.machine.has_waiters());
    harness.forget(1);
    assert!(!harness.machine.has_waiters());
    // A turn alone is no reason to read on, unless callbacks are registered.
    harness.send(2, "m");
    assert!(!harness.machine.has_waiters());
    let mut harness = Harness::ready(with_callbacks());
    assert!(harness.machine.has_waiters());
    harness.stop();
    assert!(harness.machine.has_waiters());
    harness.end_process(0);
    assert!(!harness.machine.has_waiters());
}

#[test]
fn default_mode_that_bypasses_the_callback_warns() {
    for (relies, mode, warns) in [
        (true, "auto", true),
        (true, "dontAsk", true),
        (true, "bypassPermissions", true),
        (true, "default", false),
        (true, "acceptEdits", false),
        (false, "auto", false),
    ] {
        let mut plan = Plan::new(RunMode::Session);
        plan.relies_on_default_mode = relies;
        let mut harness = Harness::new(plan);
        harness.effects();
        let answer = format!(r#"{{"current_permission_mode":"{mode}"}}"#);
        let told = harness.line(&success(INIT, &answer));
        let warned = told.iter().any(|effect| effect.starts_with("warn ModeBypassesCallback"));
        assert_eq!(warned, warns, "{mode}: {told:?}");
    }
}
