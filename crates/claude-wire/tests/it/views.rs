//! Accessors for what users read, with their defaults for what is absent.

use std::path::Path;
use std::time::Duration;

use claude_wire::control::{McpCall, PermissionDestination, PermissionMode, PermissionUpdate};
use claude_wire::hook_input::HookInput;
use claude_wire::message::{ResultMessage, StopReason, SystemMessage};
use claude_wire::{Body, Exit, Message, Tokens};
use serde_json::{Value, json};

fn message(value: &Value) -> Message {
    Message::decode(value.to_string()).unwrap()
}

fn result(value: Value) -> ResultMessage {
    serde_json::from_value(value).unwrap()
}

fn tokens(input: u64, output: u64, cache_read: u64, cache_creation: u64) -> Tokens {
    let mut tokens = Tokens::default();
    (tokens.input, tokens.output) = (input, output);
    (tokens.cache_read, tokens.cache_creation) = (cache_read, cache_creation);
    tokens
}

#[test]
fn a_result_is_read_without_options() {
    let result = result(json!({
        "type": "result", "is_error": true, "result": "done", "num_turns": 3, "duration_ms": 1500,
        "duration_api_ms": 20.5, "total_cost_usd": 0.25,
        "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4},
    }));
    assert!(result.is_error());
    assert_eq!((result.text(), result.turns()), ("done", 3));
    assert_eq!(result.duration(), Duration::from_millis(1500));
    assert_eq!(result.api_duration(), Duration::from_micros(20_500));
    assert_eq!(result.tokens(), tokens(1, 2, 3, 4));
    assert!((result.conversation_dollars() - 0.25).abs() < f64::EPSILON);
}

#[test]
fn result_with_missing_or_odd_fields_has_defaults() {
    let odd = json!({"num_turns": -1, "duration_ms": -5, "duration_api_ms": 1e300,
        "total_cost_usd": -1, "usage": {"input_tokens": 0.5}});
    for value in [json!({}), odd] {
        let result = result(value);
        assert!(!result.is_error());
        assert_eq!((result.text(), result.turns()), ("", 0));
        assert_eq!((result.duration(), result.api_duration()), (Duration::ZERO, Duration::ZERO));
        assert_eq!(result.tokens(), Tokens::default());
        assert!(result.conversation_dollars().abs() < f64::EPSILON);
    }
}

#[test]
fn an_answer_has_its_model_its_stop_reason_and_its_tool_calls() {
    let answer = message(&json!({"type": "assistant", "message": {
        "model": "claude-x", "stop_reason": "tool_use", "usage": {"output_tokens": 7},
        "content": [{"type": "text", "text": "I look. "},
            {"type": "tool_use", "id": "a", "name": "Read", "input": {"file_path": "x"}},
            {"type": "text", "text": "And there."},
            {"type": "tool_use", "id": "b", "name": "Bash", "input": {"command": "ls"}}],
    }}));
    let names: Vec<_> = answer.tool_calls().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["Read", "Bash"]);
    assert_eq!(answer.tool_results().count(), 0);
    let Body::Assistant(answer) = &answer.body else { panic!() };
    assert_eq!((answer.model(), answer.text().as_str()), ("claude-x", "I look. And there."));
    assert_eq!(answer.stop_reason(), Some(&StopReason::ToolUse));
    assert_eq!(answer.tokens(), tokens(0, 7, 0, 0));
    assert_eq!(answer.tool_calls().count(), 2);

    let Body::Assistant(empty) = message(&json!({"type": "assistant"})).body else { panic!() };
    assert_eq!((empty.model(), empty.text().as_str(), empty.stop_reason()), ("", "", None));
    assert_eq!((empty.tokens(), empty.tool_calls().count()), (Tokens::default(), 0));
}

