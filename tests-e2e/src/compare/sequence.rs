//! A recording as a sequence of words: the lines, their order, and their essential contents.

use std::collections::HashMap;

use claude_agent_testkit::recording::{EntryKind, Recording};
use serde_json::Value;

/// Returns one word for each line of the CLI, and one for its exit.
pub(super) fn of(recording: &Recording) -> Vec<String> {
    let mut asked = HashMap::new();
    let mut words: Vec<String> = Vec::new();
    for entry in &recording.entries {
        let word = match &entry.kind {
            EntryKind::Sent(line) => {
                note(line, &mut asked);
                None
            }
            EntryKind::Received(line) => word(line, &asked),
            EntryKind::Exited(exit) => Some(format!("exit {exit}")),
            _ => None,
        };
        // The number of deltas is irrelevant.
        if let Some(word) = word
            && !(word.ends_with("_delta") && words.last() == Some(&word))
        {
            words.push(word);
        }
    }
    words
}

fn note(line: &[u8], asked: &mut HashMap<String, String>) {
    let Ok(frame) = serde_json::from_slice::<Value>(line) else { return };
    let (id, subtype) = (frame["request_id"].as_str(), frame["request"]["subtype"].as_str());
    if let (Some(id), Some(subtype)) = (id, subtype) {
        asked.insert(id.to_owned(), subtype.to_owned());
    }
}

/// Returns the word of a line; `None` for lines that depend on timing.
fn word(line: &[u8], asked: &HashMap<String, String>) -> Option<String> {
    let Some(frame) = read(line) else { return Some("no JSON".to_owned()) };
    let kind = text(&frame["type"]);
    Some(match kind {
        // Transcript entries are sent in batches, whose number depends on timing.
        "transcript_mirror" => return None,
        "control_request" => format!("asks {}", question(&frame["request"])),
        "control_response" => {
            let response = &frame["response"];
            let operation = asked.get(text(&response["request_id"])).map_or("?", String::as_str);
            format!("answers {operation} {}", text(&response["subtype"]))
        }
        "control_cancel_request" => "cancels".to_owned(),
        "system" => system(&frame)?,
        "assistant" => format!("assistant{} {}", side(&frame), blocks(&frame["message"])),
        "user" => format!("user{} {}", side(&frame), blocks(&frame["message"])),
        "result" => result(&frame),
        "stream_event" => format!("stream{} {}", side(&frame), text(&frame["event"]["type"])),
        "command_lifecycle" => format!("message {}", text(&frame["state"])),
        other => other.to_owned(),
    })
}

// `serde_json` rejects lone surrogates.
fn read(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line).ok().or_else(|| {
        let text = String::from_utf8_lossy(line);
        serde_json::from_str(&text.replace("\\ud", "\\uf").replace("\\uD", "\\uF")).ok()
    })
}

fn question(request: &Value) -> String {
    let subtype = text(&request["subtype"]);
    let detail = match subtype {
        "hook_callback" => text(&request["input"]["hook_event_name"]),
        "can_use_tool" => text(&request["tool_name"]),
        "mcp_message" => text(&request["message"]["method"]),
        _ => "",
    };
    format!("{subtype} {detail}").trim_end().to_owned()
}

fn system(frame: &Value) -> Option<String> {
    let subtype = text(&frame["subtype"]);
    Some(match subtype {
        // One for each delta of thinking; their number is irrelevant.
        "thinking_tokens" => return None,
        "init" => format!("init with {}", words(&frame["tools"])),
        "session_state_changed" => format!("state {}", text(&frame["state"])),
        "task_updated" => format!("task_updated {}", text(&frame["patch"]["status"])),
        "task_notification" => format!("task_notification {}", text(&frame["status"])),
        "task_started" => format!("task_started {}", text(&frame["task_type"])),
        "informational" => format!("informational {}", text(&frame["tag"])),
        "status" => format!("status {}", text(&frame["status"])),
        other => other.to_owned(),
    })
}

fn result(frame: &Value) -> String {
    let messages = frame["user_message_uuids"].as_array().map_or(0, Vec::len);
    let outcome = if frame["is_error"] == true { "error" } else { "good" };
    let origin = text(&frame["origin"]["kind"]);
    format!(
        "result {} {outcome} {} for {messages}{}",
        text(&frame["subtype"]),
        text(&frame["terminal_reason"]),
        if origin.is_empty() { String::new() } else { format!(" by {origin}") },
    )
}

/// Marks messages of subagents and replayed messages.
fn side(frame: &Value) -> &'static str {
    if frame["isReplay"] == true {
        "(replay)"
    } else if frame["parent_tool_use_id"].is_string() {
        "(subagent)"
    } else {
        ""
    }
}

fn blocks(message: &Value) -> String {
    let Some(blocks) = message["content"].as_array() else { return "text".to_owned() };
    let words = blocks.iter().map(|block| match text(&block["type"]) {
        "tool_use" => format!("call {}", text(&block["name"])),
        "tool_result" if block["is_error"] == true => "tool_result(error)".to_owned(),
        other => other.to_owned(),
    });
    words.collect::<Vec<_>>().join("+")
}

fn words(values: &Value) -> String {
    values.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(",")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
