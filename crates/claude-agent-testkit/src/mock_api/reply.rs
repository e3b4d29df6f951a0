//! One answer of the mock.

use std::time::Duration;

use serde_json::Value;

/// One answer: content blocks, or an error, and the way in which it is sent.
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
    /// An answer without content, to add blocks to.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().and_text(text)
    }

    /// An answer that begins with a thinking block.
    pub fn thinking(thinking: impl Into<String>) -> Self {
        Self::new().and_thinking(thinking)
    }

    /// An answer that calls a tool.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::new().and_tool(name, input)
    }

    /// An error answer, in the shape of the API:
    /// `{"type":"error","error":{"type":kind,"message":message}}`.
    ///
    /// Content that is added to it is not sent. The CLI retries most errors, even a 401, for
    /// minutes; with [`no_retry`](Self::no_retry) it reports them immediately.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let error = ApiError { status, kind: kind.to_owned(), message: message.to_owned() };
        Self { error: Some(error), ..Self::default() }
    }

    /// Adds a text block.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.with_block(Block::Text(text.into()))
    }

    /// Adds a thinking block; it gets a signature.
    pub fn and_thinking(self, thinking: impl Into<String>) -> Self {
        self.with_block(Block::Thinking(thinking.into()))
    }

    /// Adds a tool call; the server gives it an id (`toolu_1`, `toolu_2`, …).
    pub fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        self.with_block(Block::Tool { id: String::new(), name: name.into(), input })
    }

    /// Adds a text block whose JSON string literal, quotes included, is sent as it is given.
    ///
    /// For texts that no Rust string holds, such as a lone surrogate: `r#""half \ud83d""#`. The
    /// literal is not checked and, when streamed, goes out as a single delta.
    pub fn raw_text_json(self, literal: &str) -> Self {
        self.with_block(Block::RawText(literal.to_owned()))
    }

    /// Sets the stop reason. Without it: `tool_use` if a tool is called, else `end_turn`.
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Sets the reported usage.
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.usage = Some((input_tokens, output_tokens));
        self
    }

    /// Cuts streamed texts, thinking and tool inputs into deltas of `chars` characters.
    ///
    /// Without it a block comes in two or three deltas. Zero counts as one.
    pub fn deltas_of(mut self, chars: usize) -> Self {
        self.delta_chars = Some(chars.max(1));
        self
    }

    /// Adds a header to the response.
    ///
    /// A name or value that HTTP does not allow turns the answer into an error that says so.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a `retry-after` header, in seconds. Meant for errors.
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

    /// Waits between the events of a streamed answer.
    pub fn pause_between(mut self, pause: Duration) -> Self {
        self.pause_between = Some(pause);
        self
    }

    /// Sends the start of the message and the first delta, then keeps the stream open until the
    /// client goes away or [`MockApi::release_held`](super::MockApi::release_held) is called; the
    /// rest follows then.
    ///
    /// An answer that is not streamed is held after its head.
    pub fn hold(mut self) -> Self {
        self.hold = true;
        self
    }

    /// Cuts the connection after `events` stream events, without a proper end of the response.
    ///
    /// With more events than there are, all are sent before the cut. An answer that is not
    /// streamed is cut in the middle.
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
    /// The id is empty until the server sends the reply: it counts ids over all replies.
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
