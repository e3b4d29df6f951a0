//! The handshake of a session.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::session::{Effect, Event, Machine, Plan, Run, State};

use crate::session_play::{
    ANSWER, INIT, Play, failure, hook, permission, request, success, with_callbacks,
};

fn session() -> Play {
    let mut play = Play::of(Plan::new(Run::Session));
    assert_eq!(play.effects(), ["state Initializing", &format!("ask {INIT} initialize")]);
    play
}

#[test]
fn only_the_answer_to_the_handshake_confirms_it() {
    let mut play = session();
    for line in [
        ANSWER,
        r#"{"type":"system","subtype":"init"}"#,
        &success("req_2_00000000", "{}"),
        &success("req_1_00000001", "{}"),
        &request("r", r#""subtype":"initialize""#),
        r#"{"type":"keep_alive"}"#,
    ] {
        let effects = play.line(line);
        assert!(!effects.contains(&"state Running".to_owned()), "{line}");
    }
    assert_eq!(play.line(&success(INIT, "{}")), ["state Running"]);
    // A second answer means nothing.
    assert!(play.line(&success(INIT, "{}")).is_empty());
    assert!(play.line(&failure(INIT, "no")).is_empty());
}

#[test]
fn the_answer_is_kept_as_it_came() {
    let mut machine = Machine::new(Plan::new(Run::Session));
    let line = success(INIT, r#"{"commands": [], "new": 1}"#);
    machine.handle(Event::Line(line.into()), Duration::ZERO);
    let states: Vec<Effect> = std::iter::from_fn(|| machine.next_effect()).collect();
    let Some(Effect::State(State::Running(answer))) = states.last() else { panic!("{states:?}") };
    assert_eq!(answer, r#"{"commands": [], "new": 1}"#);
}

#[test]
fn an_answer_that_cannot_be_read_confirms_the_handshake_all_the_same() {
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
fn requests_are_served_before_the_handshake_ends() {
    let mut play = Play::of(with_callbacks());
    play.effects();
    assert_eq!(play.line(&permission("p")), ["run 1 for p"]);
    assert_eq!(play.answers(1, r#"{"behavior":"allow"}"#), [r#"answer p {"behavior":"allow"}"#]);
}

#[test]
fn a_refusal_fails_at_once_and_the_process_is_stopped() {
    let mut play = session();
    play.ask(1);
    play.send(2, "m");
    assert_eq!(
        play.line(&failure(INIT, "no")),
        [
            r#"state Failed(InitializeRejected("no"))"#,
            "1: refused NotInitialized",
            "2: refused NotInitialized",
            "close input",
        ]
    );
    assert_eq!(play.ask(3), ["3: refused NotInitialized"]);
    // Nothing more is delivered: the error is the last thing to be read.
    assert!(play.line(ANSWER).is_empty());
    assert_eq!(play.pass(5_000), ["terminate"]);
    assert_eq!(play.die(143), [r#"end Failed(InitializeRejected("no"))"#]);
    assert_eq!(play.ask(4), ["4: refused NotInitialized"]);
}

#[test]
fn a_handshake_without_an_answer_times_out_and_the_process_is_stopped() {
    let mut play = session();
    play.ask(1);
    assert!(play.pass(59_999).is_empty());
    assert_eq!(
        play.pass(1),
        ["state Failed(InitializeTimeout(60s))", "1: refused NotInitialized", "close input"]
    );
    assert_eq!(play.pass(4_999), [""; 0]);
    assert_eq!(play.pass(1), ["terminate"]);
    assert_eq!(play.pass(5_000), ["kill"]);
    // The answer comes too late.
    assert!(play.line(&success(INIT, "{}")).is_empty());
    assert_eq!(play.die(137), ["end Failed(InitializeTimeout(60s))"]);
}

#[test]
fn a_process_that_ends_first_fails_the_handshake_without_a_timer() {
    let mut play = session();
    play.ask(1);
    play.send(2, "m");
    assert!(play.exit(1).is_empty(), "the answer may still be in the pipe");
    assert_eq!(
        play.eof(),
        [
            "1: refused NotInitialized",
            "2: refused NotInitialized",
            "end Failed(ExitedDuringInit(Code(1)))",
        ]
    );
    assert_eq!(play.machine.wake_at(), None);
    // Another process holds the output: it is not waited for.
    let mut play = session();
    play.ask(1);
    play.exit(1);
    assert_eq!(
        play.pass(100),
        ["end Failed(ExitedDuringInit(Code(1)))", "1: refused NotInitialized"]
    );
}

#[test]
fn what_the_answer_brings_before_the_exit_is_acted_on() {
    let mut play = session();
    play.exit(0);
    assert_eq!(play.line(&success(INIT, "{}")), ["state Running"]);
    assert_eq!(
        play.eof(),
        ["end Failed(Process { exit: Code(0), stopped: false, silent: false })"]
    );
}

#[test]
fn without_a_handshake_the_session_runs_at_once() {
    let mut plan = Plan::new(Run::Session);
    plan.initialize = None;
    let mut play = Play::of(plan);
    assert_eq!(play.effects(), ["state Running"]);
    assert_eq!(play.ask(1), ["ask req_1_00000000 interrupt"]);
}

#[test]
fn fail_closed_hooks_need_a_cli_that_knows_them() {
    let check = |answer: &str, reason: &str| {
        let mut play = Play::of(with_callbacks());
        play.effects();
        let effects = play.line(&success(INIT, answer));
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
    let mut play = Play::of(with_callbacks());
    play.effects();
    let answer = r#"{"hook_on_failure_supported":true,"hooks_applied":true}"#;
    assert_eq!(play.line(&success(INIT, answer)), ["state Running"]);
}

#[test]
fn plugins_that_were_not_loaded_are_no_start() {
    for (answer, fails) in [
        (r#"{"plugins_applied":false}"#, true),
        (r#"{"plugins_applied":true}"#, false),
        (r#"{"plugins_applied":null}"#, false),
        ("{}", false),
    ] {
        let mut play = session();
        let effects = play.line(&success(INIT, answer));
        let failed = effects[0].contains("InitializeRejected(\"the CLI did not load the plugins");
        assert_eq!(failed, fails, "{answer}: {effects:?}");
        assert_eq!(effects[0] == "state Running", !fails, "{answer}: {effects:?}");
    }
}

#[test]
fn requests_that_the_answer_names_as_open_are_served_once() {
    let mut play = Play::of(with_callbacks());
    play.effects();
    play.line(&permission("known"));
    play.line(&permission("answered"));
    play.answers(2, "{}");
    let frames = [permission("known"), permission("answered"), permission("new")].join(",");
    let dialog = request("dialog", r#""subtype":"request_user_dialog","dialog_kind":"x""#);
    let line = format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{INIT}","response":{{"hook_on_failure_supported":true}},"pending_permission_requests":[{frames},7],"pending_user_dialog_requests":[{dialog}]}}}}"#
    );
    let effects = play.line(&line);
    assert_eq!(effects[..2], ["state Running", "run 3 for new"]);
    assert!(effects[2].starts_with("warn UnansweredRequest { what: \"dialog x\""), "{effects:?}");
    // After the handshake an id may come again.
    assert_eq!(play.line(&hook("answered", "hook_0")), ["run 4 for answered"]);
}

#[test]
fn what_was_asked_during_the_handshake_is_written_in_order_when_it_ends() {
    let mut play = session();
    assert!(play.ask(1).is_empty());
    assert!(play.send(2, "a").is_empty());
    assert!(play.ask(3).is_empty());
    assert!(play.send(4, "b").is_empty());
    assert_eq!(
        play.line(&success(INIT, "{}")),
        [
            "state Running",
            "ask req_2_00000000 interrupt",
            "say a",
            "2: Sent",
            "ask req_3_00000000 interrupt",
            "say b",
            "4: Sent",
        ]
    );
}

#[test]
fn the_output_before_the_handshake_is_kept_for_the_diagnostic_in_bounds() {
    let mut play = session();
    play.line("not JSON");
    play.line(ANSWER);
    let kept: Vec<Bytes> = play.machine.evidence().output_before_handshake().cloned().collect();
    assert_eq!(kept, ["not JSON", ANSWER]);
    assert_eq!(play.machine.evidence().last_other_line.as_deref(), Some(&b"not JSON"[..]));
    for _ in 0..100 {
        play.line(&"x".repeat(1_000));
        play.line(&"y".repeat(100_000));
    }
    let kept = play.machine.evidence().output_before_handshake();
    assert!(kept.map(Bytes::len).sum::<usize>() <= 64 * 1024);
    assert_eq!(play.machine.evidence().last_other_line.as_ref().map(Bytes::len), Some(4096));
    play.line(&success(INIT, "{}"));
    assert_eq!(play.machine.evidence().output_before_handshake().count(), 0);
}

#[test]
fn ids_carry_the_suffix_of_the_session() {
    let mut plan = Plan::new(Run::Session);
    plan.id_suffix = 0xdead_beef;
    let mut play = Play::of(plan);
    assert_eq!(play.effects()[1], "ask req_1_deadbeef initialize");
}

#[test]
fn somebody_waits_during_the_handshake() {
    let mut play = session();
    assert!(play.machine.has_waiters());
    play.line(&success(INIT, "{}"));
    assert!(!play.machine.has_waiters());
    play.ask(1);
    assert!(play.machine.has_waiters());
    play.forget(1);
    assert!(!play.machine.has_waiters());
    // A turn alone is no reason to read on, unless callbacks are registered.
    play.send(2, "m");
    assert!(!play.machine.has_waiters());
    let mut play = Play::ready(with_callbacks());
    assert!(play.machine.has_waiters());
    play.stop();
    assert!(play.machine.has_waiters());
    play.die(0);
    assert!(!play.machine.has_waiters());
}

#[test]
fn a_mode_in_which_the_cli_does_not_ask_is_told_if_the_host_left_it_to_the_cli() {
    for (relies, mode, warns) in [
        (true, "auto", true),
        (true, "dontAsk", true),
        (true, "bypassPermissions", true),
        (true, "default", false),
        (true, "acceptEdits", false),
        (false, "auto", false),
    ] {
        let mut plan = Plan::new(Run::Session);
        plan.relies_on_default_mode = relies;
        let mut play = Play::of(plan);
        play.effects();
        let answer = format!(r#"{{"current_permission_mode":"{mode}"}}"#);
        let told = play.line(&success(INIT, &answer));
        let warned = told.iter().any(|effect| effect.starts_with("warn ModeWithoutQuestions"));
        assert_eq!(warned, warns, "{mode}: {told:?}");
    }
}
