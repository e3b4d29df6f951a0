//! Messages: what the CLI tells the host, one file per family.

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
    /// What a message says.
    pub enum Body by "type"
    unions {
        /// About the session: its start, its state, its tasks, its hooks.
        System(SystemMessage) = "system",
    }
    messages {
        /// From the model.
        Assistant(AssistantMessage) = "assistant",
        /// To the model: tool results, and replays of what the host sent.
        User(UserMessage) = "user",
        /// The end of a turn.
        Result(ResultMessage) = "result",
        /// A piece of an answer that is still being written.
        StreamEvent(StreamEventMessage) = "stream_event",
        /// How much of the account's allowance is used.
        RateLimit(RateLimitMessage) = "rate_limit_event",
        /// A tool is still running.
        ToolProgress(ToolProgressMessage) = "tool_progress",
        /// What a row of tool calls did, in one sentence.
        ToolUseSummary(ToolUseSummaryMessage) = "tool_use_summary",
        /// A login is going on.
        AuthStatus(AuthStatusMessage) = "auth_status",
        /// What the user might say next.
        PromptSuggestion(PromptSuggestionMessage) = "prompt_suggestion",
        /// The conversation began anew.
        ConversationReset(ConversationResetMessage) = "conversation_reset",
        /// The goal that the session works towards.
        ActiveGoal(ActiveGoalMessage) = "active_goal",
        /// When the context will be made smaller.
        AutocompactState(AutocompactStateMessage) = "autocompact_state",
        /// Where a user message stands: queued, started, completed, cancelled.
        CommandLifecycle(CommandLifecycleMessage) = "command_lifecycle",
    }
}

/// One line of the CLI: its exact bytes and what they say.
///
/// Serialising a message writes the original JSON; serialising its body writes the typed fields
/// and those kept in `extra`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// What the message says.
    pub body: Body,
    raw: Bytes,
    repaired: bool,
}

impl Message {
    /// Decodes a line, given without its line break.
    ///
    /// A type that is not known gives [`Body::Unknown`], a known one that does not fit
    /// [`Body::Undecodable`]; a content block that does not fit is isolated inside its message.
    ///
    /// # Errors
    /// [`Malformed`], when the line is not a JSON object with a string `type`.
    pub fn decode(line: impl Into<Bytes>) -> Result<Self, Malformed> {
        let raw = line.into();
        // UTF-8 is checked once for the whole line: given bytes, serde_json checks each string.
        match std::str::from_utf8(&raw).map(schema::from_text) {
            Ok(Ok(body)) => Ok(Self { body, raw, repaired: false }),
            _ => Self::decode_troubled(raw),
        }
    }

    /// The second try: with broken characters mended and parts that do not fit isolated.
    fn decode_troubled(raw: Bytes) -> Result<Self, Malformed> {
        let mended = repair::repaired(&raw);
        let text = String::from_utf8_lossy(mended.as_deref().unwrap_or(&raw));
        match schema::from_text_isolating::<Body>(&text) {
            Ok(Body::Undecodable(undecodable)) if undecodable.kind.is_none() => {
                Err(Malformed { line: raw, reason: undecodable.reason })
            }
            Ok(body) => Ok(Self { body, raw, repaired: mended.is_some() }),
            Err(error) => Err(Malformed { line: raw, reason: without_values(&error) }),
        }
    }

    /// The exact bytes of the line, without its line break.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The line as text, if it is UTF-8.
    pub fn raw_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.raw).ok()
    }

    /// Whether broken characters had to be replaced by U+FFFD to decode the line. `raw` still has
    /// the original.
    pub fn repaired(&self) -> bool {
        self.repaired
    }

    /// Why the body did not decode, if it did not.
    pub fn undecodable(&self) -> Option<&Undecodable> {
        match &self.body {
            Body::Undecodable(undecodable) => Some(undecodable),
            _ => None,
        }
    }

    /// Returns the tool calls of a message of the model; none for any other message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolUseBlock> {
        tool_calls(self.blocks())
    }

    /// Returns the results of tool calls in a message to the model; none for any other message.
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

    /// The session that the message names.
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

/// A line that is not a message at all: not JSON, not an object, or without a string `type`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The bytes of the line.
    pub line: Bytes,
    /// What is wrong with them.
    pub reason: String,
}

impl Malformed {
    pub(crate) fn new(line: Bytes, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a line of {} bytes is not a message: {}", self.line.len(), self.reason)
    }
}

impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Malformed").field("line", &self.line).field("reason", &self.reason).finish()
    }
}

impl std::error::Error for Malformed {}
