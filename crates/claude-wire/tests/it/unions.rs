//! Open unions: unknown is kept, what does not fit is isolated, fields without a name stay.

use claude_wire::content::{Content, ContentBlock};
use claude_wire::message::{PermissionDenial, SystemMessage};
use claude_wire::{Body, Message};
use serde_json::{Value, json};

fn decode(line: &Value) -> Message {
    Message::decode(line.to_string()).unwrap()
}

fn body_as_json(message: &Message) -> Value {
    serde_json::from_str(&serde_json::to_string(&message.body).unwrap()).unwrap()
}

#[test]
fn an_unknown_type_is_delivered_with_all_its_fields() {
    let line = json!({"type": "weather", "uuid": "u", "sky": {"clouds": [1, 2]}, "none": null});
    let message = decode(&line);
    let Body::Unknown(unknown) = &message.body else { panic!("{message:?}") };
    assert_eq!(unknown.kind, "weather");
    assert_eq!(unknown.fields.get("sky").unwrap().text(), r#"{"clouds":[1,2]}"#);
    assert_eq!(body_as_json(&message), line);
}

#[test]
fn an_unknown_subtype_is_delivered_with_all_its_fields() {
    let line = json!({"type": "system", "subtype": "weather", "sky": "blue"});
    let message = decode(&line);
    let Body::System(SystemMessage::Unknown(unknown)) = &message.body else {
        panic!("{message:?}")
    };
    assert_eq!(unknown.kind, "weather");
    assert_eq!(body_as_json(&message), line);
}

#[test]
fn an_unknown_block_and_an_unknown_enum_value_are_kept() {
    let line = json!({
        "type": "assistant",
        "message": {
            "content": [{"type": "hologram", "depth": 3}, {"type": "text", "text": "hi"}],
            "stop_reason": "sunset",
        },
    });
    let message = decode(&line);
    let Body::Assistant(assistant) = &message.body else { panic!("{message:?}") };
    let [ContentBlock::Unknown(block), ContentBlock::Text(text)] = assistant.content() else {
        panic!("{assistant:?}")
    };
    assert_eq!(block.kind, "hologram");
    assert_eq!(text.text, "hi");
    let api = assistant.message.as_ref().unwrap();
    assert_eq!(api.stop_reason.as_ref().unwrap(), &"sunset");
    assert_eq!(body_as_json(&message), line);
}

#[test]
fn the_tag_may_come_last() {
    let text = r#"{"session_id":"s","message":{"content":[{"text":"a","type":"text"},{"input":{"q":1},"name":"N","id":"t","type":"tool_use"}]},"type":"assistant"}"#;
    let message = Message::decode(text).unwrap();
    let Body::Assistant(assistant) = &message.body else { panic!("{message:?}") };
    assert_eq!(assistant.text(), "a");
    assert_eq!(message.session_id().unwrap(), &"s");
    assert!(matches!(assistant.content()[1], ContentBlock::ToolUse(_)));

    let text = r#"{"subtype":"init","model":"m","type":"system"}"#;
    let Body::System(SystemMessage::Init(init)) = Message::decode(text).unwrap().body else {
        panic!()
    };
    assert_eq!(init.model.as_deref(), Some("m"));
}

#[test]
fn first_of_two_equal_tags_counts() {
    for text in
        [r#"{"type":"keeper","type":"result","x":1}"#, r#"{"x":1,"type":"keeper","type":"result"}"#]
    {
        assert_eq!(Message::decode(text).unwrap().body.kind(), Some("keeper"), "{text}");
        assert_eq!(claude_wire::Envelope::read(text.as_bytes()).unwrap().kind, "keeper");
    }
}

#[test]
fn a_block_that_does_not_fit_is_isolated_inside_its_message() {
    let line = json!({
        "type": "assistant",
        "message": {"content": [
            {"type": "text", "text": "before"},
            {"type": "text", "text": 5},
            {"type": "tool_use", "id": "t", "input": {}},
            "not an object",
            {"no": "type"},
            {"type": 7},
            {"type": "text", "text": "after"},
        ]},
        "uuid": "u-1",
    });
    let message = decode(&line);
    let Body::Assistant(assistant) = &message.body else { panic!("{message:?}") };
    let blocks = assistant.content();
    assert_eq!(assistant.text(), "beforeafter");
    assert_eq!(assistant.uuid.as_ref().unwrap(), &"u-1");
    let reasons: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Undecodable(undecodable) => {
                Some((undecodable.kind.as_deref(), undecodable.reason.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    assert_eq!(reasons[0].0, Some("text"));
    assert!(reasons[0].1.contains("expected a string"), "{reasons:?}");
    assert!(reasons[1].1.contains("missing field `name`"), "{reasons:?}");
    assert_eq!((reasons[2].0, reasons[3].0, reasons[4].0), (None, None, None));
    // Nothing of it is lost.
    assert_eq!(body_as_json(&message), line);
}

#[test]
fn a_block_inside_a_tool_result_is_isolated_there() {
    let line = json!({
        "type": "user",
        "message": {"role": "user", "content": [
            {"tool_use_id": "t", "type": "tool_result", "content": [{"type": "image"}]},
        ]},
        "parent_tool_use_id": null,
    });
    let message = decode(&line);
    let Body::User(user) = &message.body else { panic!("{message:?}") };
    let ContentBlock::ToolResult(result) = &user.content().unwrap().blocks()[0] else {
        panic!("{user:?}")
    };
    let blocks = result.content.as_ref().map(Content::blocks).unwrap();
    assert!(matches!(&blocks[0], ContentBlock::Undecodable(block)
        if block.kind.as_deref() == Some("image") && block.reason.contains("source")));
    assert_eq!(body_as_json(&message), line);
}

#[test]
fn undecodable_frame_keeps_its_reason_and_its_bytes() {
    let line = json!({"type": "assistant", "message": {"content": {"not": "a list"}}});
    let message = decode(&line);
    let undecodable = message.undecodable().unwrap();
    assert_eq!(undecodable.kind.as_deref(), Some("assistant"));
    assert!(undecodable.reason.contains("expected a sequence"), "{}", undecodable.reason);
    assert_eq!(message.raw_str().unwrap(), line.to_string());
    assert_eq!(body_as_json(&message), line);
    // Told apart from a type that is new.
    assert!(!matches!(message.body, Body::Unknown(_)));
}

#[test]
fn fields_without_a_name_are_kept_at_every_depth() {
    let line = json!({
        "type": "result",
        "new": 1,
        "usage": {"input_tokens": 3, "new": 2, "server_tool_use": {"new": 3}},
        "modelUsage": {"m": {"costUSD": 0.5, "new": 4}},
        "permission_denials": [{"tool_name": "Bash", "new": 5}],
        "origin": {"kind": "human", "new": 6},
    });
    let message = decode(&line);
    let Body::Result(result) = &message.body else { panic!("{message:?}") };
    assert_eq!(result.extra.get("new").unwrap().text(), "1");
    let denial: &PermissionDenial = &result.permission_denials[0];
    assert_eq!(denial.extra.get("new").unwrap().text(), "5");
    assert_eq!(body_as_json(&message), line);
}

#[test]
fn empty_and_absent_lists_are_distinguished() {
    for line in [
        json!({"type": "result", "permission_denials": [], "errors": []}),
        json!({"type": "result", "errors": []}),
        json!({"type": "result"}),
    ] {
        assert_eq!(body_as_json(&decode(&line)), line);
    }
}

#[test]
fn counts_times_and_costs_take_any_number() {
    for number in ["5", "5.0", "5e0", "-1", "18446744073709551616", "1e400", "-1E-400", "0.1"] {
        let text = format!(
            r#"{{"type":"result","num_turns":{number},"total_cost_usd":{number},"usage":{{"input_tokens":{number}}}}}"#
        );
        let message = Message::decode(text.clone()).unwrap();
        let Body::Result(result) = &message.body else { panic!("{number}: {message:?}") };
        let turns = result.num_turns.as_ref().unwrap();
        let exact: f64 = number.parse().unwrap();
        assert_eq!(turns.as_f64().to_bits(), exact.to_bits(), "{number}");
        let written = serde_json::to_string(&message.body).unwrap();
        assert!(claude_wire::Json::from_text(written).is_ok(), "{number} is written as JSON");
    }
    let Body::Result(result) =
        Message::decode(r#"{"type":"result","num_turns":5.0,"duration_ms":-1}"#).unwrap().body
    else {
        panic!()
    };
    assert_eq!(result.num_turns.clone().unwrap(), 5);
    assert_eq!(result.duration_ms.clone().unwrap().as_u64(), None);
}

#[test]
fn value_that_is_not_a_number_is_rejected() {
    for value in ["\"5\"", "true", "[5]", "{}"] {
        let line = format!(r#"{{"type":"result","num_turns":{value}}}"#);
        let message = Message::decode(line).unwrap();
        assert!(message.undecodable().is_some(), "{value}: {message:?}");
    }
}

#[test]
fn opaque_payloads_keep_their_text() {
    let input = r#"{ "b" : 1.0, "a":[1e2 ,"\u0041\ud83d"] }"#;
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t","name":"N","input":{input}}}]}}}}"#
    );
    let message = Message::decode(line).unwrap();
    assert!(!message.repaired(), "a payload is not looked into");
    let Body::Assistant(assistant) = &message.body else { panic!("{message:?}") };
    let ContentBlock::ToolUse(call) = &assistant.content()[0] else { panic!("{assistant:?}") };
    assert_eq!(call.input.text(), input);
    let value: Value = call.input.deserialize().unwrap();
    assert_eq!(value["a"][1], "A\u{fffd}");
}
