//! Requests to the Messages API.

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "mock-api")]
use hyper::http::request::Parts;
use serde_json::Value;

/// A received `POST /v1/messages` request.
///
/// Its `Debug` output omits credentials.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApiRequest {
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query string without the `?`, or an empty string.
    pub query: String,
    /// The headers.
    pub headers: Headers,
    /// The body; always a JSON object.
    pub body: Value,
}

impl ApiRequest {
    /// Returns the requested model, or an empty string.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Returns whether a stream of events was requested.
    pub fn stream(&self) -> bool {
        self.body["stream"].as_bool().unwrap_or_default()
    }

    /// Returns the prompts of the conversation, in order: every text of a user entry except tool results
    /// and texts that consist only of reminders of the CLI (`<system-reminder>`), and every message that
    /// was sent while a turn was running. Prompts that the CLI writes itself are included: see
    /// [`user_prompts`](Self::user_prompts).
    pub fn prompts(&self) -> Vec<String> {
        self.prompt_texts().map(|(_, text)| text.to_owned()).collect()
    }

    /// Returns the [`prompts`](Self::prompts) without those that the CLI writes itself: notes about interrupts,
    /// background tasks, commands and hooks, and the summary after a compaction.
    pub fn user_prompts(&self) -> Vec<String> {
        let prompts = self.prompt_texts().map(|(_, text)| text);
        prompts.filter(|text| !is_of_the_cli(text)).map(str::to_owned).collect()
    }

    /// Returns the last of the [`user_prompts`](Self::user_prompts): what the user said last, even if the CLI wrote a
    /// note after it, for example about an interrupt or a background task.
    pub fn last_user_prompt(&self) -> Option<String> {
        let prompts = self.prompt_texts().map(|(_, text)| text);
        prompts.filter(|text| !is_of_the_cli(text)).last().map(str::to_owned)
    }

    /// Returns the last of the [`prompts`](Self::prompts), which may be one that the CLI wrote itself: see
    /// [`last_user_prompt`](Self::last_user_prompt).
    pub fn last_prompt(&self) -> Option<String> {
        self.prompt_texts().last().map(|(_, text)| text.to_owned())
    }

    /// Returns the `tool_result` blocks of the conversation, in order.
    pub fn tool_results(&self) -> Vec<Value> {
        self.user_entries()
            .flat_map(|entry| blocks_of(&entry["content"]))
            .filter(|block| block["type"] == "tool_result")
            .cloned()
            .collect()
    }

    /// Returns the text of the system prompt; its blocks are joined by newlines.
    pub fn system_text(&self) -> String {
        let texts: Vec<_> = texts_of(&self.body["system"]).map(|(_, text)| text).collect();
        texts.join("\n")
    }

    /// Returns the names of the available tools, in order.
    pub fn tool_names(&self) -> Vec<String> {
        let names = blocks_of(&self.body["tools"]).iter().filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Returns the number of assistant messages after the last prompt, which is the number of rounds of
    /// tool calls so far.
    ///
    /// Without any prompt, all assistant messages count.
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

    /// Creates the request of a simulated CLI, which is not sent over HTTP.
    pub(crate) fn simulated(body: Value) -> Self {
        Self {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            query: String::new(),
            headers: Headers::default(),
            body,
        }
    }

    /// Returns the position of the last user text that contains `needle`.
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

    /// Returns the texts of the user, including those that the CLI wraps in a system entry.
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
/// The `Debug` output hides the values of credentials.
#[derive(Clone, Default)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// Returns the value of a header. The values of a repeated header are joined by `", "`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&name.to_ascii_lowercase()).map(String::as_str)
    }

    /// Returns all headers, ordered by name.
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

/// The position of a text in the conversation; a later position is greater.
///
/// It includes the block, because the CLI merges consecutive prompts into one entry.
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

/// Returns the texts of a `content` or `system` field, which is a string or a list of blocks.
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

/// Returns the message in the system entry with which the CLI forwards a message that was sent while a
/// turn was running: an introductory line, the message, a paragraph of advice to the model.
///
/// Returns `None` for other system entries, which describe the environment; rules must not match there.
fn joined_message(text: &str) -> Option<&str> {
    let message = text.strip_prefix("The user sent a new message while you were working:\n")?;
    let advice = message.rfind("\n\nThis is how Claude Code surfaces messages");
    Some(&message[..advice.unwrap_or(message.len())])
}

/// How the prompts begin that the CLI writes itself.
const OF_THE_CLI: [&str; 8] = [
    "[Request interrupted by user",
    "<task-notification>",
    "<local-command-",
    "<command-name>",
    "<bash-",
    "Stop hook feedback:",
    "Continue from where you left off.",
    "This session is being continued from a previous conversation",
];

fn is_of_the_cli(text: &str) -> bool {
    OF_THE_CLI.iter().any(|start| text.trim_start().starts_with(start))
}

fn is_only_reminders(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(reminder) = rest.strip_prefix("<system-reminder>") {
        let Some((_, after)) = reminder.split_once("</system-reminder>") else { return false };
        rest = after.trim_start();
    }
    rest.is_empty()
}
