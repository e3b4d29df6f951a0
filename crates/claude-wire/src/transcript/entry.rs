//! Entries as types: open, with unknown kinds and unknown fields kept.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::ser::{Serialize, Serializer};

use crate::content::Content;
use crate::error::without_values;
use crate::id::{AgentId, MessageId, SessionId};
use crate::json::{Json, List, Nullable};
use crate::message::{ApiMessage, Malformed, Origin, UserContent};
use crate::repair;
use crate::schema::{self, Encode, Reader};

/// Declares an entry that is a link of the tree, with the fields that all of them have.
macro_rules! chain_entry {
    ($(#[$meta:meta])* $name:ident [$tag:literal] { $($fields:tt)* }) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["type" = $tag] {
                /// The id of the entry.
                uuid: Option<MessageId>,
                /// The entry that this one follows; null for the first one and after a compaction.
                parent_uuid: Nullable<MessageId> as "parentUuid",
                /// The session.
                session_id: Option<SessionId> as "sessionId",
                /// When it was written, in ISO 8601.
                timestamp: Option<String>,
                /// Whether it belongs to a subagent.
                is_sidechain: Option<bool> as "isSidechain",
                /// The subagent.
                agent_id: Option<AgentId> as "agentId",
                /// Whether the CLI inserted it, not to be shown.
                is_meta: Option<bool> as "isMeta",
                /// The working directory.
                cwd: Option<String>,
                /// The Git branch of the working directory.
                git_branch: Option<String> as "gitBranch",
                /// The version of the CLI.
                version: Option<String>,
                $($fields)*
            }
        }
    };
}

chain_entry! {
    /// A prompt, a tool result, or text that the CLI inserted.
    UserEntry ["user"] {
        /// The role and the content.
        message: Option<UserContent>,
        /// What the tool returned, in the tool's own shape.
        tool_use_result: Option<Json> as "toolUseResult",
        /// The assistant entry with the tool call.
        source_tool_assistant_uuid: Option<MessageId> as "sourceToolAssistantUUID",
        /// Whether it is the summary that a compaction wrote.
        is_compact_summary: Option<bool> as "isCompactSummary",
        /// Whether it is never sent to the model.
        is_visible_in_transcript_only: Option<bool> as "isVisibleInTranscriptOnly",
        /// Where it comes from.
        origin: Option<Origin>,
    }
}

chain_entry! {
    /// One content block of a response of the model. Entries of one response share `message.id`.
    AssistantEntry ["assistant"] {
        /// The API's message, with one content block.
        message: Option<ApiMessage>,
        /// Whether the text is the CLI's own report of an API error.
        is_api_error_message: Option<bool> as "isApiErrorMessage",
    }
}

chain_entry! {
    /// A system entry, such as a compaction.
    SystemEntry ["system"] {
        /// What kind of system entry.
        subtype: Option<String>,
        /// Its text.
        content: Option<Json>,
        /// How important it is.
        level: Option<String>,
        /// The last entry before a compaction.
        logical_parent_uuid: Nullable<MessageId> as "logicalParentUuid",
        /// What a compaction did, and which entries it preserved.
        compact_metadata: Option<Json> as "compactMetadata",
    }
}

chain_entry! {
    /// Context that the CLI attached, or a prompt that joined a running turn.
    AttachmentEntry ["attachment"] {
        /// The attachment, with its own `type`.
        attachment: Option<Json>,
    }
}

chain_entry! {
    /// Progress of a tool, written by older versions of the CLI.
    ProgressEntry ["progress"] {}
}

