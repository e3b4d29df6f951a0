//! The summary of a session that a store keeps beside its entries, updated with each append.

use serde_json::{Map, Value};

use super::light::SessionInfo;
use super::prompt::{FirstPrompt, attachment_prompt};
use super::time::parse_timestamp;
use crate::json::Json;
use crate::repair;

/// The data of a summary: what a list of sessions needs, folded over all entries so far.
///
/// The fields have the names that the TypeScript SDK writes, so a store can be shared with it. One is added:
/// `attachmentFallback` names a prompt without text, so that lists show such a session as they do on disk.
/// Serialize it with [`to_json`](Self::to_json). Only for main transcripts, not for subagents.
///
/// ```
/// use claude_wire::transcript::SummaryData;
///
/// let mut data = SummaryData::default();
/// data.add(br#"{"type":"user","message":{"content":"Fix the build"}}"#);
/// data.add(br#"{"type":"custom-title","customTitle":"Build"}"#);
/// let info = data.info().unwrap();
/// assert_eq!(info.summary, "Build");
/// assert_eq!(info.first_prompt.as_deref(), Some("Fix the build"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryData(Map<String, Value>);

/// Fields whose last value counts, and their names in the data.
const LAST: [(&str, &str); 5] = [
    ("customTitle", "customTitle"),
    ("aiTitle", "aiTitle"),
    ("lastPrompt", "lastPrompt"),
    ("summary", "summaryHint"),
    ("gitBranch", "gitBranch"),
];

impl SummaryData {
    /// Takes data that a store kept. Anything but an object counts as empty.
    pub fn from_json(data: &Json) -> Self {
        Self(data.deserialize().unwrap_or_default())
    }

    /// Returns the data as an object for a store to keep.
    pub fn to_json(&self) -> Json {
        Json::from(Value::Object(self.0.clone()))
    }

    /// Adds one entry. Bytes that are not a JSON object are ignored.
    pub fn add(&mut self, entry: &[u8]) {
        if let Ok(entry @ Value::Object(_)) = serde_json::from_str(&repair::valid(entry)) {
            self.add_entry(&entry);
        }
    }

    fn add_entry(&mut self, entry: &Value) {
        if !self.0.contains_key("isSidechain") {
            self.set("isSidechain", entry["isSidechain"] == true);
        }
        if !self.0.contains_key("createdAt")
            && let Some(created) = entry["timestamp"].as_str().and_then(parse_timestamp)
        {
            self.set("createdAt", created);
        }
        if !self.0.contains_key("cwd") {
            self.set_text("cwd", &entry["cwd"]);
        }
        self.add_prompt(entry);
        for (field, name) in LAST {
            if let Some(text) = entry[field].as_str() {
                self.set(name, text);
            }
        }
        match entry["type"].as_str() {
            Some("tag") => {
                self.0.remove("tag");
                self.set_text("tag", &entry["tag"]);
            }
            Some("relocated") => self.set_text("cwd", &entry["relocatedCwd"]),
            _ => {}
        }
    }

    fn add_prompt(&mut self, entry: &Value) {
        if self.0.get("firstPromptLocked") == Some(&Value::Bool(true)) {
            return;
        }
        let mut search = FirstPrompt { command: self.text("commandFallback").unwrap_or_default() };
        let prompt = search.of(entry);
        if !search.command.is_empty() {
            self.set("commandFallback", search.command);
        }
        if let Some(prompt) = prompt {
            self.set("firstPrompt", prompt);
            self.set("firstPromptLocked", true);
        } else if !self.0.contains_key("attachmentFallback")
            && let Some(name) = attachment_prompt(entry)
        {
            self.set("attachmentFallback", name);
        }
    }

    /// Returns what a list shows of the session; `None` if it is a subagent's or has nothing to
    /// show.
    pub fn info(&self) -> Option<SessionInfo> {
        if self.0.get("isSidechain") == Some(&Value::Bool(true)) {
            return None;
        }
        let is_locked = self.0.get("firstPromptLocked") == Some(&Value::Bool(true));
        let first_prompt = self.text(if is_locked { "firstPrompt" } else { "commandFallback" });
        let custom_title = self.text("customTitle").or_else(|| self.text("aiTitle"));
        let title = custom_title.clone();
        let summary = title
            .or_else(|| self.text("lastPrompt"))
            .or_else(|| self.text("summaryHint"))
            .or_else(|| first_prompt.clone())
            .or_else(|| self.text("attachmentFallback"))?;
        Some(SessionInfo {
            summary,
            custom_title,
            first_prompt,
            git_branch: self.text("gitBranch"),
            cwd: self.text("cwd"),
            tag: self.text("tag"),
            created_at: self.0.get("createdAt").and_then(Value::as_i64),
        })
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn set_text(&mut self, name: &str, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.set(name, text);
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = self.0.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }
}
