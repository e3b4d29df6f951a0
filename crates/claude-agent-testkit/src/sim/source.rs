//! The events of an answer, from a script or from a Messages API on loopback.

use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::futures::OwnedNotified;

#[cfg(feature = "mock-api")]
use super::http_source::HttpSource;
use super::json::text;
use crate::mock_api::Reply;
use crate::mock_api::message::{Event, Message};
use crate::mock_api::reply::Block;

/// The response of the model to a request.
pub(super) enum ModelResponse {
    Error(ApiFailure),
    Stream(Source),
}

/// An error of the API or of the connection.
#[derive(Debug)]
pub(super) struct ApiFailure {
    /// `None` without an HTTP response.
    pub(super) status: Option<u16>,
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
    /// The value of `x-should-retry`.
    pub(super) should_retry: Option<bool>,
}

/// A stream of the events of an answer.
pub(super) enum Source {
    Script(Box<ScriptSource>),
    #[cfg(feature = "mock-api")]
    Http(Box<HttpSource>),
}

/// The next item of a source.
pub(super) enum SourceEvent {
    Event(StreamEvent),
    /// The answer is complete.
    End,
    /// The connection was closed early.
    Cut,
}

pub(super) struct StreamEvent {
    pub(super) name: String,
    pub(super) json: String,
    /// The complete block that ends with this event, if the source knows it.
    pub(super) whole: Option<Block>,
}

impl Source {
    pub(super) async fn next(&mut self) -> SourceEvent {
        match self {
            Self::Script(script) => script.next().await,
            #[cfg(feature = "mock-api")]
            Self::Http(http) => http.next().await,
        }
    }
}

pub(super) struct ScriptSource {
    events: std::vec::IntoIter<Event>,
    blocks: std::vec::IntoIter<Block>,
    at: usize,
    pause: Option<Duration>,
    cut_after: Option<usize>,
    held_after: Option<usize>,
    /// Whether the next call waits for the release.
    holding: bool,
    released: Option<Pin<Box<OwnedNotified>>>,
    paused: bool,
}

impl ScriptSource {
    pub(super) fn new(reply: Reply, id: String, model: &str, released: OwnedNotified) -> Self {
        let events = Message { id, model, reply: &reply }.events();
        let first_delta = || events.iter().position(|event| event.name == Event::DELTA);
        let held_after = reply.hold.then(|| first_delta().unwrap_or(0));
        Self {
            held_after,
            events: events.into_iter(),
            blocks: reply.blocks.into_iter(),
            at: 0,
            pause: reply.pause_between,
            cut_after: reply.cut_after,
            holding: false,
            released: Some(Box::pin(released)),
            paused: false,
        }
    }

    /// Returns the next item. Cancel safe: a dropped wait is resumed by the next call.
    async fn next(&mut self) -> SourceEvent {
        if self.holding {
            if let Some(released) = &mut self.released {
                released.as_mut().await;
            }
            self.released = None;
            self.holding = false;
        }
        if self.cut_after.is_some_and(|events| self.at >= events) {
            return SourceEvent::Cut;
        }
        if let Some(pause) = self.pause.filter(|_| self.at > 0 && !self.paused) {
            tokio::time::sleep(pause).await;
            self.paused = true;
        }
        let Some(event) = self.events.next() else {
            return if self.cut_after.is_some() { SourceEvent::Cut } else { SourceEvent::End };
        };
        self.holding = self.held_after == Some(self.at);
        self.at += 1;
        self.paused = false;
        let whole = if event.name == "content_block_stop" { self.blocks.next() } else { None };
        SourceEvent::Event(StreamEvent { name: event.name.to_owned(), json: event.json, whole })
    }
}

/// Returns the error of a scripted reply.
pub(super) fn failure_of(reply: &Reply) -> Option<ApiFailure> {
    let error = reply.error.as_ref()?;
    let header = |name: &str| {
        let found = reply.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    Some(ApiFailure {
        status: Some(error.status),
        kind: error.kind.clone(),
        message: error.message.clone(),
        retry_after: header("retry-after").and_then(seconds),
        should_retry: header("x-should-retry").map(|value| value != "false"),
    })
}

pub(super) fn seconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(Duration::from_secs)
}

/// Assembles a block from its first event and its deltas; returns `None` if it is incomplete.
pub(super) fn assemble(start: &str, deltas: &[String]) -> Option<Block> {
    let start: Value = serde_json::from_str(start).ok()?;
    let block = &start["content_block"];
    let field = match text(&block["type"]) {
        "text" => "text",
        "thinking" => "thinking",
        "tool_use" => "partial_json",
        _ => return None,
    };
    let pieces = deltas.iter().filter_map(|delta| piece(delta, field));
    let literal = format!("\"{}\"", pieces.collect::<String>());
    match field {
        "text" => Some(Block::RawText(literal)),
        "thinking" => Some(Block::Thinking(super::stream::unquoted(&literal))),
        _ => {
            let input = serde_json::from_str(&super::stream::unquoted(&literal)).ok()?;
            let (id, name) = (text(&block["id"]).to_owned(), text(&block["name"]).to_owned());
            Some(Block::Tool { id, name, input })
        }
    }
}

/// Returns the raw contents of a string field of a delta. They are not decoded, because they need
/// not be valid Unicode.
fn piece(event: &str, field: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        delta: std::collections::BTreeMap<String, &'a serde_json::value::RawValue>,
    }
    let outer: Outer<'_> = serde_json::from_str(event).ok()?;
    let literal = outer.delta.get(field)?.get();
    Some(literal.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// Returns the number of thinking characters in an event.
pub(super) fn thinking_length(event: &str) -> usize {
    piece(event, "thinking").map_or(0, |piece| piece.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_assembled_from_its_deltas() {
        let start =
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
        let delta = |text: &str| {
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
            )
        };
        let block = assemble(start, &[delta("half \\ud83d"), delta(" of \\\"it\\\"")]);
        assert!(
            matches!(block, Some(Block::RawText(text)) if text == r#""half \ud83d of \"it\"""#)
        );

        let start = r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}"#;
        let delta = |text: &str| {
            format!(
                r#"{{"delta":{{"type":"input_json_delta","partial_json":{}}}}}"#,
                Value::from(text)
            )
        };
        let block = assemble(start, &[delta("{\"command\":"), delta("\"ls\"}")]);
        assert!(
            matches!(block, Some(Block::Tool { id, input, .. }) if id == "toolu_1" && input["command"] == "ls")
        );
        assert!(assemble(start, &[delta("{\"comm")]).is_none());
    }
}
