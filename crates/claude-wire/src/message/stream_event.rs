//! Pieces of an answer that is still being written.

use crate::content::ContentBlock;
use crate::id::{MessageId, SessionId, ToolUseId};
use crate::json::{Json, List, Number};
use crate::message::{ApiMessage, StopReason, Usage};

wire_struct! {
    /// One event of the API's stream, sent when partial messages were asked for.
    #[derive(Default)]
    pub struct StreamEventMessage ["type" = "stream_event"] {
        /// The event.
        event: Option<StreamEvent>,
        /// The session.
        session_id: Option<SessionId>,
        /// The tool call inside which a subagent writes.
        parent_tool_use_id: Option<ToolUseId>,
        /// This message.
        uuid: Option<MessageId>,
        /// The API's message that the event belongs to.
        api_message_id: Option<String>,
        /// Milliseconds to the first token.
        ttft_ms: Option<Number>,
        /// The user message that is answered.
        user_message_uuid: Option<MessageId>,
        /// The user messages that are answered.
        user_message_uuids: List<MessageId>,
        /// Why the answer was taken up again.
        resume_reason: Option<String>,
    }
}

open_union! {
    /// An event of the API's stream.
    pub enum StreamEvent by "type" {
        /// An answer begins.
        MessageStart(MessageStart) = "message_start",
        /// A block begins.
        ContentBlockStart(ContentBlockStart) = "content_block_start",
        /// A block grows.
        ContentBlockDelta(ContentBlockDelta) = "content_block_delta",
        /// A block is whole.
        ContentBlockStop(ContentBlockStop) = "content_block_stop",
        /// The answer's stop reason and usage are known.
        MessageDelta(Box<MessageDelta>) = "message_delta",
        /// The answer is whole.
        MessageStop(MessageStop) = "message_stop",
        /// Nothing; the API is still there.
        Ping(Ping) = "ping",
        /// The API failed in the middle.
        Error(StreamError) = "error",
    }
}

wire_struct! {
    /// An answer begins.
    #[derive(Default)]
    pub struct MessageStart ["type" = "message_start"] {
        /// The answer, still without content.
        message: Option<Box<ApiMessage>>,
    }
}

wire_struct! {
    /// A block begins.
    #[derive(Default)]
    pub struct ContentBlockStart ["type" = "content_block_start"] {
        /// Its place in the answer.
        index: Option<Number>,
        /// The block, still empty.
        content_block: Option<Box<ContentBlock>>,
    }
}

wire_struct! {
    /// A block grows.
    #[derive(Default)]
    pub struct ContentBlockDelta ["type" = "content_block_delta"] {
        /// The block's place in the answer.
        index: Option<Number>,
        /// What is added.
        delta: Option<Delta>,
    }
}

open_union! {
    /// What is added to a block.
    pub enum Delta by "type" {
        /// Text.
        Text(TextDelta) = "text_delta",
        /// Thinking.
        Thinking(ThinkingDelta) = "thinking_delta",
        /// The signature of a thinking block.
        Signature(SignatureDelta) = "signature_delta",
        /// A piece of the JSON text of a tool call's arguments.
        InputJson(InputJsonDelta) = "input_json_delta",
        /// A citation.
        Citations(CitationsDelta) = "citations_delta",
    }
}

wire_struct! {
    /// More text.
    #[derive(Default)]
    pub struct TextDelta ["type" = "text_delta"] {
        /// The text.
        text: String,
    }
}

wire_struct! {
    /// More thinking.
    #[derive(Default)]
    pub struct ThinkingDelta ["type" = "thinking_delta"] {
        /// The thinking.
        thinking: String,
        /// How many tokens it may be.
        estimated_tokens: Option<Number>,
    }
}

wire_struct! {
    /// The signature of a thinking block.
    #[derive(Default)]
    pub struct SignatureDelta ["type" = "signature_delta"] {
        /// The signature.
        signature: String,
    }
}

wire_struct! {
    /// More of a tool call's arguments.
    #[derive(Default)]
    pub struct InputJsonDelta ["type" = "input_json_delta"] {
        /// A piece of JSON text.
        partial_json: String,
    }
}

wire_struct! {
    /// A citation.
    #[derive(Default)]
    pub struct CitationsDelta ["type" = "citations_delta"] {
        /// The citation.
        citation: Option<Json>,
    }
}

wire_struct! {
    /// A block is whole.
    #[derive(Default)]
    pub struct ContentBlockStop ["type" = "content_block_stop"] {
        /// Its place in the answer.
        index: Option<Number>,
    }
}

wire_struct! {
    /// What is known at the end of an answer.
    #[derive(Default)]
    pub struct MessageDelta ["type" = "message_delta"] {
        /// The stop reason.
        delta: Option<MessageEnd>,
        /// The tokens.
        usage: Option<Usage>,
        /// What the API removed from the context.
        context_management: Option<Json>,
    }
}

wire_struct! {
    /// Why the model stopped.
    #[derive(Default)]
    pub struct MessageEnd {
        /// The reason.
        stop_reason: Option<StopReason>,
        /// The sequence at which it stopped.
        stop_sequence: Option<String>,
    }
}

wire_struct! {
    /// The answer is whole.
    #[derive(Default)]
    pub struct MessageStop ["type" = "message_stop"] {}
}

wire_struct! {
    /// The API is still there.
    #[derive(Default)]
    pub struct Ping ["type" = "ping"] {}
}

wire_struct! {
    /// The API failed in the middle of an answer.
    #[derive(Default)]
    pub struct StreamError ["type" = "error"] {
        /// Its error.
        error: Option<Json>,
    }
}