#[test]
fn tool_results_have_their_text() {
    let told = message(&json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "is_error": true,
            "content": [{"type": "text", "text": "t"}, {"type": "text", "text": "wo"}]},
        {"type": "tool_result", "tool_use_id": "c"},
    ]}}));
    let results: Vec<_> = told
        .tool_results()
        .map(|result| (result.tool_use_id.as_str(), result.text(), result.is_error()))
        .collect();
    let expected = [
        ("a", "one".to_owned(), false),
        ("b", "two".to_owned(), true),
        ("c", String::new(), false),
    ];
    assert_eq!(results, expected);
    assert_eq!(told.tool_calls().count(), 0);
    let prompt = message(&json!({"type": "user", "message": {"role": "user", "content": "hi"}}));
    assert_eq!(prompt.tool_results().count(), 0);
    assert_eq!(message(&json!({"type": "result"})).tool_calls().count(), 0);
}

#[test]
fn the_start_of_a_turn_and_a_hook_have_a_directory() {
    let init = message(&json!({"type": "system", "subtype": "init", "cwd": "/w", "model": "m",
        "claude_code_version": "2.1.325"}));
    let Body::System(SystemMessage::Init(init)) = &init.body else { panic!() };
    assert_eq!((init.model_name(), init.version()), ("m", "2.1.325"));
    assert_eq!(init.directory(), Path::new("/w"));
    let hook = json!({"hook_event_name": "Stop", "cwd": "/w"});
    let HookInput::Stop(stop) = serde_json::from_value(hook).unwrap() else { panic!() };
    assert_eq!(stop.directory(), Path::new("/w"));
    let HookInput::Stop(stop) = serde_json::from_value(json!({"hook_event_name": "Stop"})).unwrap()
    else {
        panic!()
    };
    assert_eq!(stop.directory(), Path::new(""));
}

#[test]
fn permission_updates_are_built_as_the_cli_reads_them() {
    let check = |update: PermissionUpdate, expected: Value| {
        assert_eq!(serde_json::to_value(update).unwrap(), expected);
    };
    let rule = |behavior: &str, rule: Value, destination: &str| {
        json!({"type": "addRules", "rules": [rule], "behavior": behavior,
            "destination": destination})
    };
    let touch = json!({"toolName": "Bash", "ruleContent": "touch:*"});
    check(PermissionUpdate::allow("Bash", "touch:*"), rule("allow", touch.clone(), "session"));
    check(PermissionUpdate::deny("Bash", "touch:*"), rule("deny", touch.clone(), "session"));
    check(PermissionUpdate::ask("Bash", "touch:*"), rule("ask", touch, "session"));
    check(
        PermissionUpdate::allow("WebFetch", None).saved_in(PermissionDestination::LocalSettings),
        rule("allow", json!({"toolName": "WebFetch"}), "localSettings"),
    );
    check(
        PermissionUpdate::add_directory("/lib").saved_in(PermissionDestination::UserSettings),
        json!({"type": "addDirectories", "directories": ["/lib"], "destination": "userSettings"}),
    );
    check(
        PermissionUpdate::set_mode(PermissionMode::AcceptEdits),
        json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
    );
    let unknown: PermissionUpdate = serde_json::from_value(json!({"type": "new"})).unwrap();
    check(unknown.saved_in(PermissionDestination::Session), json!({"type": "new"}));
}

#[test]
fn a_call_of_an_mcp_tool_is_built_from_its_parts() {
    let call = McpCall::new("calc", "add").argument("a", 1).argument("b", "x").argument("a", 2);
    let call = serde_json::to_value(call.timeout(Duration::from_secs(2))).unwrap();
    assert_eq!(call["tool"], "mcp__calc__add");
    assert_eq!(call["arguments"], json!({"a": 2, "b": "x"}));
    assert_eq!(call["timeout_ms"], 2000);
}

#[test]
fn exit_displays_its_code_or_signal() {
    let facts = |exit: Exit| (exit.success(), exit.code(), exit.signal(), exit.to_string());
    assert_eq!(facts(Exit::Code(0)), (true, Some(0), None, "exit code 0".to_owned()));
    assert_eq!(facts(Exit::Code(7)), (false, Some(7), None, "exit code 7".to_owned()));
    assert_eq!(facts(Exit::Signal(9)), (false, None, Some(9), "signal 9".to_owned()));
    assert_eq!(facts(Exit::Unknown), (false, None, None, "an unknown status".to_owned()));
}
