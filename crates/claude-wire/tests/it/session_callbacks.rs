//! Requests of the CLI: who answers them, and what if nobody does.

use std::time::Duration;

use claude_wire::session::{CallOutcome, Event, Plan, Run};

use crate::session_play::oversized;
use crate::session_play::{Play, cancel, hook, permission, request, with_callbacks};

fn ready() -> Play {
    Play::ready(with_callbacks())
}

const GO_ON: &str = r#"{"continue":true}"#;

fn denied(reason: &str) -> String {
    format!(
        r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"{reason}"}}}}"#
    )
}

fn no_permission(reason: &str) -> String {
    format!(r#"{{"behavior":"deny","message":"{reason}"}}"#)
}

#[test]
fn callbacks_run_beside_each_other_and_are_answered_as_they_end() {
    let mut play = ready();
    assert_eq!(play.line(&hook("a", "hook_0")), ["run 1 for a"]);
    assert_eq!(play.line(&permission("b")), ["run 2 for b"]);
    assert_eq!(play.line(&permission("c")), ["run 3 for c"]);
    assert!(play.machine.has_waiters());
    assert_eq!(play.answers(3, r#"{"x":3}"#), [r#"answer c {"x":3}"#]);
    assert_eq!(play.answers(1, r#"{"x":1}"#), [r#"answer a {"x":1}"#]);
    assert_eq!(play.answers(2, r#"{"x":2}"#), [r#"answer b {"x":2}"#]);
    // A callback ends once.
    assert!(play.answers(2, "{}").is_empty());
    assert!(play.answers(9, "{}").is_empty());
}

#[test]
fn a_request_that_is_open_already_is_not_run_twice() {
    let mut play = ready();
    assert_eq!(play.line(&permission("b")), ["run 1 for b"]);
    assert!(play.line(&permission("b")).is_empty());
}

#[test]
fn a_hook_that_fails_lets_through_or_blocks_by_its_rule() {
    let failed = "the host's callback failed: oh";
    let check = |callback: &str, expected: &str, refused: bool| {
        let mut play = ready();
        play.line(&hook("a", callback));
        let effects = play.done(1, CallOutcome::Failed("oh".to_owned()));
        assert_eq!(effects.len(), 2);
        assert_eq!(effects[0], format!("answer a {expected}"));
        assert!(effects[1].starts_with("warn CallbackFailed"), "{effects:?}");
        assert!(effects[1].ends_with(&format!("refused: {refused} }}")), "{effects:?}");
    };
    check("hook_0", GO_ON, false);
    check("hook_1", &denied(failed), true);
    check(
        "hook_2",
        &format!(
            r#"{{"hookSpecificOutput":{{"decision":{{"behavior":"deny","message":"{failed}"}},"hookEventName":"PermissionRequest"}}}}"#
        ),
        true,
    );
    check("hook_3", &format!(r#"{{"continue":false,"stopReason":"{failed}"}}"#), true);
    // One that is gone although nobody cancelled it has failed too.
    let mut play = ready();
    play.line(&hook("a", "hook_1"));
    assert_eq!(
        play.done(1, CallOutcome::Gone)[0],
        format!("answer a {}", denied("the host's callback failed: the callback was ended"))
    );
}

#[test]
fn a_permission_callback_that_fails_denies() {
    let mut play = ready();
    play.line(&permission("a"));
    assert_eq!(
        play.done(1, CallOutcome::Failed("oh".to_owned()))[0],
        format!("answer a {}", no_permission("the host's callback failed: oh"))
    );
}

#[test]
fn without_a_permission_callback_the_answer_is_no() {
    let mut play = Play::session();
    let effects = play.line(&permission("a"));
    let reason = "the host has no callback for permissions";
    assert_eq!(effects[0], format!("answer a {}", no_permission(reason)));
    assert!(effects[1].starts_with("warn CallbackFailed"));
}

#[test]
fn a_hook_that_is_not_known_lets_through_unless_a_guard_is_registered() {
    let unknown = |play: &mut Play| play.line(&hook("a", "hook_9"));
    let effects = unknown(&mut ready());
    assert_eq!(effects[0], format!("answer a {}", denied("no hook is registered as hook_9")));
    assert!(effects[1].contains("no hook is registered as hook_9"), "{effects:?}");
    assert_eq!(unknown(&mut Play::session())[0], format!("answer a {GO_ON}"));
}

#[test]
fn what_cannot_be_decoded_is_answered_by_the_fail_rule() {
    let ask = |body: &str| ready().line(&request("a", body))[0].clone();
    let input = r#""subtype":"hook_callback","callback_id":"hook_0","input":7"#;
    assert_eq!(ask(input), format!("answer a {GO_ON}"));
    let input = r#""subtype":"hook_callback","callback_id":"hook_1","input":{"hook_event_name":"PreToolUse","tool_name":7}"#;
    assert!(ask(input).contains(r#""permissionDecision":"deny""#), "{}", ask(input));
    let input = r#""subtype":"hook_callback","callback_id":"hook_1""#;
    assert!(ask(input).contains(r#""permissionDecision":"deny""#), "{}", ask(input));
    let input = r#""subtype":"can_use_tool","input":{}"#;
    let answer = ask(input);
    assert!(answer.contains(r#""behavior":"deny""#) && answer.contains("tool_name"), "{answer}");
}

#[test]
fn what_nobody_answers_is_answered_with_an_error() {
    let unsupported = |kind: &str| format!("Unsupported control request subtype: {kind}");
    let check = |body: &str, error: &str| {
        let effects = ready().line(&request("a", body));
        assert_eq!(effects.len(), 2, "{body}");
        assert!(
            effects[0].starts_with("answer a error") && effects[0].contains(error),
            "{effects:?}"
        );
        assert!(effects[1].starts_with("warn UnansweredRequest"), "{effects:?}");
    };
    check(r#""subtype":"brand_new""#, &unsupported("brand_new"));
    check(r#""subtype":"interrupt""#, &unsupported("interrupt"));
    check(r#""subtype":"initialize""#, &unsupported("initialize"));
    check(r#""subtype":"request_user_dialog""#, "dialog_kind");
    check(r#""subtype":"mcp_message","server_name":"calc""#, "message");
    check(r#""nothing":1"#, "subtype");
    let effects = ready().line(r#"{"type":"control_request","request_id":"a"}"#);
    assert!(effects[0].starts_with("answer a error"), "{effects:?}");
    assert!(effects[0].contains("request"), "{effects:?}");
}

#[test]
fn a_server_that_is_not_there_is_answered_in_its_own_protocol() {
    let ask = |message: &str| {
        let body = format!(r#""subtype":"mcp_message","server_name":"calc","message":{message}"#);
        Play::session().line(&request("a", &body))[0].clone()
    };
    let error = r#"{"code":-32601,"message":"the host has no MCP server named calc"}"#;
    for id in ["7", "\"x\"", "0"] {
        assert_eq!(
            ask(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)),
            format!(r#"answer a {{"mcp_response":{{"error":{error},"id":{id},"jsonrpc":"2.0"}}}}"#)
        );
    }
    let acknowledged = r#"answer a {"mcp_response":{"jsonrpc":"2.0","result":{}}}"#;
    assert_eq!(ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), acknowledged);
    assert_eq!(ask(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#), acknowledged);
    assert_eq!(ask("7"), acknowledged);
}

#[test]
fn messages_for_servers_have_places_of_their_own() {
    let mut plan = with_callbacks();
    plan.mcp_servers.insert("calc".to_owned());
    plan.limits.running_callbacks = 1;
    plan.limits.running_mcp = 1;
    plan.limits.waiting_mcp = 1;
    let mut play = Play::ready(plan);
    let call = |id: &str| {
        request(
            id,
            r#""subtype":"mcp_message","server_name":"calc","message":{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#,
        )
    };
    assert_eq!(play.line(&permission("p")), ["run 1 for p"]);
    assert_eq!(play.line(&call("a")), ["run 2 for a"]);
    assert!(play.line(&call("b")).is_empty());
    let refused = play.line(&call("c"));
    assert_eq!(
        refused[0],
        r#"answer c {"mcp_response":{"error":{"code":-32603,"message":"the host has too much to answer"},"id":5,"jsonrpc":"2.0"}}"#
    );
    assert!(refused[1].starts_with("warn CallbackRefused"));
    // They have no time limit.
    assert!(play.pass(86_400_000).is_empty());
    assert_eq!(
        play.answers(2, r#"{"mcp_response":{}}"#),
        [r#"answer a {"mcp_response":{}}"#, "run 3 for b"]
    );
}

#[test]
fn a_call_that_is_withdrawn_in_the_words_of_its_protocol_is_not_answered() {
    let mut plan = with_callbacks();
    plan.mcp_servers.extend(["calc".to_owned(), "other".to_owned()]);
    plan.limits.running_mcp = 4;
    let mut play = Play::ready(plan);
    let message = |id: &str, server: &str, message: &str| {
        let body =
            format!(r#""subtype":"mcp_message","server_name":"{server}","message":{message}"#);
        request(id, &body)
    };
    let call = |id: &str, server, rpc_id: &str| {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{rpc_id},"method":"tools/call"}}"#);
        message(id, server, &call)
    };
    let withdraw = |id: &str, rpc_id: &str| {
        let method = r#""method":"notifications/cancelled""#;
        let withdraw = format!(r#"{{{method},"params":{{"requestId":{rpc_id}}}}}"#);
        message(id, "calc", &withdraw)
    };
    assert_eq!(play.line(&call("a", "calc", "5")), ["run 1 for a"]);
    assert_eq!(play.line(&call("b", "other", "5")), ["run 2 for b"]);
    assert_eq!(play.line(&call("c", "calc", r#""5""#)), ["run 3 for c"]);
    // The server gets the notification too, and its answer is the acknowledgement.
    assert_eq!(play.line(&withdraw("n", "5")), ["cancel 1", "run 4 for n"]);
    assert!(play.answers(1, r#"{"mcp_response":{}}"#).is_empty());
    assert_eq!(play.answers(4, "{}"), ["answer n {}"]);
    // A second time, and a call that nobody made.
    assert_eq!(play.line(&withdraw("m", "5")), ["run 5 for m"]);
    assert_eq!(play.answers(2, "{}"), ["answer b {}"]);
    // One that waits is never run.
    assert_eq!(play.line(&call("d", "calc", "6")), ["run 6 for d"]);
    assert_eq!(play.line(&call("e", "calc", "7")), ["run 7 for e"]);
    assert!(play.line(&call("f", "calc", "8")).is_empty());
    assert!(play.line(&withdraw("o", "8")).is_empty());
    assert_eq!(play.answers(3, "{}"), ["answer c {}", "run 9 for o"]);
}

#[test]
fn questions_of_servers_are_declined() {
    let body = r#""subtype":"elicitation","mcp_server_name":"s","message":"?""#;
    let effects = ready().line(&request("a", body));
    assert_eq!(effects[0], r#"answer a {"action":"decline"}"#);
}

#[test]
fn an_answer_for_a_server_waits_for_no_call_that_may_wait_for_it() {
    let mut plan = Plan::new(Run::Session);
    plan.mcp_servers.insert("calc".to_owned());
    plan.limits.running_mcp = 1;
    plan.limits.waiting_mcp = 0;
    let mut play = Play::ready(plan);
    let body = |message: &str| {
        format!(r#""subtype":"mcp_message","server_name":"calc","message":{message}"#)
    };
    let call = body(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#);
    assert_eq!(play.line(&request("a", &call)), ["run 1 for a"]);
    for (id, key, message) in [
        ("b", 2, r#"{"jsonrpc":"2.0","id":"kit-1","result":{}}"#),
        ("c", 3, r#"{"jsonrpc":"2.0","id":"kit-2","error":{"code":1,"message":"no"}}"#),
    ] {
        assert_eq!(play.line(&request(id, &body(message))), [format!("run {key} for {id}")]);
        play.answers(key, "{}");
    }
    // What only looks like one is a call.
    let odd = body(r#"{"jsonrpc":"2.0","id":6,"method":"m","params":{"result":1}}"#);
    assert!(play.line(&request("d", &odd))[0].starts_with("answer d"), "there is no place");
}

/// Also without an open turn: the CLI begins turns by itself.
#[test]
fn stdout_is_read_for_callbacks_although_nobody_takes_messages() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = Plan::new(Run::Session);
        change(&mut plan);
        let mut play = Play::ready(plan);
        play.happens(Event::Written(10_000));
        play.machine.has_waiters()
    };
    assert!(!with(|_| {}), "nobody can be asked");
    assert!(with(|plan| plan.permissions = true));
    assert!(with(|plan| assert!(plan.mcp_servers.insert("calc".to_owned()))));
    assert!(with(|plan| plan.elicitation = true));
    assert!(with(|plan| plan.dialogs = true));
}

#[test]
fn requests_are_refused_when_too_many_bytes_of_them_are_pending() {
    let mut plan = with_callbacks();
    plan.limits.request_bytes = 1000;
    let mut play = Play::ready(plan);
    let long = |id: &str| {
        let command = "x".repeat(900);
        request(id, &format!(r#""subtype":"can_use_tool","tool_name":"Bash","input":"{command}""#))
    };
    let refused = no_permission("the host has too much to answer");
    assert_eq!(play.line(&long("a")), ["run 1 for a"]);
    assert_eq!(play.line(&long("b"))[0], format!("answer b {refused}"));
    assert_eq!(play.answers(1, "{}"), ["answer a {}"]);
    assert_eq!(play.line(&long("c")), ["run 2 for c"], "there is room again");
    play.line(&cancel("c"));
    play.done(2, CallOutcome::Gone);
    // One that is larger than the limit is served alone.
    let huge = long("d").replace("xxx", "xxxxxx");
    assert_eq!(play.line(&huge), ["run 3 for d"]);
}

#[test]
fn texts_of_the_cli_are_shortened_in_warnings_and_responses() {
    let long = "x".repeat(100_000);
    let mut play = ready();
    for body in [
        format!(r#""subtype":"{long}""#),
        format!(r#""subtype":"hook_callback","callback_id":"{long}","input":{{}}"#),
        format!(
            r#""subtype":"mcp_message","server_name":"{long}","message":{{"id":1,"method":"m"}}"#
        ),
        format!(r#""subtype":"request_user_dialog","dialog_kind":"{long}""#),
        format!(r#""subtype":"can_use_tool","tool_name":"{long}""#),
    ] {
        let effects = play.line(&request("a", &body));
        assert!(effects.iter().any(|effect| effect.starts_with("warn")), "{}", &body[..40]);
        for effect in effects {
            assert!(effect.len() < 10_000, "{} bytes: {}", effect.len(), &effect[..100]);
        }
    }
    let failed = CallOutcome::Failed(long.clone());
    assert_eq!(play.line(&permission("b")), ["run 1 for b"]);
    assert!(play.done(1, failed).iter().all(|effect| effect.len() < 10_000));
    let line = format!(r#"{{"type":"{long}"}}"#);
    assert!(play.happens(oversized(&line)).iter().all(|effect| effect.len() < 10_000));
}

const ELICITATION: &str = r#""subtype":"elicitation","mcp_server_name":"s","message":"?""#;
const DIALOG: &str = r#""subtype":"request_user_dialog","dialog_kind":"x""#;

/// A machine whose host answers for the user, within a second.
fn for_the_user() -> Play {
    let mut plan = with_callbacks();
    (plan.elicitation, plan.dialogs) = (true, true);
    plan.permission_limit = Some(Duration::from_secs(1));
    Play::ready(plan)
}

#[test]
fn a_dialog_that_nobody_shows_is_left_alone_with_a_warning() {
    let effects = ready().line(&request("a", DIALOG));
    assert_eq!(effects.len(), 1);
    assert!(effects[0].starts_with("warn UnansweredRequest"), "{effects:?}");
}

#[test]
fn questions_to_the_user_are_answered_failed_and_withdrawn_as_other_callbacks_are() {
    for (body, refusal, what) in [
        (ELICITATION, r#"{"action":"decline"}"#, "question of the MCP server s"),
        (DIALOG, r#"{"behavior":"cancelled"}"#, "dialog x"),
    ] {
        let mut play = for_the_user();
        assert_eq!(play.line(&request("a", body)), ["run 1 for a"]);
        assert_eq!(play.answers(1, r#"{"x":1}"#), [r#"answer a {"x":1}"#]);
        play.line(&request("b", body));
        let effects = play.done(2, CallOutcome::Failed("oh".to_owned()));
        assert_eq!(effects[0], format!("answer b {refusal}"));
        assert!(effects[1].contains(what) && effects[1].ends_with("refused: true }"));
        play.line(&request("c", body));
        let effects = play.pass(1_000);
        assert_eq!(effects[0], format!("answer c {refusal}"));
        assert!(effects[1].starts_with("warn CallbackTimedOut"), "{effects:?}");
        play.line(&request("d", body));
        assert_eq!(play.line(&cancel("d")), ["cancel 4"]);
        assert!(play.answers(4, "{}").is_empty());
    }
}

#[test]
fn a_callback_that_takes_too_long_is_answered_for_cancelled_and_aborted() {
    let mut play = ready();
    let late = "the host's callback took too long";
    play.line(&hook("a", "hook_0"));
    play.line(&hook("b", "hook_1"));
    assert!(play.pass(59_999).is_empty());
    let effects = play.pass(1);
    assert_eq!(effects[0], format!("answer a {GO_ON}"));
    assert_eq!(
        effects[1],
        r#"warn CallbackTimedOut { what: "hook for PreToolUse", limit: 60s, refused: false }"#
    );
    assert_eq!(effects[2], "cancel 1");
    assert_eq!(effects[3], format!("answer b {}", denied(late)));
    assert_eq!(effects[5], "cancel 2");
    assert!(play.machine.has_waiters(), "the abort is due, whoever reads");
    // One heeds the cancel, and its answer comes too late.
    assert!(play.answers(1, "{}").is_empty());
    assert!(play.pass(999).is_empty());
    assert_eq!(play.pass(1), ["abort 2"]);
    assert!(play.pass(100_000).is_empty());
    assert!(play.done(2, CallOutcome::Gone).is_empty());
    assert_eq!(play.machine.wake_at(), None);
}

#[test]
fn a_hook_that_never_had_its_turn_is_refused_and_not_let_through() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 1;
    let mut play = Play::ready(plan);
    play.line(&permission("a"));
    // It fails open, but only when it was asked.
    assert!(play.line(&hook("b", "hook_0")).is_empty());
    let effects = play.pass(60_000);
    assert_eq!(effects[0], format!("answer b {}", denied("the host has too much to answer")));
    assert!(effects[1].starts_with("warn CallbackRefused"), "{effects:?}");
}

#[test]
fn permissions_have_no_time_limit_unless_one_is_set() {
    let mut play = ready();
    play.line(&permission("a"));
    assert_eq!(play.machine.wake_at(), None);
    let mut plan = with_callbacks();
    plan.permission_limit = Some(Duration::from_secs(5));
    let mut play = Play::ready(plan);
    play.line(&permission("a"));
    let late = no_permission("the host's callback took too long");
    assert_eq!(play.pass(5_000)[0], format!("answer a {late}"));
}

#[test]
fn the_time_limit_runs_from_the_read_of_the_request() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 1;
    let mut play = Play::ready(plan);
    play.line(&permission("a"));
    assert!(play.line(&hook("b", "hook_1")).is_empty());
    // It waits for a place all the while, and is never run.
    let effects = play.pass(60_000);
    assert!(effects[0].starts_with("answer b"), "{effects:?}");
    assert_eq!(effects.len(), 2);
    assert_eq!(play.answers(1, "{}"), ["answer a {}"]);
}

#[test]
fn a_request_that_the_cli_withdraws_is_not_answered() {
    let mut play = ready();
    play.line(&hook("a", "hook_0"));
    assert_eq!(play.line(&cancel("a")), ["cancel 1"]);
    assert!(play.line(&cancel("a")).is_empty());
    assert!(play.line(&cancel("never asked")).is_empty());
    assert_eq!(play.pass(1_000), ["abort 1"]);
    assert!(play.answers(1, "{}").is_empty());
    // The answer was first.
    play.line(&hook("b", "hook_0"));
    assert_eq!(play.answers(2, "{}"), ["answer b {}"]);
    assert!(play.line(&cancel("b")).is_empty());
}

#[test]
fn without_a_grace_a_cancelled_callback_is_aborted_at_once() {
    let mut plan = with_callbacks();
    plan.limits.cancel_grace = Duration::ZERO;
    let mut play = Play::ready(plan);
    play.line(&hook("a", "hook_0"));
    assert_eq!(play.line(&cancel("a")), ["cancel 1", "abort 1"]);
}

#[test]
fn callbacks_wait_for_their_turn_and_beyond_that_are_refused() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 2;
    plan.limits.waiting_callbacks = 2;
    let mut play = Play::ready(plan);
    assert_eq!(play.line(&hook("a", "hook_0")), ["run 1 for a"]);
    assert_eq!(play.line(&permission("b")), ["run 2 for b"]);
    assert!(play.line(&hook("c", "hook_0")).is_empty());
    assert!(play.line(&permission("d")).is_empty());
    // Overload approves nothing, whatever the fail rule says.
    let too_much = "the host has too much to answer";
    let effects = play.line(&hook("e", "hook_0"));
    assert_eq!(
        effects,
        [
            format!("answer e {}", denied(too_much)),
            r#"warn CallbackRefused { what: "hook for PreToolUse" }"#.to_owned(),
        ]
    );
    assert_eq!(play.line(&permission("f"))[0], format!("answer f {}", no_permission(too_much)));
    // One that waits can be withdrawn; then there is a place again.
    assert!(play.line(&cancel("c")).is_empty());
    assert!(play.line(&hook("g", "hook_0")).is_empty());
    assert_eq!(play.answers(1, "{}"), ["answer a {}", "run 4 for d"]);
    // A cancelled callback keeps its place until it has ended.
    assert_eq!(play.line(&cancel("b")), ["cancel 2"]);
    assert_eq!(play.pass(1_000), ["abort 2"]);
    assert_eq!(play.done(2, CallOutcome::Gone), ["run 5 for g"]);
}

#[test]
fn by_default_256_callbacks_run_and_4096_wait() {
    let mut play = ready();
    for index in 0..256 {
        assert_eq!(play.line(&hook(&format!("r{index}"), "hook_0")).len(), 1);
    }
    for index in 0..4_096 {
        assert!(play.line(&hook(&format!("w{index}"), "hook_0")).is_empty());
    }
    assert!(play.line(&hook("x", "hook_0"))[0].contains("deny"));
    // All time out together.
    let effects = play.pass(60_000);
    let answers = effects.iter().filter(|effect| effect.starts_with("answer")).count();
    assert_eq!(answers, 256 + 4_096);
    assert_eq!(effects.iter().filter(|effect| effect.starts_with("cancel")).count(), 256);
}

#[test]
fn a_request_that_is_too_long_is_answered_with_an_error_or_blocked() {
    let long = "x".repeat(200_000);
    let ask = |play: &mut Play, id: &str, body: &str| {
        let line = request(id, &format!(r#"{body},"input":{{"x":"{long}"}}"#));
        play.happens(oversized(&line))
    };
    let mut play = Play::session();
    let permission = r#""subtype":"can_use_tool","tool_name":"Bash""#;
    let effects = ask(&mut play, "a", permission);
    assert!(effects[0].starts_with("warn OversizedLine"), "{effects:?}");
    assert!(effects[1].starts_with("answer a error \"a request of 200"), "{effects:?}");
    let hook = r#""subtype":"hook_callback","callback_id":"hook_0""#;
    assert_eq!(ask(&mut play, "b", hook)[1], format!("answer b {GO_ON}"));
    // The CLI takes an error of a hook for consent, so a guard must not answer with one.
    let mut play = ready();
    assert!(
        ask(&mut play, "c", hook)[1]
            .starts_with(r#"answer c {"continue":false,"decision":"block""#)
    );
}
