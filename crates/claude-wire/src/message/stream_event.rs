//! Partial answers, sent while the model is writing.

use crate::content::ContentBlock;
use crate::id::{MessageId, SessionId, ToolUseId};
use crate::json::{Json, List, Number};
use crate::message::{ApiMessage, StopReason, Usage};

wire_struct! {
    /// An event of the API's stream, sent if partial messages are enabled.
    #[derive(Default)]
    pub struct StreamEventMessage ["type" = "stream_event"] {
        /// The event.
        event: Option<StreamEvent>,
        /// The session ID.
        session_id: Option<SessionId>,
        /// The tool call that started the subagent.
        parent_tool_use_id: Option<ToolUseId>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The message ID of the API.
        api_message_id: Option<String>,
        /// The time to the first token in milliseconds.
        ttft_ms: Option<Number>,
        /// The ID of the user message of the turn.
        user_message_uuid: Option<MessageId>,
        /// The IDs of the user messages of the turn.
        user_message_uuids: List<MessageId>,
        /// The reason why the answer was resumed.
        resume_reason: Option<String>,
    }
}

open_union! {
    /// An event of the API's stream.
    pub enum StreamEvent by "type" {
        /// An answer starts.
        MessageStart(MessageStart) = "message_start",
        /// A block starts.
        ContentBlockStart(ContentBlockStart) = "content_block_start",
        /// A block grows.
        ContentBlockDelta(ContentBlockDelta) = "content_block_delta",
        /// A block is complete.
        ContentBlockStop(ContentBlockStop) = "content_block_stop",
        /// The answer's stop reason and usage are known.
        MessageDelta(Box<MessageDelta>) = "message_delta",
        /// The answer is complete.
        MessageStop(MessageStop) = "message_stop",
        /// A keep-alive event.
        Ping(Ping) = "ping",
        /// The API failed during the answer.
        Error(StreamError) = "error",
    }
}

wire_struct! {
    /// An answer starts.
    #[derive(Default)]
    pub struct MessageStart ["type" = "message_start"] {
        /// The message, without content.
        message: Option<Box<ApiMessage>>,
    }
}

wire_struct! {
    /// A block starts.
    #[derive(Default)]
    pub struct ContentBlockStart ["type" = "content_block_start"] {
        /// The index of the block in the message.
        index: Option<Number>,
        /// The block, without content.
        content_block: Option<Box<ContentBlock>>,
    }
}

wire_struct! {
    /// A block grows.
    #[derive(Default)]
    pub struct ContentBlockDelta ["type" = "content_block_delta"] {
        /// The index of the block in the message.
        index: Option<Number>,
        /// The delta.
        delta: Option<Delta>,
    }
}

open_union! {
    /// A delta of a block.
    pub enum Delta by "type" {
        /// Text.
        Text(TextDelta) = "text_delta",
        /// Thinking.
        Thinking(ThinkingDelta) = "thinking_delta",
        /// The signature of a thinking block.
        Signature(SignatureDelta) = "signature_delta",
        /// A part of the JSON text of the input of a tool call.
        InputJson(InputJsonDelta) = "input_json_delta",
        /// A citation.
        Citations(CitationsDelta) = "citations_delta",
    }
}

wire_struct! {
    /// A text delta.
    #[derive(Default)]
    pub struct TextDelta ["type" = "text_delta"] {
        /// The text.
        text: String,
    }
}

wire_struct! {
    /// A thinking delta.
    #[derive(Default)]
    pub struct ThinkingDelta ["type" = "thinking_delta"] {
        /// The thinking.
        thinking: String,
        /// The estimated number of tokens.
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
    /// A delta of the input of a tool call.
    #[derive(Default)]
    pub struct InputJsonDelta ["type" = "input_json_delta"] {
        /// A part of the JSON text.
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
    /// A block is complete.
    #[derive(Default)]
    pub struct ContentBlockStop ["type" = "content_block_stop"] {
        /// The index of the block in the message.
        index: Option<Number>,
    }
}

wire_struct! {
    /// The final metadata of an answer.
    #[derive(Default)]
    pub struct MessageDelta ["type" = "message_delta"] {
        /// The stop reason.
        delta: Option<MessageEnd>,
        /// The tokens.
        usage: Option<Usage>,
        /// The context edits of the API.
        context_management: Option<Json>,
    }
}

wire_struct! {
    /// The reason why the model stopped.
    #[derive(Default)]
    pub struct MessageEnd {
        /// The reason.
        stop_reason: Option<StopReason>,
        /// The sequence at which it stopped.
        stop_sequence: Option<String>,
    }
}

wire_struct! {
    /// The answer is complete.
    #[derive(Default)]
    pub struct MessageStop ["type" = "message_stop"] {}
}

wire_struct! {
    /// A keep-alive event.
    #[derive(Default)]
    pub struct Ping ["type" = "ping"] {}
}

wire_struct! {
    /// The API failed during an answer.
    #[derive(Default)]
    pub struct StreamError ["type" = "error"] {
        /// The error.
        error: Option<Json>,
    }
}