wire_struct! {
    /// A title that a user gave to the session.
    #[derive(Default)]
    pub struct CustomTitleEntry ["type" = "custom-title"] {
        /// The title.
        custom_title: Option<String> as "customTitle",
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// A title that the model gave to the session.
    #[derive(Default)]
    pub struct AiTitleEntry ["type" = "ai-title"] {
        /// The title.
        ai_title: Option<String> as "aiTitle",
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// The tag of the session.
    #[derive(Default)]
    pub struct TagEntry ["type" = "tag"] {
        /// The tag; empty if it was removed.
        tag: Option<String>,
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// The last prompt, and where the conversation continues.
    #[derive(Default)]
    pub struct LastPromptEntry ["type" = "last-prompt"] {
        /// The prompt, shortened to 200 characters.
        last_prompt: Option<String> as "lastPrompt",
        /// The newest entry of the conversation; null if it was cleared.
        leaf_uuid: Nullable<MessageId> as "leafUuid",
        /// Whether the user chose it.
        explicit: Option<bool>,
        /// Whether the conversation was rewound to it.
        rewound: Option<bool>,
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// A summary of the session.
    #[derive(Default)]
    pub struct SummaryEntry ["type" = "summary"] {
        /// The summary.
        summary: Option<String>,
        /// The newest entry that it covers.
        leaf_uuid: Option<MessageId> as "leafUuid",
    }
}

wire_struct! {
    /// A change of the queue of prompts.
    #[derive(Default)]
    pub struct QueueOperationEntry ["type" = "queue-operation"] {
        /// `enqueue`, `dequeue` or `remove`.
        operation: Option<String>,
        /// Why a prompt was removed.
        reason: Option<String>,
        /// When, in ISO 8601.
        timestamp: Option<String>,
        /// The message that the prompt was sent as.
        command_uuid: Option<MessageId> as "commandUuid",
        /// The delivery of the prompt.
        delivery_id: Option<String> as "deliveryId",
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// The session moved to another working directory.
    #[derive(Default)]
    pub struct RelocatedEntry ["type" = "relocated"] {
        /// The new working directory.
        relocated_cwd: Option<String> as "relocatedCwd",
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// The session continues in another one.
    #[derive(Default)]
    pub struct ContinuedInEntry ["type" = "continued-in"] {
        /// The other session.
        continued_in_session_id: Option<SessionId> as "continuedInSessionId",
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

wire_struct! {
    /// The state of the files that the session changed, for a rewind.
    #[derive(Default)]
    pub struct FileHistorySnapshotEntry ["type" = "file-history-snapshot"] {
        /// The message before which the files had this state.
        message_id: Option<MessageId> as "messageId",
        /// The backups of the files.
        snapshot: Option<Json>,
        /// Whether it replaces an earlier snapshot of the message.
        is_snapshot_update: Option<bool> as "isSnapshotUpdate",
    }
}

wire_struct! {
    /// The tools that the session used.
    #[derive(Default)]
    pub struct ToolsUsedEntry ["type" = "tools-used"] {
        /// The names of the tools.
        tools: List<String>,
        /// The session.
        session_id: Option<SessionId> as "sessionId",
    }
}

open_union! {
    /// The content of an entry. The CLI writes about 50 kinds; those without a type of their own are
    /// `Unknown`, with all of their fields.
    pub enum EntryBody by "type" {
        /// A prompt, a tool result, or text that the CLI inserted.
        User(Arc<UserEntry>) = "user",
        /// One content block of a response of the model.
        Assistant(Arc<AssistantEntry>) = "assistant",
        /// A system entry, such as a compaction.
        System(Arc<SystemEntry>) = "system",
        /// Context that the CLI attached, or a prompt that joined a running turn.
        Attachment(Arc<AttachmentEntry>) = "attachment",
        /// Progress of a tool, written by older versions of the CLI.
        Progress(Arc<ProgressEntry>) = "progress",
        /// A title that a user gave to the session.
        CustomTitle(CustomTitleEntry) = "custom-title",
        /// A title that the model gave to the session.
        AiTitle(AiTitleEntry) = "ai-title",
        /// The tag of the session.
        Tag(TagEntry) = "tag",
        /// The last prompt, and where the conversation continues.
        LastPrompt(LastPromptEntry) = "last-prompt",
        /// A summary of the session.
        Summary(SummaryEntry) = "summary",
        /// A change of the queue of prompts.
        QueueOperation(QueueOperationEntry) = "queue-operation",
        /// The session moved to another working directory.
        Relocated(RelocatedEntry) = "relocated",
        /// The session continues in another one.
        ContinuedIn(ContinuedInEntry) = "continued-in",
        /// The state of the files that the session changed.
        FileHistorySnapshot(FileHistorySnapshotEntry) = "file-history-snapshot",
        /// The tools that the session used.
        ToolsUsed(ToolsUsedEntry) = "tools-used",
    }
}

/// One entry of a transcript: what its bytes say, and if wanted the bytes themselves.
///
/// Serializing an entry writes the original JSON if the bytes were kept, otherwise the same fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The content of the entry.
    pub body: EntryBody,
    raw: Option<Bytes>,
    is_repaired: bool,
}

impl Entry {
    /// Decodes an entry from its bytes, given without the line break, and keeps them.
    ///
    /// Invalid characters are read as U+FFFD. A known type with unexpected fields becomes
    /// [`EntryBody::Undecodable`].
    ///
    /// # Errors
    /// Returns [`Malformed`] when the bytes are not a JSON object with a string `type`.
    pub fn decode(bytes: impl Into<Bytes>) -> Result<Self, Malformed> {
        let raw = bytes.into();
        let mut entry = Self::decode_slice(&raw)?;
        entry.raw = Some(raw);
        Ok(entry)
    }

    /// Decodes an entry from its bytes as [`decode`](Self::decode) does, without keeping them. See
    /// [`decode_large`](Self::decode_large) for entries of many megabytes.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_slice(bytes: &[u8]) -> Result<Self, Malformed> {
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Ok(body) = schema::from_text(text)
        {
            return Ok(Self::without_raw(body, false));
        }
        let malformed = |reason| Malformed::new(Bytes::copy_from_slice(bytes), reason);
        let text = repair::valid(bytes);
        match schema::from_text_isolating::<EntryBody>(&text) {
            Ok(EntryBody::Undecodable(undecodable)) if undecodable.kind.is_none() => {
                Err(malformed(undecodable.reason))
            }
            Ok(body) => Ok(Self::without_raw(body, matches!(text, Cow::Owned(_)))),
            Err(error) => Err(malformed(without_values(&error))),
        }
    }

    pub(super) fn without_raw(body: EntryBody, is_repaired: bool) -> Self {
        Self { body, raw: None, is_repaired }
    }

    /// Returns the exact bytes of the entry, if they were kept.
    pub fn raw(&self) -> Option<&Bytes> {
        self.raw.as_ref()
    }

    /// Returns whether invalid characters had to be replaced to decode the entry.
    pub fn is_repaired(&self) -> bool {
        self.is_repaired
    }

    /// Returns the `type` of the entry.
    pub fn kind(&self) -> &str {
        self.body.kind().unwrap_or_default()
    }

    /// Returns the `uuid`; state entries mostly have none.
    pub fn uuid(&self) -> Option<Cow<'_, str>> {
        self.field("uuid")
    }

    /// Returns the `parentUuid`; `None` at the start of a conversation.
    pub fn parent_uuid(&self) -> Option<Cow<'_, str>> {
        self.field("parentUuid")
    }

    /// Returns the session that the entry names.
    pub fn session_id(&self) -> Option<Cow<'_, str>> {
        self.field("sessionId")
    }

    /// Returns the timestamp in ISO 8601.
    pub fn timestamp(&self) -> Option<Cow<'_, str>> {
        self.field("timestamp")
    }

    /// Returns the content that is shown for a user entry or for a prompt that joined a running
    /// turn; `None` for any other entry.
    pub fn prompt(&self) -> Option<Content> {
        match &self.body {
            EntryBody::User(entry) => entry.message.as_ref()?.content.clone(),
            EntryBody::Attachment(entry) => {
                let attachment = entry.attachment.as_ref()?;
                let kind = attachment.get("type")?;
                let is_queued = kind.as_str().as_deref() == Some("queued_command");
                attachment.get("prompt").filter(|_| is_queued)?.deserialize().ok()
            }
            EntryBody::System(entry) => {
                let is_voice = entry.subtype.as_deref() == Some("voice_call_talk");
                let blocks = entry.extra.get("blocks").filter(|blocks| blocks.is_array());
                blocks.or(entry.content.as_ref()).filter(|_| is_voice)?.deserialize().ok()
            }
            _ => None,
        }
    }

    /// Returns the id under which the entry is shown: for a prompt that joined a running turn the
    /// id that the host sent it with, otherwise its own.
    pub fn shown_uuid(&self) -> Option<Cow<'_, str>> {
        if let EntryBody::Attachment(entry) = &self.body
            && let Some(source) = entry.attachment.as_ref().and_then(|it| it.get("source_uuid"))
            && let Some(source) = source.as_str().filter(|source| !source.is_empty())
        {
            return Some(Cow::Owned(source.into_owned()));
        }
        self.uuid()
    }

    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        macro_rules! chain {
            ($entry:expr) => {
                match name {
                    "uuid" => $entry.uuid.as_ref().map(MessageId::as_str),
                    "parentUuid" => $entry.parent_uuid.as_ref().map(MessageId::as_str),
                    "sessionId" => $entry.session_id.as_ref().map(SessionId::as_str),
                    _ => $entry.timestamp.as_deref(),
                }
                .map(Cow::Borrowed)
            };
        }
        match &self.body {
            EntryBody::User(entry) => chain!(entry),
            EntryBody::Assistant(entry) => chain!(entry),
            EntryBody::System(entry) => chain!(entry),
            EntryBody::Attachment(entry) => chain!(entry),
            EntryBody::Progress(entry) => chain!(entry),
            body => {
                let value = Json::from_view(body.view()).get(name)?;
                Some(Cow::Owned(value.as_str()?.into_owned()))
            }
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.raw.as_deref().and_then(|raw| std::str::from_utf8(raw).ok());
        match Reader::new(text.unwrap_or_default()).raw() {
            Ok(original) if !self.is_repaired => original.serialize(serializer),
            _ => self.body.serialize(serializer),
        }
    }
}
