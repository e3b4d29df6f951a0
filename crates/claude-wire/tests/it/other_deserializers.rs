//! Types decode alike from text, from a `serde_json::Value` and from a reader.

use std::fmt::Debug;

use claude_wire::content::{Content, ContentBlock};
use claude_wire::control::{
    CliControlRequest, ControlResponse, HookOutput, PermissionResponse, PermissionUpdate,
};
use claude_wire::hook_input::HookInput;
use claude_wire::{Body, FromCli, FromHost, Json, Number};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::recording::{RecordedLine, corpus};

/// Decodes the line from everything that `serde_json` reads, and compares what is written again.
fn assert_alike<T: DeserializeOwned + Serialize>(decoded: &T, line: &RecordedLine) {
    let original: Value = serde_json::from_slice(&line.bytes).unwrap();
    let expected = serde_json::to_value(decoded).unwrap();
    let others = [
        serde_json::from_value::<T>(original.clone()),
        T::deserialize(&original),
        serde_json::from_reader(line.bytes.as_slice()),
        serde_json::from_slice(&line.bytes),
    ];
    for other in others {
        let other = other.unwrap_or_else(|error| panic!("{}: {error}", line.place));
        assert_eq!(serde_json::to_value(other).unwrap(), expected, "{}", line.place);
    }
}

#[test]
fn every_recorded_line_decodes_alike_from_a_value_and_from_a_reader() {
    let mut lines = 0;
    for recorded in corpus() {
        for line in recorded.from_cli {
            lines += 1;
            match FromCli::decode(line.bytes.clone()).unwrap() {
                // serde_json itself refuses what was repaired.
                FromCli::Message(message) if message.repaired() => {}
                FromCli::Message(message) => assert_alike(&message.body, &line),
                FromCli::Request(frame) => assert_alike::<CliControlRequest>(&frame, &line),
                FromCli::Response(frame) => assert_alike::<ControlResponse>(&frame, &line),
                FromCli::Cancel(frame) => assert_alike(&frame, &line),
                FromCli::KeepAlive(frame) => assert_alike(&frame, &line),
                FromCli::TranscriptMirror(frame) => assert_alike(&frame, &line),
                other => panic!("{}: {other:?}", line.place),
            }
        }
    }
    assert!(lines > 1_000, "{lines} lines");
}

/// Whatever the order of keys: a `Value` sorts them, so that most tags come late.
fn check<T: DeserializeOwned + Serialize + Debug + PartialEq>(value: Value) -> T {
    let text = value.to_string();
    let decoded: T = T::deserialize(&value).unwrap();
    assert_eq!(decoded, serde_json::from_reader(text.as_bytes()).unwrap());
    assert_eq!(decoded, serde_json::from_str(&text).unwrap());
    assert_eq!(serde_json::to_value(&decoded).unwrap(), value);
    assert_eq!(decoded, serde_json::from_value(value).unwrap());
    decoded
}

#[test]
fn unions_that_hosts_build_decode_from_a_value() {
    let rules = json!({
        "type": "addRules", "behavior": "allow", "destination": "session",
        "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}],
    });
    check::<PermissionUpdate>(rules.clone());
    check::<PermissionResponse>(json!({"behavior": "allow", "updatedPermissions": [rules]}));
    check::<ContentBlock>(json!({"id": "t", "input": {"a": 1}, "name": "N", "type": "tool_use"}));
    check::<Content>(json!([{"content": [{"text": "x", "type": "text"}], "tool_use_id": "t",
        "type": "tool_result", "is_error": true}]));
    check::<HookInput>(json!({"cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "ls"}}));
    check::<HookOutput>(json!({"hookSpecificOutput": {"additionalContext": "x",
        "hookEventName": "Stop"}}));
    check::<Json>(json!({"b": [1, {"c": null}]}));
    check::<Number>(json!(5));
    let body: Body = check(json!({"result": "done", "subtype": "success", "type": "result"}));
    assert!(matches!(body, Body::Result(_)), "{body:?}");
    let body: Body = check(json!({"sky": "blue", "type": "weather"}));
    assert!(matches!(body, Body::Unknown(_)), "{body:?}");
}

#[test]
fn undecodable_member_is_an_error_that_names_its_field() {
    let update = json!({"destination": 5, "type": "addRules"});
    let error = serde_json::from_value::<PermissionUpdate>(update).unwrap_err().to_string();
    assert!(error.contains("expected a string"), "{error}");
    let block = json!({"id": "t", "name": "N", "type": "tool_use"});
    let error = serde_json::from_value::<ContentBlock>(block).unwrap_err().to_string();
    assert!(error.contains("missing field `input`"), "{error}");
    let error = serde_json::from_value::<ContentBlock>(json!("text")).unwrap_err().to_string();
    assert!(error.contains("an object (ContentBlock)"), "{error}");
}

/// A type of a host that decodes one of ours from a value while it is itself decoded.
#[derive(Debug)]
struct Nested(PermissionUpdate);

impl<'de> serde::Deserialize<'de> for Nested {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        serde_json::from_value(value).map(Self).map_err(serde::de::Error::custom)
    }
}

#[test]
fn a_type_of_the_host_may_decode_values_inside() {
    let json = Json::from(json!([{"mode": "plan", "type": "setMode"}]));
    let nested: Vec<Nested> = json.deserialize().unwrap();
    assert!(matches!(nested[0].0, PermissionUpdate::SetMode(_)), "{nested:?}");
}

#[test]
fn lines_of_the_host_decode_alike() {
    for recorded in corpus() {
        for line in recorded.from_host {
            let Ok(frame) = FromHost::decode(line.bytes.clone()) else { continue };
            let FromHost::User(message) = frame else { continue };
            assert_alike(&message, &line);
        }
    }
}
