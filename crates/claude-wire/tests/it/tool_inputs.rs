//! Tool inputs as types: what is known, what is not, what does not fit.

use claude_wire::content::ContentBlock;
use claude_wire::control::CanUseTool;
use claude_wire::hook_input::HookInput;
use claude_wire::message::{DeferredToolUse, PermissionDenial};
use claude_wire::tool_input::ToolInput;
use claude_wire::{Body, FromCli, Json};
use serde_json::{Value, json};

use crate::recording::corpus;

fn read(name: &str, input: Value) -> ToolInput {
    ToolInput::new(name, &Json::from(input))
}

#[test]
fn a_known_tool_has_its_fields_and_keeps_unknown_ones() {
    let input = json!({"command": "ls", "timeout": 5.0, "description": null, "colour": "red"});
    let ToolInput::Bash(bash) = read("Bash", input) else { panic!() };
    assert_eq!(bash.command, "ls");
    assert_eq!(bash.timeout.unwrap(), 5);
    assert_eq!(bash.description, None);
    assert_eq!(bash.extra.get("colour").unwrap().as_str().unwrap(), "red");
}

#[test]
fn older_tool_name_decodes_alike() {
    let input = json!({"description": "d", "prompt": "p"});
    assert_eq!(read("Task", input.clone()), read("Agent", input));
}

#[test]
fn a_tool_without_a_type_is_other() {
    let names = ["mcp__calc__add", "bash", "Bash ", "", "BashTool"];
    for name in names {
        let read = read(name, json!({"command": "ls"}));
        let ToolInput::Other { name: other, input } = read else { panic!("{name}: {read:?}") };
        assert_eq!(other, name);
        assert_eq!(input.get("command").unwrap().as_str().unwrap(), "ls");
    }
}

#[test]
fn known_tool_with_undecodable_input_is_never_other() {
    let inputs = [
        json!({}),
        json!(null),
        json!("ls"),
        json!(["ls"]),
        json!({"command": null}),
        json!({"command": ["ls"]}),
        json!({"Command": "ls"}),
        json!({"command": "ls", "timeout": "5"}),
        json!({"command": "ls", "run_in_background": "yes"}),
    ];
    for input in inputs {
        let ToolInput::Undecodable { name, input: kept, reason } = read("Bash", input.clone())
        else {
            panic!("{input}")
        };
        assert_eq!(name, "Bash");
        assert_eq!(kept.deserialize::<Value>().unwrap(), input);
        assert!(!reason.is_empty());
    }
}

#[test]
fn the_last_of_several_equal_members_counts_as_in_the_cli() {
    let input = Json::from_text(r#"{"command":"ls","command":"rm -rf /"}"#).unwrap();
    let ToolInput::Bash(bash) = ToolInput::new("Bash", &input) else { panic!() };
    assert_eq!(bash.command, "rm -rf /");
}

#[test]
fn broken_escape_becomes_the_replacement_character() {
    let input = Json::from_text(r#"{"command":"echo \ud800"}"#).unwrap();
    let ToolInput::Bash(bash) = ToolInput::new("Bash", &input) else { panic!() };
    assert_eq!(bash.command, "echo \u{fffd}");
}

#[test]
fn an_input_that_was_not_sent_does_not_decode() {
    let hook = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"});
    let HookInput::PreToolUse(call) = serde_json::from_value(hook).unwrap() else { panic!() };
    assert!(matches!(call.tool_input(), ToolInput::Undecodable { .. }));
    let hook = json!({"hook_event_name": "PreToolUse"});
    let HookInput::PreToolUse(call) = serde_json::from_value(hook).unwrap() else { panic!() };
    assert_eq!(call.tool(), "");
    assert!(matches!(call.tool_input(), ToolInput::Other { .. }));
}

#[test]
fn every_tool_call_decodes_alike() {
    let input = json!({"command": "ls"});
    let expected = read("Bash", input.clone());
    let named = json!({"tool_name": "Bash", "tool_input": input});
    for event in ["PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"] {
        let mut hook = named.clone();
        hook["hook_event_name"] = event.into();
        let (tool, read) = match serde_json::from_value(hook).unwrap() {
            HookInput::PreToolUse(call) => (call.tool().to_owned(), call.tool_input()),
            HookInput::PostToolUse(call) => (call.tool().to_owned(), call.tool_input()),
            HookInput::PostToolUseFailure(call) => (call.tool().to_owned(), call.tool_input()),
            HookInput::PermissionRequest(call) => (call.tool().to_owned(), call.tool_input()),
            other => panic!("{other:?}"),
        };
        assert_eq!((tool.as_str(), &read), ("Bash", &expected), "{event}");
    }
    let denied =
        json!({"hook_event_name": "PermissionDenied", "tool_name": "Bash", "tool_input": input});
    let HookInput::PermissionDenied(call) = serde_json::from_value(denied).unwrap() else {
        panic!()
    };
    assert_eq!(call.tool_input(), expected);
    let batch = json!({"hook_event_name": "PostToolBatch", "tool_calls": [named]});
    let HookInput::PostToolBatch(batch) = serde_json::from_value(batch).unwrap() else { panic!() };
    assert_eq!(batch.tool_calls[0].tool_input(), expected);
    let request: CanUseTool =
        serde_json::from_value(json!({"tool_name": "Bash", "input": input})).unwrap();
    assert_eq!(request.tool_input(), expected);
    let block = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": input});
    let ContentBlock::ToolUse(block) = serde_json::from_value(block).unwrap() else { panic!() };
    assert_eq!(block.tool_input(), expected);
    let denial: PermissionDenial = serde_json::from_value(named).unwrap();
    assert_eq!(denial.tool_input(), expected);
    let deferred = json!({"id": "t", "name": "Bash", "input": input});
    let deferred: DeferredToolUse = serde_json::from_value(deferred).unwrap();
    assert_eq!((deferred.tool(), deferred.tool_input()), ("Bash", expected));
}

#[test]
fn every_recorded_tool_call_decodes_and_has_no_unknown_fields() {
    let mut known = 0;
    for line in corpus().into_iter().flat_map(|recorded| recorded.from_cli) {
        let Ok(FromCli::Message(message)) = FromCli::decode(line.bytes.clone()) else { continue };
        if !matches!(message.body, Body::Assistant(_)) {
            continue;
        }
        for call in message.tool_calls() {
            let input = call.tool_input();
            if let ToolInput::Undecodable { reason, .. } = &input {
                panic!("{}: {}: {reason}: {}", line.place, call.name, call.input);
            }
            if let Some(extra) = input.extra() {
                known += 1;
                assert!(extra.is_empty(), "{}: {}: {}", line.place, call.name, call.input);
            }
        }
    }
    assert!(known > 50, "{known} calls of known tools");
}
