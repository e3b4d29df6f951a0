//! One reply of the model.

use std::time::Duration;

use serde_json::Value;

/// A reply of the model: content blocks or an error, and how it is sent.
///
/// ```
/// use claude_agent_testkit::mock_api::Reply;
/// use serde_json::json;
///
/// let two_tools = Reply::text("Looking.")
///     .and_tool("Read", json!({"file_path": "/a"}))
///     .and_tool("Read", json!({"file_path": "/b"}));
/// let overloaded = Reply::error(529, "overloaded_error", "Overloaded").retry_after(1);
/// # let _ = (two_tools, overloaded);
/// ```
#[must_use]
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(crate) blocks: Vec<Block>,
    pub(crate) error: Option<ApiError>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) usage: Option<(u64, u64)>,
    pub(crate) delta_chars: Option<usize>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pause_before: Option<Duration>,
    pub(crate) pause_between: Option<Duration>,
    pub(crate) hold: bool,
    pub(crate) cut_after: Option<usize>,
}

impl Reply {
    /// Creates a reply without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reply with a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().and_text(text)
    }

    /// Creates a reply with a thinking block.
    pub fn thinking(thinking: impl Into<String>) -> Self {
        Self::new().and_thinking(thinking)
    }

    /// Creates a reply that calls a tool.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::new().and_tool(name, input)
    }

    /// Creates an error reply in the format of the API:
    /// `{"type":"error","error":{"type":kind,"message":message}}`.
    ///
    /// Content blocks that are added to it are ignored. The CLI retries most errors for minutes, even
    /// a 401; with [`no_retry`](Self::no_retry) it reports them immediately.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = ApiError { status, kind: kind.to_owned(), message: message.to_owned() };
        Self { error: Some(error), ..Self::default() }
    }

    /// Adds a text block.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.with_block(Block::Text(text.into()))
    }

    /// Adds a thinking block with a signature.
    pub fn and_thinking(self, thinking: impl Into<String>) -> Self {
        self.with_block(Block::Thinking(thinking.into()))
    }

    /// Adds a tool call. The server assigns its id (`toolu_1`, `toolu_2`, …).
    pub fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        self.with_block(Block::Tool { id: String::new(), name: name.into(), input })
    }

    /// Adds a text block whose JSON string literal, including the quotes, is sent verbatim.
    ///
    /// Use this for text that a Rust string cannot contain, such as a lone surrogate:
    /// `r#""half \ud83d""#`. The literal is not validated and, when streamed, is sent as a single delta.
    pub fn raw_text_json(self, literal: &str) -> Self {
        self.with_block(Block::RawText(literal.to_owned()))
    }

    /// Sets the stop reason. Defaults to `tool_use` if the reply calls a tool, and to `end_turn`
    /// otherwise.
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Sets the reported token usage. Defaults to 10 input and 5 output tokens.
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some((input_tokens, output_tokens));
        self
    }

    /// Splits streamed text, thinking and tool inputs into deltas of `chars` characters.
    ///
    /// By default, a block is sent in at most three deltas. Zero counts as one.
    pub fn deltas_of(mut self, chars: usize) -> Self {
        self.delta_chars = Some(chars.max(1));
        self
    }

    /// Adds a header to the response.
    ///
    /// A name or value that is invalid in HTTP turns the reply into an error response that reports it.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a `retry-after` header, in seconds. Useful for errors.
    pub fn retry_after(self, seconds: u32) -> Self {
        self.header("retry-after", seconds.to_string())
    }

    /// Adds the header `x-should-retry: false`, so that the CLI reports an error without a retry.
    pub fn no_retry(self) -> Self {
        self.header("x-should-retry", "false")
    }

    /// Waits before the first byte of the response.
    pub fn pause_before(mut self, pause: Duration) -> Self {
        self.pause_before = Some(pause);
        self
    }

    /// Waits between the events of a streamed reply.
    pub fn pause_between(mut self, pause: Duration) -> Self {
        self.pause_between = Some(pause);
        self
    }

    /// Sends the start of the message and the first delta, then waits until
    /// [`MockApi::release_held`](super::MockApi::release_held) is called or the client disconnects.
    /// After the release, the rest is sent.
    ///
    /// A reply that is not streamed is held after its headers.
    pub fn hold(mut self) -> Self {
        self.hold = true;
        self
    }

    /// Closes the connection after `events` stream events, in the middle of the response.
    ///
    /// If the reply has fewer events, all are sent first. A reply that is not streamed is cut in the
    /// middle.
    pub fn drop_after_events(mut self, events: usize) -> Self {
        self.cut_after = Some(events);
        self
    }

    fn with_block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Block {
    Text(String),
    /// A JSON string literal, to be written verbatim.
    RawText(String),
    Thinking(String),
    /// The id is empty until the server sends the reply, because ids are numbered across replies.
    Tool {
        id: String,
        name: String,
        input: Value,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) message: String,
}
