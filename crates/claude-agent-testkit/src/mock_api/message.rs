//! The JSON of a reply, as a whole message and as stream events.
//!
//! The JSON is assembled as text rather than as a tree, because the fields keep the order of the API,
//! which the CLI forwards, and because a literal passed to
//! [`Reply::raw_text_json`](super::Reply::raw_text_json) need not be valid JSON.

#[cfg(feature = "mock-api")]
use bytes::Bytes;
use serde_json::Value;

use super::Reply;
#[cfg(feature = "mock-api")]
use super::reply::ApiError;
use super::reply::Block;

const DEFAULT_USAGE: (u64, u64) = (10, 5);
const SIGNATURE: &str = "bW9jay1zaWduYXR1cmU=";

/// A reply with the id and model of its message.
pub(crate) struct Message<'a> {
    pub(crate) id: String,
    pub(crate) model: &'a str,
    pub(crate) reply: &'a Reply,
}

impl Message<'_> {
    /// Returns the message for a request without `stream`.
    #[cfg(feature = "mock-api")]
    pub(super) fn whole(&self) -> String {
        let content: Vec<_> = self.reply.blocks.iter().map(whole_block).collect();
        let (input, output) = self.usage();
        self.object(&content.join(","), &quoted(self.stop_reason()), &usage_json(input, output))
    }

    /// Returns the message as stream events.
    pub(crate) fn events(&self) -> Vec<Event> {
        let (input, output) = self.usage();
        let started = self.object("", "null", &usage_json(input, 0));
        let mut events = vec![Event::new("message_start", &format!(r#""message":{started}"#))];
        for (index, block) in self.reply.blocks.iter().enumerate() {
            let start = format!(r#""index":{index},"content_block":{}"#, empty_block(block));
            events.push(Event::new("content_block_start", &start));
            for delta in self.deltas(block) {
                let delta = format!(r#""index":{index},"delta":{delta}"#);
                events.push(Event::new(Event::DELTA, &delta));
            }
            events.push(Event::new("content_block_stop", &format!(r#""index":{index}"#)));
        }
        let delta =
            ordered([("stop_reason", quoted(self.stop_reason())), ("stop_sequence", null())]);
        let end = format!(r#""delta":{delta},"usage":{}"#, usage_json(input, output));
        events.push(Event::new("message_delta", &end));
        events.push(Event::new("message_stop", ""));
        events
    }

    fn object(&self, content: &str, stop_reason: &str, usage: &str) -> String {
        let (id, model) = (quoted(&self.id), quoted(self.model));
        ordered([
            ("id", id),
            ("type", quoted("message")),
            ("role", quoted("assistant")),
            ("model", model),
            ("content", format!("[{content}]")),
            ("stop_reason", stop_reason.to_owned()),
            ("stop_sequence", null()),
            ("usage", usage.to_owned()),
        ])
    }

    fn deltas(&self, block: &Block) -> Vec<String> {
        let cut = |text: &str, kind: &str, field: &str| -> Vec<String> {
            self.pieces(text)
                .into_iter()
                .map(|piece| typed(kind, [(field, quoted(piece))]))
                .collect()
        };
        match block {
            Block::Text(text) => cut(text, "text_delta", "text"),
            Block::RawText(literal) => vec![typed("text_delta", [("text", literal.clone())])],
            Block::Thinking(text) => {
                let mut deltas = cut(text, "thinking_delta", "thinking");
                deltas.push(typed("signature_delta", [("signature", quoted(SIGNATURE))]));
                deltas
            }
            Block::Tool { input, .. } => {
                cut(&input.to_string(), "input_json_delta", "partial_json")
            }
        }
    }

    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let size = self.reply.delta_chars.unwrap_or_else(|| text.chars().count().div_ceil(3));
        let starts = text.char_indices().map(|(at, _)| at).step_by(size.max(1));
        let bounds: Vec<_> = starts.chain([text.len()]).collect();
        bounds.windows(2).map(|bounds| &text[bounds[0]..bounds[1]]).collect()
    }

    pub(crate) fn stop_reason(&self) -> &str {
        let calls_tool = self.reply.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
        let default = if calls_tool { "tool_use" } else { "end_turn" };
        self.reply.stop_reason.as_deref().unwrap_or(default)
    }

    pub(crate) fn usage(&self) -> (u64, u64) {
        self.reply.usage.unwrap_or(DEFAULT_USAGE)
    }
}

/// One server-sent event.
pub(crate) struct Event {
    pub(crate) name: &'static str,
    /// The data object.
    pub(crate) json: String,
}

impl Event {
    pub(crate) const DELTA: &'static str = "content_block_delta";

    /// Creates an event. `fields` are the members of the data object after its `type`.
    fn new(name: &'static str, fields: &str) -> Self {
        let comma = if fields.is_empty() { "" } else { "," };
        Self { name, json: format!("{{\"type\":\"{name}\"{comma}{fields}}}") }
    }

    #[cfg(feature = "mock-api")]
    pub(super) fn is_delta(&self) -> bool {
        self.name == Self::DELTA
    }

    #[cfg(feature = "mock-api")]
    pub(super) fn into_bytes(self) -> Bytes {
        // Only a verbatim literal can contain a newline; it must not end the event.
        let data = self.json.replace('\n', "\ndata: ");
        format!("event: {}\ndata: {data}\n\n", self.name).into()
    }
}

/// Returns the body of an error response.
#[cfg(feature = "mock-api")]
pub(super) fn error_json(error: &ApiError) -> String {
    let inner = typed(&error.kind, [("message", quoted(&error.message))]);
    typed("error", [("error", inner)])
}

pub(crate) fn whole_block(block: &Block) -> String {
    match block {
        Block::Text(text) => text_json(&quoted(text)),
        Block::RawText(literal) => text_json(literal),
        Block::Thinking(text) => thinking_json(text, SIGNATURE),
        Block::Tool { id, name, input } => tool_json(id, name, input.to_string()),
    }
}

fn empty_block(block: &Block) -> String {
    match block {
        Block::Text(_) | Block::RawText(_) => text_json(&quoted("")),
        Block::Thinking(_) => thinking_json("", ""),
        Block::Tool { id, name, .. } => tool_json(id, name, "{}".to_owned()),
    }
}

fn text_json(literal: &str) -> String {
    typed("text", [("text", literal.to_owned())])
}

fn thinking_json(text: &str, signature: &str) -> String {
    typed("thinking", [("thinking", quoted(text)), ("signature", quoted(signature))])
}

fn tool_json(id: &str, name: &str, input: String) -> String {
    typed("tool_use", [("id", quoted(id)), ("name", quoted(name)), ("input", input)])
}

pub(crate) fn usage_json(input: u64, output: u64) -> String {
    ordered([
        ("input_tokens", input.to_string()),
        ("cache_creation_input_tokens", "0".to_owned()),
        ("cache_read_input_tokens", "0".to_owned()),
        ("output_tokens", output.to_string()),
    ])
}

/// Returns an object with a `type` and these fields, whose values are JSON.
fn typed<const N: usize>(kind: &str, fields: [(&str, String); N]) -> String {
    let fields = ordered(fields);
    format!(r#"{{"type":{},{}"#, quoted(kind), &fields[1..])
}

/// Returns an object with these fields in this order; the values are JSON.
fn ordered<const N: usize>(fields: [(&str, String); N]) -> String {
    let fields = fields.map(|(name, value)| format!("{}:{value}", quoted(name)));
    format!("{{{}}}", fields.join(","))
}

fn null() -> String {
    "null".to_owned()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
