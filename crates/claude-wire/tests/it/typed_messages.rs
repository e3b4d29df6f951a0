//! Messages as their users read them.

use claude_wire::content::{Content, ContentBlock, DocumentBlock, ImageBlock};
use claude_wire::message::{ResultSubtype, SystemMessage, TerminalReason, UserMessage};
use claude_wire::{Body, Message};
use serde_json::{Value, json};

use crate::recording::corpus;

fn bodies(scenario: &str) -> Vec<Body> {
    let recorded = corpus().into_iter().find(|one| one.name == scenario);
    let recorded = recorded.unwrap_or_else(|| panic!("no recording of {scenario}"));
    recorded
        .from_cli
        .into_iter()
        .filter_map(|line| Message::decode(line.bytes).ok())
        .map(|message| message.body)
        .collect()
}

#[test]
fn a_result_is_the_end_of_a_turn_and_not_a_success() {
    let results = |scenario| -> Vec<_> {
        bodies(scenario)
            .into_iter()
            .filter_map(|body| match body {
                Body::Result(result) => Some(result),
                _ => None,
            })
            .collect()
    };
    let good = &results("plain_turn")[0];
    assert!(!good.is_error());
    assert_eq!(good.subtype, Some(ResultSubtype::Success));
    assert_eq!(good.terminal_reason, Some(TerminalReason::Completed));

    let limited = &results("max_turns")[0];
    assert!(limited.is_error());
    assert_eq!(limited.subtype, Some(ResultSubtype::ErrorMaxTurns));
    assert!(!limited.errors.is_empty());

    // The API's refusal comes as a success that is an error.
    let refused = &results("api_error_400")[0];
    assert!(refused.is_error());
    assert_eq!(refused.api_error_status.as_ref().unwrap().as_u64(), Some(400));

    let absent = Message::decode(r#"{"type":"result"}"#).unwrap();
    assert!(matches!(absent.body, Body::Result(result) if !result.is_error()));
}

#[test]
fn usage_cost_and_denials_are_typed() {
    let results: Vec<_> = bodies("permission_deny")
        .into_iter()
        .filter_map(|body| match body {
            Body::Result(result) => Some(result),
            _ => None,
        })
        .collect();
    let result = &results[0];
    assert!(result.usage.as_ref().unwrap().input_tokens.as_ref().unwrap().as_u64().unwrap() > 0);
    assert!(result.total_cost_usd.as_ref().unwrap().as_f64() > 0.0);
    let by_model = result.model_usage.as_ref().unwrap();
    let (model, usage) = by_model.iter().next().unwrap();
    assert!(model.starts_with("claude"));
    assert!(usage.cost_usd.as_ref().unwrap().as_f64() > 0.0);
    let denial = &result.permission_denials[0];
    assert_eq!(denial.tool_name.as_deref(), Some("Bash"));
    let input: Value = denial.input.as_ref().unwrap().deserialize().unwrap();
    assert!(input["command"].is_string());
}

#[test]
fn structured_output_and_origin_are_typed() {
    let structured = bodies("structured_output").into_iter().find_map(|body| match body {
        Body::Result(result) => result.structured_output.clone(),
        _ => None,
    });
    let value: Value = structured.unwrap().deserialize().unwrap();
    assert!(value.is_object());

    let origins: Vec<_> = bodies("background_agent")
        .into_iter()
        .filter_map(|body| match body {
            Body::Result(result) => Some(result.origin.clone().and_then(|origin| origin.kind)),
            _ => None,
        })
        .collect();
    assert!(origins.iter().flatten().any(|kind| *kind == "task-notification"), "{origins:?}");
}

#[test]
fn every_content_block_is_typed() {
    let blocks = json!([
        {"type": "text", "text": "t"},
        {"type": "thinking", "thinking": "h", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "tool_use", "id": "i", "name": "n", "input": {"a": 1}},
        {"type": "tool_result", "tool_use_id": "i", "content": "text", "is_error": true},
        {"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text", "text": "x"}]},
        {"type": "tool_result", "tool_use_id": "i"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "u"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
        {"type": "server_tool_use", "id": "i", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "i", "content": []},
        {"type": "mcp_tool_use", "id": "i", "name": "n", "input": {}, "server_name": "s"},
        {"type": "mcp_tool_result", "tool_use_id": "i", "content": [], "is_error": false},
    ]);
    let content: Content = serde_json::from_str(&blocks.to_string()).unwrap();
    for block in content.blocks() {
        assert!(!matches!(block, ContentBlock::Unknown(_)), "{block:?}");
    }
    let ContentBlock::ToolResult(failed) = &content.blocks()[4] else { panic!() };
    assert!(failed.is_error());
    assert_eq!(failed.content.as_ref().unwrap().to_text(), "text");
    let written: Value = serde_json::from_str(&serde_json::to_string(&content).unwrap()).unwrap();
    assert_eq!(written, blocks);
}

#[test]
fn images_and_documents_can_be_sent() {
    let prompt = UserMessage::prompt(vec![
        ContentBlock::text("what is this?"),
        ContentBlock::Image(ImageBlock::base64("image/png", "AA==")),
        ContentBlock::Document(DocumentBlock::base64("application/pdf", "AA==")),
    ]);
    let written: Value = serde_json::from_str(&serde_json::to_string(&prompt).unwrap()).unwrap();
    assert_eq!(written["type"], "user");
    assert_eq!(written["message"]["content"][1]["source"]["media_type"], "image/png");
    assert_eq!(written["message"]["content"][2]["type"], "document");
}

#[test]
fn thinking_and_partial_messages_are_typed() {
    let bodies = bodies("thinking");
    let thought = bodies.iter().any(|body| {
        matches!(body, Body::Assistant(assistant)
            if assistant.content().iter().any(|block| matches!(block, ContentBlock::Thinking(_))))
    });
    assert!(thought);
}

#[test]
fn the_parts_of_a_session_are_typed() {
    let init = bodies("plain_turn").into_iter().find_map(|body| match body {
        Body::System(SystemMessage::Init(init)) => Some(init),
        _ => None,
    });
    let init = init.unwrap();
    assert!(init.tools.contains(&"Bash".to_owned()));
    assert!(init.claude_code_version.as_deref().unwrap().starts_with("2."));
    assert!(init.capabilities.iter().any(|one| one.starts_with("interrupt_receipt")));
}
