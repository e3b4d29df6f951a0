//! Requests of the CLI: who answers them, and what if nobody does.

use std::time::Duration;

use claude_agent_core::session::{CallbackOutcome, Event, FailureResponse, Plan, RunMode};
use claude_wire::control::CliRequest;

use crate::session_harness::{
    Harness, cancel, hook, oversized, permission, request, with_callbacks,
};

fn ready() -> Harness {
    Harness::ready(with_callbacks())
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
fn callbacks_run_concurrently_and_respond_in_order_of_completion() {
    let mut harness = ready();
    assert_eq!(harness.line(&hook("a", "hook_0")), ["run 1 for a"]);
    assert_eq!(harness.line(&permission("b")), ["run 2 for b"]);
    assert_eq!(harness.line(&permission("c")), ["run 3 for c"]);
    assert!(harness.machine.has_waiters());
    assert_eq!(harness.respond(3, r#"{"x":3}"#), [r#"respond c {"x":3}"#]);
    assert_eq!(harness.respond(1, r#"{"x":1}"#), [r#"respond a {"x":1}"#]);
    assert_eq!(harness.respond(2, r#"{"x":2}"#), [r#"respond b {"x":2}"#]);
    // A callback ends once.
    assert!(harness.respond(2, "{}").is_empty());
    assert!(harness.respond(9, "{}").is_empty());
}

#[test]
fn pending_request_does_not_run_twice() {
    let mut harness = ready();
    assert_eq!(harness.line(&permission("b")), ["run 1 for b"]);
    assert!(harness.line(&permission("b")).is_empty());
}

#[test]
fn failing_hook_allows_or_blocks_by_its_failure_rule() {
    let failed = "the host's callback failed: oh";
    let check = |callback: &str, expected: &str, response: FailureResponse| {
        let mut harness = ready();
        harness.line(&hook("a", callback));
        let effects = harness.finish_callback(1, CallbackOutcome::Failed("oh".to_owned()));
        assert_eq!(effects.len(), 2);
        assert_eq!(effects[0], format!("respond a {expected}"));
        assert!(effects[1].starts_with("warn CallbackFailed"), "{effects:?}");
        assert!(effects[1].ends_with(&format!("response: {response:?} }}")), "{effects:?}");
    };
    check("hook_0", GO_ON, FailureResponse::Continue);
    check("hook_1", &denied(failed), FailureResponse::Deny);
    check(
        "hook_2",
        &format!(
            r#"{{"hookSpecificOutput":{{"decision":{{"behavior":"deny","message":"{failed}"}},"hookEventName":"PermissionRequest"}}}}"#
        ),
        FailureResponse::Deny,
    );
    check(
        "hook_3",
        &format!(r#"{{"continue":false,"stopReason":"{failed}"}}"#),
        FailureResponse::Deny,
    );
    // One that is gone although nobody cancelled it has failed too.
    let mut harness = ready();
    harness.line(&hook("a", "hook_1"));
    assert_eq!(
        harness.finish_callback(1, CallbackOutcome::Aborted)[0],
        format!("respond a {}", denied("the host's callback failed: the callback was aborted"))
    );
}

#[test]
fn failing_mcp_callback_gets_an_error_or_an_acknowledgement() {
    let acknowledged = r#"{"jsonrpc":"2.0","result":{}}"#;
    for (message, answer, what, response) in [
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"add"}}"#,
            r#"{"error":{"code":-32603,"message":"the host's callback failed: oh"},"id":5,"jsonrpc":"2.0"}"#,
            "tool `add` of the MCP server `calc`",
            FailureResponse::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#,
            r#"{"error":{"code":-32603,"message":"the host's callback failed: oh"},"id":"x","jsonrpc":"2.0"}"#,
            "message for the MCP server calc",
            FailureResponse::Error,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            acknowledged,
            "message for the MCP server calc",
            FailureResponse::Acknowledge,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"kit-1","result":{}}"#,
            acknowledged,
            "response for the MCP server calc",
            FailureResponse::Acknowledge,
        ),
    ] {
        let mut plan = with_callbacks();
        plan.mcp_servers.push("calc".to_owned());
        let mut harness = Harness::ready(plan);
        let body = format!(r#""subtype":"mcp_message","server_name":"calc","message":{message}"#);
        assert_eq!(harness.line(&request("a", &body)), ["run 1 for a"]);
        let effects = harness.finish_callback(1, CallbackOutcome::Failed("oh".to_owned()));
        assert_eq!(effects.len(), 2, "{effects:?}");
        assert_eq!(effects[0], format!(r#"respond a {{"mcp_response":{answer}}}"#));
        assert!(effects[1].starts_with("warn CallbackFailed"), "{effects:?}");
        assert!(effects[1].contains(&format!("request: {what:?}")), "{effects:?}");
        assert!(effects[1].ends_with(&format!("response: {response:?} }}")), "{effects:?}");
    }
}

#[test]
fn a_permission_callback_that_fails_denies() {
    let mut harness = ready();
    harness.line(&permission("a"));
    assert_eq!(
        harness.finish_callback(1, CallbackOutcome::Failed("oh".to_owned()))[0],
        format!("respond a {}", no_permission("the host's callback failed: oh"))
    );
}

#[test]
fn permission_is_denied_without_a_callback() {
    let mut harness = Harness::session();
    let effects = harness.line(&permission("a"));
    let reason = "the host has no callback for permissions";
    assert_eq!(effects[0], format!("respond a {}", no_permission(reason)));
    assert!(effects[1].starts_with("warn CallbackFailed"));
}

#[test]
fn unknown_hook_allows_unless_a_fail_closed_hook_is_registered() {
    let unknown = |harness: &mut Harness| harness.line(&hook("a", "hook_9"));
    let effects = unknown(&mut ready());
    assert_eq!(
        effects[0],
        format!("respond a {}", denied("no hook is registered with the callback ID hook_9"))
    );
    assert!(
        effects[1].contains("no hook is registered with the callback ID hook_9"),
        "{effects:?}"
    );
    assert_eq!(unknown(&mut Harness::session())[0], format!("respond a {GO_ON}"));
}

#[test]
fn undecodable_requests_get_the_response_of_the_failure_rule() {
    let ask = |body: &str| ready().line(&request("a", body))[0].clone();
    let input = r#""subtype":"hook_callback","callback_id":"hook_0""#;
    assert_eq!(ask(input), format!("respond a {GO_ON}"));
    let input = r#""subtype":"hook_callback","callback_id":"hook_1""#;
    assert!(ask(input).contains(r#""permissionDecision":"deny""#), "{}", ask(input));
    let input = r#""subtype":"can_use_tool","input":{}"#;
    let answer = ask(input);
    assert!(answer.contains(r#""behavior":"deny""#) && answer.contains("tool_name"), "{answer}");
}

/// The types may know more requests than the machine; it must handle all of them.
#[test]
fn every_known_request_is_supported() {
    for kind in CliRequest::KNOWN {
        let effects = ready().line(&request("a", &format!(r#""subtype":"{kind}""#)));
        assert!(!effects.iter().any(|it| it.contains("Unsupported control")), "{effects:?}");
    }
}

#[test]
fn unsupported_requests_get_an_error_response() {
    let unsupported = |kind: &str| format!("Unsupported control request subtype: {kind}");
    let check = |body: &str, error: &str| {
        let effects = ready().line(&request("a", body));
        assert_eq!(effects.len(), 2, "{body}");
        assert!(
            effects[0].starts_with("respond a error") && effects[0].contains(error),
            "{effects:?}"
        );
        assert!(effects[1].starts_with("warn UnsupportedRequest"), "{effects:?}");
    };
    check(r#""subtype":"brand_new""#, &unsupported("brand_new"));
    check(r#""subtype":"interrupt""#, &unsupported("interrupt"));
    check(r#""subtype":"initialize""#, &unsupported("initialize"));
    check(r#""subtype":"request_user_dialog""#, "dialog_kind");
    check(r#""subtype":"mcp_message","server_name":"calc""#, "message");
    check(r#""nothing":1"#, "subtype");
    let effects = ready().line(r#"{"type":"control_request","request_id":"a"}"#);
    assert!(effects[0].starts_with("respond a error"), "{effects:?}");
    assert!(effects[0].contains("request"), "{effects:?}");
}

#[test]
fn unknown_mcp_server_gets_a_json_rpc_error() {
    let ask = |message: &str| {
        let body = format!(r#""subtype":"mcp_message","server_name":"calc","message":{message}"#);
        Harness::session().line(&request("a", &body))[0].clone()
    };
    let error = r#"{"code":-32601,"message":"the host has no MCP server named calc"}"#;
    for id in ["7", "\"x\"", "0"] {
        assert_eq!(
            ask(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)),
            format!(
                r#"respond a {{"mcp_response":{{"error":{error},"id":{id},"jsonrpc":"2.0"}}}}"#
            )
        );
    }
    let acknowledged = r#"respond a {"mcp_response":{"jsonrpc":"2.0","result":{}}}"#;
    assert_eq!(ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), acknowledged);
    assert_eq!(ask(r#"{"jsonrpc":"2.0","id":4,"result":{}}"#), acknowledged);
    assert_eq!(ask("7"), acknowledged);
}

#[test]
fn mcp_messages_have_a_concurrency_limit_of_their_own() {
    let mut plan = with_callbacks();
    plan.mcp_servers.push("calc".to_owned());
    plan.limits.running_callbacks = 1;
    plan.limits.running_mcp = 1;
    plan.limits.waiting_mcp = 1;
    let mut harness = Harness::ready(plan);
    let call = |id: &str| {
        request(
            id,
            r#""subtype":"mcp_message","server_name":"calc","message":{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#,
        )
    };
    assert_eq!(harness.line(&permission("p")), ["run 1 for p"]);
    assert_eq!(harness.line(&call("a")), ["run 2 for a"]);
    assert!(harness.line(&call("b")).is_empty());
    let denied = harness.line(&call("c"));
    assert_eq!(
        denied[0],
        r#"respond c {"mcp_response":{"error":{"code":-32603,"message":"too many callbacks in flight; try again later"},"id":5,"jsonrpc":"2.0"}}"#
    );
    assert!(denied[1].starts_with("warn CallbackOverload"));
    // They have no time limit.
    assert!(harness.advance(86_400_000).is_empty());
    assert_eq!(
        harness.respond(2, r#"{"mcp_response":{}}"#),
        [r#"respond a {"mcp_response":{}}"#, "run 3 for b"]
    );
}

#[test]
fn json_rpc_cancellation_suppresses_the_response() {
    let mut plan = with_callbacks();
    plan.mcp_servers.extend(["calc".to_owned(), "other".to_owned()]);
    plan.limits.running_mcp = 4;
    let mut harness = Harness::ready(plan);
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
    assert_eq!(harness.line(&call("a", "calc", "5")), ["run 1 for a"]);
    assert_eq!(harness.line(&call("b", "other", "5")), ["run 2 for b"]);
    assert_eq!(harness.line(&call("c", "calc", r#""5""#)), ["run 3 for c"]);
    // The server gets the notification too, and its answer is the acknowledgement.
    assert_eq!(harness.line(&withdraw("n", "5")), ["cancel 1", "run 4 for n"]);
    assert!(harness.respond(1, r#"{"mcp_response":{}}"#).is_empty());
    assert_eq!(harness.respond(4, "{}"), ["respond n {}"]);
    // A second time, and a call that nobody made.
    assert_eq!(harness.line(&withdraw("m", "5")), ["run 5 for m"]);
    assert_eq!(harness.respond(2, "{}"), ["respond b {}"]);
    // One that waits is never run.
    assert_eq!(harness.line(&call("d", "calc", "6")), ["run 6 for d"]);
    assert_eq!(harness.line(&call("e", "calc", "7")), ["run 7 for e"]);
    assert!(harness.line(&call("f", "calc", "8")).is_empty());
    assert!(harness.line(&withdraw("o", "8")).is_empty());
    assert_eq!(harness.respond(3, "{}"), ["respond c {}", "run 9 for o"]);
}

#[test]
fn elicitations_are_declined() {
    let body = r#""subtype":"elicitation","mcp_server_name":"s","message":"?""#;
    let effects = ready().line(&request("a", body));
    assert_eq!(effects[0], r#"respond a {"action":"decline"}"#);
}

#[test]
fn mcp_responses_have_a_concurrency_limit_of_their_own() {
    let mut plan = Plan::new(RunMode::Session);
    plan.mcp_servers.push("calc".to_owned());
    plan.limits.running_mcp = 1;
    plan.limits.waiting_mcp = 0;
    let mut harness = Harness::ready(plan);
    let body = |message: &str| {
        format!(r#""subtype":"mcp_message","server_name":"calc","message":{message}"#)
    };
    let call = body(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#);
    assert_eq!(harness.line(&request("a", &call)), ["run 1 for a"]);
    for (id, key, message) in [
        ("b", 2, r#"{"jsonrpc":"2.0","id":"kit-1","result":{}}"#),
        ("c", 3, r#"{"jsonrpc":"2.0","id":"kit-2","error":{"code":1,"message":"no"}}"#),
    ] {
        assert_eq!(harness.line(&request(id, &body(message))), [format!("run {key} for {id}")]);
        harness.respond(key, "{}");
    }
    // What only looks like one is a call.
    let odd = body(r#"{"jsonrpc":"2.0","id":6,"method":"m","params":{"result":1}}"#);
    assert!(harness.line(&request("d", &odd))[0].starts_with("respond d"), "there is no place");
}

/// Also without an open turn: the CLI begins turns by itself.
#[test]
fn stdout_is_read_for_callbacks_without_readers() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = Plan::new(RunMode::Session);
        change(&mut plan);
        let mut harness = Harness::ready(plan);
        harness.handle(Event::Written(10_000));
        harness.machine.has_waiters()
    };
    assert!(!with(|_| {}), "nobody can be asked");
    assert!(with(|plan| plan.permissions = true));
    assert!(with(|plan| plan.mcp_servers.push("calc".to_owned())));
    assert!(with(|plan| plan.elicitation = true));
    assert!(with(|plan| plan.dialogs = true));
}

#[test]
fn requests_are_denied_when_too_many_bytes_are_pending() {
    let mut plan = with_callbacks();
    plan.limits.request_bytes = 1000;
    let mut harness = Harness::ready(plan);
    let long = |id: &str| {
        let command = "x".repeat(900);
        request(id, &format!(r#""subtype":"can_use_tool","tool_name":"Bash","input":"{command}""#))
    };
    let denied = no_permission("too many callbacks in flight; try again later");
    assert_eq!(harness.line(&long("a")), ["run 1 for a"]);
    assert_eq!(harness.line(&long("b"))[0], format!("respond b {denied}"));
    assert_eq!(harness.respond(1, "{}"), ["respond a {}"]);
    assert_eq!(harness.line(&long("c")), ["run 2 for c"], "there is room again");
    harness.line(&cancel("c"));
    harness.finish_callback(2, CallbackOutcome::Aborted);
    // One that is larger than the limit is served alone.
    let huge = long("d").replace("xxx", "xxxxxx");
    assert_eq!(harness.line(&huge), ["run 3 for d"]);
}

#[test]
fn texts_of_the_cli_are_shortened_in_warnings_and_responses() {
    let long = "x".repeat(100_000);
    let mut harness = ready();
    for body in [
        format!(r#""subtype":"{long}""#),
        format!(r#""subtype":"hook_callback","callback_id":"{long}","input":{{}}"#),
        format!(
            r#""subtype":"mcp_message","server_name":"{long}","message":{{"id":1,"method":"m"}}"#
        ),
        format!(r#""subtype":"request_user_dialog","dialog_kind":"{long}""#),
        format!(r#""subtype":"can_use_tool","tool_name":"{long}""#),
    ] {
        let effects = harness.line(&request("a", &body));
        assert!(effects.iter().any(|effect| effect.starts_with("warn")), "{}", &body[..40]);
        for effect in effects {
            assert!(effect.len() < 10_000, "{} bytes: {}", effect.len(), &effect[..100]);
        }
    }
    let failed = CallbackOutcome::Failed(long.clone());
    assert_eq!(harness.line(&permission("b")), ["run 1 for b"]);
    assert!(harness.finish_callback(1, failed).iter().all(|effect| effect.len() < 10_000));
    let line = format!(r#"{{"type":"{long}"}}"#);
    assert!(harness.handle(oversized(&line)).iter().all(|effect| effect.len() < 10_000));
}

const ELICITATION: &str = r#""subtype":"elicitation","mcp_server_name":"s","message":"?""#;
const DIALOG: &str = r#""subtype":"request_user_dialog","dialog_kind":"x""#;

/// A machine whose host answers for the user, within a second.
fn for_the_user() -> Harness {
    let mut plan = with_callbacks();
    (plan.elicitation, plan.dialogs) = (true, true);
    plan.permission_timeout = Some(Duration::from_secs(1));
    Harness::ready(plan)
}

#[test]
fn dialog_without_a_handler_warns_and_gets_no_response() {
    let effects = ready().line(&request("a", DIALOG));
    assert_eq!(effects.len(), 1);
    assert!(effects[0].starts_with("warn UnsupportedRequest"), "{effects:?}");
}

#[test]
fn elicitations_and_dialogs_behave_like_other_callbacks() {
    for (body, refusal, what) in [
        (ELICITATION, r#"{"action":"decline"}"#, "elicitation of the MCP server s"),
        (DIALOG, r#"{"behavior":"cancelled"}"#, "dialog x"),
    ] {
        let mut harness = for_the_user();
        assert_eq!(harness.line(&request("a", body)), ["run 1 for a"]);
        assert_eq!(harness.respond(1, r#"{"x":1}"#), [r#"respond a {"x":1}"#]);
        harness.line(&request("b", body));
        let effects = harness.finish_callback(2, CallbackOutcome::Failed("oh".to_owned()));
        assert_eq!(effects[0], format!("respond b {refusal}"));
        assert!(effects[1].contains(what) && effects[1].ends_with("response: Deny }"));
        harness.line(&request("c", body));
        let effects = harness.advance(1_000);
        assert_eq!(effects[0], format!("respond c {refusal}"));
        assert!(effects[1].starts_with("warn CallbackTimedOut"), "{effects:?}");
        harness.line(&request("d", body));
        assert_eq!(harness.line(&cancel("d")), ["cancel 4"]);
        assert!(harness.respond(4, "{}").is_empty());
    }
}

#[test]
fn timed_out_callback_gets_a_response_and_is_cancelled_then_aborted() {
    let mut harness = ready();
    let late = "the host's callback took too long";
    harness.line(&hook("a", "hook_0"));
    harness.line(&hook("b", "hook_1"));
    assert!(harness.advance(59_999).is_empty());
    let effects = harness.advance(1);
    assert_eq!(effects[0], format!("respond a {GO_ON}"));
    assert_eq!(
        effects[1],
        r#"warn CallbackTimedOut { request: "hook for PreToolUse", timeout: 60s, response: Continue }"#
    );
    assert_eq!(effects[2], "cancel 1");
    assert_eq!(effects[3], format!("respond b {}", denied(late)));
    assert_eq!(effects[5], "cancel 2");
    assert!(harness.machine.has_waiters(), "the abort is due, whoever reads");
    // One heeds the cancel, and its answer comes too late.
    assert!(harness.respond(1, "{}").is_empty());
    assert!(harness.advance(999).is_empty());
    assert_eq!(harness.advance(1), ["abort 2"]);
    assert!(harness.advance(100_000).is_empty());
    assert!(harness.finish_callback(2, CallbackOutcome::Aborted).is_empty());
    assert_eq!(harness.machine.wake_at(), None);
}

#[test]
fn hook_that_never_ran_is_denied() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 1;
    let mut harness = Harness::ready(plan);
    harness.line(&permission("a"));
    // It fails open, but only when it was state.
    assert!(harness.line(&hook("b", "hook_0")).is_empty());
    let effects = harness.advance(60_000);
    assert_eq!(
        effects[0],
        format!("respond b {}", denied("too many callbacks in flight; try again later"))
    );
    assert!(effects[1].starts_with("warn CallbackOverload"), "{effects:?}");
}

#[test]
fn permission_callbacks_have_no_timeout_by_default() {
    let mut harness = ready();
    harness.line(&permission("a"));
    assert_eq!(harness.machine.wake_at(), None);
    let mut plan = with_callbacks();
    plan.permission_timeout = Some(Duration::from_secs(5));
    let mut harness = Harness::ready(plan);
    harness.line(&permission("a"));
    let late = no_permission("the host's callback took too long");
    assert_eq!(harness.advance(5_000)[0], format!("respond a {late}"));
}

#[test]
fn callback_timeout_starts_with_the_request() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 1;
    let mut harness = Harness::ready(plan);
    harness.line(&permission("a"));
    assert!(harness.line(&hook("b", "hook_1")).is_empty());
    // It waits for a place all the while, and is never run.
    let effects = harness.advance(60_000);
    assert!(effects[0].starts_with("respond b"), "{effects:?}");
    assert_eq!(effects.len(), 2);
    assert_eq!(harness.respond(1, "{}"), ["respond a {}"]);
}

#[test]
fn cancelled_request_gets_no_response() {
    let mut harness = ready();
    harness.line(&hook("a", "hook_0"));
    assert_eq!(harness.line(&cancel("a")), ["cancel 1"]);
    assert!(harness.line(&cancel("a")).is_empty());
    assert!(harness.line(&cancel("never asked")).is_empty());
    assert_eq!(harness.advance(1_000), ["abort 1"]);
    assert!(harness.respond(1, "{}").is_empty());
    // The answer was first.
    harness.line(&hook("b", "hook_0"));
    assert_eq!(harness.respond(2, "{}"), ["respond b {}"]);
    assert!(harness.line(&cancel("b")).is_empty());
}

#[test]
fn without_a_grace_a_cancelled_callback_is_aborted_at_once() {
    let mut plan = with_callbacks();
    plan.limits.cancel_grace = Duration::ZERO;
    let mut harness = Harness::ready(plan);
    harness.line(&hook("a", "hook_0"));
    assert_eq!(harness.line(&cancel("a")), ["cancel 1", "abort 1"]);
}

#[test]
fn callbacks_are_queued_and_then_denied() {
    let mut plan = with_callbacks();
    plan.limits.running_callbacks = 2;
    plan.limits.waiting_callbacks = 2;
    let mut harness = Harness::ready(plan);
    assert_eq!(harness.line(&hook("a", "hook_0")), ["run 1 for a"]);
    assert_eq!(harness.line(&permission("b")), ["run 2 for b"]);
    assert!(harness.line(&hook("c", "hook_0")).is_empty());
    assert!(harness.line(&permission("d")).is_empty());
    // Overload approves nothing, whatever the fail rule says.
    let too_much = "too many callbacks in flight; try again later";
    let effects = harness.line(&hook("e", "hook_0"));
    assert_eq!(
        effects,
        [
            format!("respond e {}", denied(too_much)),
            r#"warn CallbackOverload { request: "hook for PreToolUse" }"#.to_owned(),
        ]
    );
    assert_eq!(harness.line(&permission("f"))[0], format!("respond f {}", no_permission(too_much)));
    // One that waits can be cancelled; then there is a place again.
    assert!(harness.line(&cancel("c")).is_empty());
    assert!(harness.line(&hook("g", "hook_0")).is_empty());
    assert_eq!(harness.respond(1, "{}"), ["respond a {}", "run 4 for d"]);
    // A cancelled callback keeps its place until it has ended.
    assert_eq!(harness.line(&cancel("b")), ["cancel 2"]);
    assert_eq!(harness.advance(1_000), ["abort 2"]);
    assert_eq!(harness.finish_callback(2, CallbackOutcome::Aborted), ["run 5 for g"]);
}

#[test]
fn by_default_256_callbacks_run_and_4096_wait() {
    let mut harness = ready();
    for index in 0..256 {
        assert_eq!(harness.line(&hook(&format!("r{index}"), "hook_0")).len(), 1);
    }
    for index in 0..4_096 {
        assert!(harness.line(&hook(&format!("w{index}"), "hook_0")).is_empty());
    }
    assert!(harness.line(&hook("x", "hook_0"))[0].contains("deny"));
    // All time out together.
    let effects = harness.advance(60_000);
    let answers = effects.iter().filter(|effect| effect.starts_with("respond")).count();
    assert_eq!(answers, 256 + 4_096);
    assert_eq!(effects.iter().filter(|effect| effect.starts_with("cancel")).count(), 256);
}

#[test]
fn oversized_request_gets_an_error_response_or_is_blocked() {
    let long = "x".repeat(200_000);
    let ask = |harness: &mut Harness, id: &str, body: &str| {
        let line = request(id, &format!(r#"{body},"input":{{"x":"{long}"}}"#));
        harness.handle(oversized(&line))
    };
    let mut harness = Harness::session();
    let permission = r#""subtype":"can_use_tool","tool_name":"Bash""#;
    let effects = ask(&mut harness, "a", permission);
    assert!(effects[0].starts_with("warn OversizedLine"), "{effects:?}");
    assert!(effects[1].starts_with("respond a error \"the request of 200"), "{effects:?}");
    let hook = r#""subtype":"hook_callback","callback_id":"hook_0""#;
    assert_eq!(ask(&mut harness, "b", hook)[1], format!("respond b {GO_ON}"));
    // The CLI takes an error of a hook for consent, so a guard must not answer with one.
    let mut harness = ready();
    assert!(
        ask(&mut harness, "c", hook)[1]
            .starts_with(r#"respond c {"continue":false,"decision":"block""#)
    );
}
