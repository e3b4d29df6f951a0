//! What the CLI asked.

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "mock-api")]
use hyper::http::request::Parts;
use serde_json::Value;

/// A `POST /v1/messages` request as it arrived.
///
/// Its `Debug` form leaves out credentials.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApiRequest {
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// What follows the `?`, or an empty string.
    pub query: String,
    /// The headers.
    pub headers: Headers,
    /// The body; always a JSON object.
    pub body: Value,
}

impl ApiRequest {
    /// The model asked for, or an empty string.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Whether a stream of events was asked for.
    pub fn stream(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or_default()
    }

    /// The prompts of the conversation, in order: every text in a user entry, except tool results
    /// and texts that consist of nothing but reminders of the CLI (`<system-reminder>`), and every
    /// message that was sent while a turn was running.
    pub fn prompts(&self) -> Vec<String> {
        self.prompt_texts().map(|(_, text)| text.to_owned()).collect()
    }

    /// The last of the [`prompts`](Self::prompts).
    pub fn last_prompt(&self) -> Option<String> {
        self.prompt_texts().last().map(|(_, text)| text.to_owned())
    }

    /// The `tool_result` blocks of the conversation, in order.
    pub fn tool_results(&self) -> Vec<Value> {
        self.user_entries()
            .flat_map(|entry| blocks_of(&entry["content"]))
            .filter(|block| block["type"] == "tool_result")
            .cloned()
            .collect()
    }

    /// The text of the system prompt; its blocks are joined by newlines.
    pub fn system_text(&self) -> String {
        let texts: Vec<_> = texts_of(&self.body["system"]).map(|(_, text)| text).collect();
        texts.join("\n")
    }

    /// The names of the tools on offer, in order.
    pub fn tool_names(&self) -> Vec<String> {
        let names = blocks_of(&self.body["tools"]).iter().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// How many assistant messages follow the last prompt: the rounds of tool calls so far.
    ///
    /// Without any prompt all assistant messages count.
    pub fn assistant_turns_after_last_prompt(&self) -> usize {
        match self.prompt_texts().last() {
            Some((position, _)) => self.assistant_turns_after(position),
            None => count_assistant(self.messages()),
        }
    }

    #[cfg(feature = "mock-api")]
    pub(super) fn new(parts: &Parts, body: Value) -> Self {
        Self {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: Headers::new(parts),
            body,
        }
    }

    /// A request that never was on a wire: what a simulated CLI asks its model.
    pub(crate) fn simulated(body: Value) -> Self {
        Self {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            query: String::new(),
            headers: Headers::default(),
            body,
        }
    }

    /// Where the last user text that contains `needle` stands.
    pub(super) fn last_position_of(&self, needle: &str) -> Option<Position> {
        let matching = self.user_texts().filter(|(_, text)| text.contains(needle));
        matching.last().map(|(position, _)| position)
    }

    pub(super) fn assistant_turns_after(&self, position: Position) -> usize {
        count_assistant(self.messages().get(position.message..).unwrap_or_default())
    }

    pub(super) fn prompt_texts(&self) -> impl Iterator<Item = (Position, &str)> {
        self.user_texts().filter(|(_, text)| !is_only_reminders(text))
    }

    /// The texts that come from the user, also those that reach the model by way of an entry of
    /// the CLI's own.
    fn user_texts(&self) -> impl Iterator<Item = (Position, &str)> {
        self.messages().iter().enumerate().flat_map(|(message, entry)| {
            texts_of(&entry["content"]).filter_map(move |(block, text)| {
                let text = match entry["role"].as_str()? {
                    "user" => text,
                    "system" => joined_message(text)?,
                    _ => return None,
                };
                Some((Position { message, block }, text))
            })
        })
    }

    fn user_entries(&self) -> impl Iterator<Item = &Value> {
        self.messages().iter().filter(|entry| entry["role"] == "user")
    }

    fn messages(&self) -> &[Value] {
        blocks_of(&self.body["messages"])
    }
}

/// The headers of a request, by lower-case name.
///
/// The `Debug` form says that credentials were there, not what they were.
#[derive(Clone, Default)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// The value of a header; values of a repeated one are joined by `", "`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// All headers, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    #[cfg(feature = "mock-api")]
    fn new(parts: &Parts) -> Self {
        let mut headers = BTreeMap::<String, String>::new();
        for (name, value) in &parts.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            headers
                .entry(name.as_str().to_owned())
                .and_modify(|joined| {
                    joined.push_str(", ");
                    joined.push_str(&value);
                })
                .or_insert_with(|| value.to_string());
        }
        Self(headers)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CREDENTIALS: [&str; 4] =
            ["authorization", "x-api-key", "proxy-authorization", "cookie"];
        let shown = self.iter().map(|(name, value)| {
            (name, if CREDENTIALS.contains(&name) { "<hidden>" } else { value })
        });
        f.debug_map().entries(shown).finish()
    }
}

/// Where a text stands in the conversation; later is greater.
///
/// The block counts as well as the entry, because the CLI merges prompts that directly follow one
/// another into one entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    message: usize,
    block: usize,
}

impl Position {
    /// Returns the position right after this one, in the same entry.
    pub(super) fn next(self) -> Self {
        Self { block: self.block + 1, ..self }
    }

    /// Returns the position of the first text of the same entry.
    pub(super) fn start_of_entry(self) -> Self {
        Self { block: 0, ..self }
    }

    /// Returns whether this position is in a later entry than `other`.
    pub(super) fn is_in_later_entry(self, other: Self) -> bool {
        self.message > other.message
    }
}

/// The texts of a `content` or `system` field, which is a string or a list of blocks.
fn texts_of(content: &Value) -> impl Iterator<Item = (usize, &str)> {
    let blocks = blocks_of(content).iter().enumerate();
    let texts = blocks.filter_map(|(at, block)| Some((at, block["text"].as_str()?)));
    content.as_str().map(|text| (0, text)).into_iter().chain(texts)
}

fn blocks_of(content: &Value) -> &[Value] {
    content.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn count_assistant(messages: &[Value]) -> usize {
    messages.iter().filter(|entry| entry["role"] == "assistant").count()
}

/// The message in a system entry by which the CLI passes on what was sent while a turn was running:
/// a line of introduction, the message, a paragraph of advice to the model.
///
/// Other system entries describe the machine and the session; a needle must not match there.
fn joined_message(text: &str) -> Option<&str> {
    let message = text.strip_prefix("The user sent a new message while you were working:\n")?;
    let advice = message.rfind("\n\nThis is how Claude Code surfaces messages");
    Some(&message[..advice.unwrap_or(message.len())])
}

fn is_only_reminders(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(reminder) = rest.strip_prefix("<system-reminder>") {
        let Some((_, after)) = reminder.split_once("</system-reminder>") else { return false };
        rest = after.trim_start();
    }
    rest.is_empty()
}
