//! Messages of the CLI, one file per family.

#[macro_use]
mod union;

mod assistant;
mod notice;
mod partial;
mod report;
mod result;
mod stream_event;
mod system;
mod usage;
mod user;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::content::{
    Content, ContentBlock, ToolResultBlock, ToolUseBlock, tool_calls, tool_results,
};
use crate::error::without_values;
use crate::id::SessionId;
use crate::repair;
use crate::schema::{self, Undecodable};
use crate::visible::visible_message;

pub use assistant::*;
pub use notice::*;
pub use partial::{Accumulator, BlockPlace, Update};
pub use report::*;
pub use result::*;
pub use stream_event::*;
pub use system::*;
pub use usage::*;
pub use user::*;

message_union! {
    /// The decoded content of a message.
    pub enum Body by "type"
    unions {
        /// A message about the session: its start, state, tasks or hooks.
        System(SystemMessage) = "system",
    }
    messages {
        /// A message of the model.
        Assistant(AssistantMessage) = "assistant",
        /// A message to the model: tool results, and replays of prompts.
        User(UserMessage) = "user",
        /// The end of a turn.
        Result(ResultMessage) = "result",
        /// A partial answer, sent while the model is writing.
        StreamEvent(StreamEventMessage) = "stream_event",
        /// The usage of the account's rate limits.
        RateLimit(RateLimitMessage) = "rate_limit_event",
        /// A tool is still running.
        ToolProgress(ToolProgressMessage) = "tool_progress",
        /// A one-sentence summary of several tool calls.
        ToolUseSummary(ToolUseSummaryMessage) = "tool_use_summary",
        /// A login is in progress.
        AuthStatus(AuthStatusMessage) = "auth_status",
        /// A suggestion for the next prompt.
        PromptSuggestion(PromptSuggestionMessage) = "prompt_suggestion",
        /// The conversation was reset.
        ConversationReset(ConversationResetMessage) = "conversation_reset",
        /// The goal of the session.
        ActiveGoal(ActiveGoalMessage) = "active_goal",
        /// The settings of automatic compaction.
        AutocompactState(AutocompactStateMessage) = "autocompact_state",
        /// The state of a user message: queued, started, completed or cancelled.
        CommandLifecycle(CommandLifecycleMessage) = "command_lifecycle",
        /// A note in the conversation, such as the outcome of a hook.
        Attachment(AttachmentMessage) = "attachment",
    }
}

/// A message of the CLI: the exact bytes of its line and the decoded content.
///
/// Serializing a message writes the original JSON; serializing its body writes the typed fields and
/// those in `extra`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The decoded content.
    pub body: Body,
    raw: Bytes,
    repaired: bool,
}

impl Message {
    /// Decodes a line, given without its line break.
    ///
    /// An unknown type becomes [`Body::Unknown`], a known type with invalid fields
    /// [`Body::Undecodable`]. An undecodable content block is isolated inside its message.
    ///
    /// # Errors
    /// [`Malformed`] if the line is not a JSON object with a string `type`.
    pub fn decode(line: impl Into<Bytes>) -> Result<Self, Malformed> {
        Self::decode_bytes(line.into())
    }

    fn decode_bytes(raw: Bytes) -> Result<Self, Malformed> {
        // UTF-8 is checked once for the whole line: given bytes, serde_json checks each string.
        match std::str::from_utf8(&raw).map(schema::from_text) {
            Ok(Ok(body)) => Ok(Self { body, raw, repaired: false }),
            _ => Self::decode_isolating(raw),
        }
    }

    /// Decodes again with broken characters repaired and undecodable parts isolated.
    fn decode_isolating(raw: Bytes) -> Result<Self, Malformed> {
        let text = repair::valid(&raw);
        let repaired = matches!(text, Cow::Owned(_));
        match schema::from_text_isolating::<Body>(&text) {
            Ok(Body::Undecodable(undecodable)) if undecodable.kind.is_none() => {
                Err(Malformed { line: raw, reason: undecodable.reason })
            }
            Ok(body) => Ok(Self { body, raw, repaired }),
            Err(error) => Err(Malformed { line: raw, reason: without_values(&error) }),
        }
    }

    /// Returns the exact bytes of the line, without its line break.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Returns the line as text, if it is UTF-8.
    pub fn raw_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.raw).ok()
    }

    /// Returns whether broken characters were replaced by U+FFFD to decode the line. `raw` returns the
    /// original bytes.
    pub fn repaired(&self) -> bool {
        self.repaired
    }

    /// Returns the reason why the body could not be decoded, if it could not.
    pub fn undecodable(&self) -> Option<&Undecodable> {
        match &self.body {
            Body::Undecodable(undecodable) => Some(undecodable),
            _ => None,
        }
    }

    /// Returns the tool calls of a message of the model; empty for any other message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolUseBlock> {
        tool_calls(self.blocks())
    }

    /// Returns the results of tool calls in a message to the model; empty for others.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResultBlock> {
        tool_results(self.blocks())
    }

    fn blocks(&self) -> &[ContentBlock] {
        match &self.body {
            Body::Assistant(answer) => answer.content(),
            Body::User(message) => message.content().map(Content::blocks).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the session ID of the message.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.body.session_id()
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.raw_str().map(serde_json::from_str::<&RawValue>) {
            Some(Ok(original)) if !self.repaired => original.serialize(serializer),
            _ => self.body.serialize(serializer),
        }
    }
}

/// A malformed line: not JSON, not an object, or without a string `type`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The line.
    pub line: Bytes,
    /// The reason why the line is malformed.
    pub reason: String,
}

impl Malformed {
    /// Creates a report of a line that is not a message.
    pub fn new(line: Bytes, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = visible_message(&self.reason);
        write!(f, "a line of {} bytes is not a message: {reason}", self.line.len())
    }
}

impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Malformed").field("line", &self.line).field("reason", &self.reason).finish()
    }
}

impl std::error::Error for Malformed {}
