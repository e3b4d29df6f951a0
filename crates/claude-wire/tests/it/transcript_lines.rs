//! Made-up transcripts for the tests.

#![allow(clippy::needless_pass_by_value, reason = "`json!` values are written in place")]

use claude_wire::transcript::{EntryRef, Index, MessageFilter};
use serde_json::{Value, json};

/// A chain entry of `kind` with the fields of `more`.
pub(crate) fn entry(kind: &str, uuid: &str, parent: Option<&str>, more: Value) -> String {
    let mut entry = json!({"type": kind, "uuid": uuid, "sessionId": "s"});
    let Value::Object(more) = more else { panic!("{more}") };
    entry.as_object_mut().unwrap().extend(more);
    // The CLI writes the parent first, and damaged lines are searched for it.
    format!("{{\"parentUuid\":{},{}", json!(parent), &entry.to_string()[1..])
}

pub(crate) fn user(uuid: &str, parent: Option<&str>) -> String {
    let message = json!({"role": "user", "content": format!("prompt {uuid}")});
    entry("user", uuid, parent, json!({"message": message, "promptSource": "sdk"}))
}

pub(crate) fn assistant(uuid: &str, parent: &str, response: &str) -> String {
    let message = json!({"id": response, "content": [{"type": "text", "text": "answer"}]});
    entry("assistant", uuid, Some(parent), json!({"message": message}))
}

/// A tool call in a response.
pub(crate) fn call(uuid: &str, parent: &str, response: &str, tool: &str, time: u32) -> String {
    let block = json!({"type": "tool_use", "id": tool, "name": "Bash", "input": {}});
    let message = json!({"id": response, "content": [block]});
    entry("assistant", uuid, Some(parent), json!({"message": message, "timestamp": at(time)}))
}

/// The result of a tool call.
pub(crate) fn result(uuid: &str, parent: &str, tool: &str, time: u32) -> String {
    let block = json!({"type": "tool_result", "tool_use_id": tool, "content": "out"});
    let message = json!({"role": "user", "content": [block]});
    entry("user", uuid, Some(parent), json!({"message": message, "timestamp": at(time)}))
}

pub(crate) fn boundary(uuid: &str, logical: &str, metadata: Value) -> String {
    let more = json!({
        "subtype": "compact_boundary",
        "logicalParentUuid": logical,
        "compactMetadata": metadata,
    });
    entry("system", uuid, None, more)
}

pub(crate) fn queued(uuid: &str, parent: &str, more: Value) -> String {
    let mut attachment = json!({"type": "queued_command", "prompt": "one more thing"});
    let Value::Object(more) = more else { panic!("{more}") };
    attachment.as_object_mut().unwrap().extend(more);
    entry("attachment", uuid, Some(parent), json!({"attachment": attachment}))
}

pub(crate) fn at(second: u32) -> String {
    format!("2026-01-01T00:{:02}:{:02}.000Z", second / 60, second % 60)
}

pub(crate) fn transcript(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

pub(crate) fn index(bytes: &[u8]) -> Index {
    let mut index = Index::new();
    index.feed(bytes);
    index.finish();
    index
}

pub(crate) fn bytes_of(transcript: &[u8], entry: EntryRef) -> &[u8] {
    let start = usize::try_from(entry.offset()).unwrap();
    &transcript[start..start + entry.len()]
}

/// The ids of entries, separated by blanks.
pub(crate) fn ids(transcript: &[u8], entries: &[EntryRef]) -> String {
    let id = |entry: &EntryRef| -> String {
        let value: Value = serde_json::from_slice(bytes_of(transcript, *entry)).unwrap();
        value["uuid"].as_str().unwrap_or("-").to_owned()
    };
    entries.iter().map(id).collect::<Vec<_>>().join(" ")
}

/// The ids of the conversation of these lines.
pub(crate) fn conversation(lines: &[String]) -> String {
    let transcript = transcript(lines);
    ids(&transcript, &index(&transcript).tree().conversation())
}

/// The ids of the messages that are shown.
pub(crate) fn messages(lines: &[String]) -> String {
    let transcript = transcript(lines);
    let shown = index(&transcript).tree().messages(MessageFilter::default());
    ids(&transcript, &shown.iter().map(|message| message.entry).collect::<Vec<_>>())
}
