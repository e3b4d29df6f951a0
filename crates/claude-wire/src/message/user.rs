//! Messages to the model: prompts, their replays, and tool results.

use crate::content::{Content, ToolResultBlock, tool_results};
use crate::id::{AgentId, MessageId, SessionId, ToolUseId};
use crate::json::{Extra, Json, List, Nullable, Number};
use crate::message::Role;

wire_struct! {
    /// A message to the model. The host sends prompts; the CLI sends tool results and, if enabled,
    /// replays of prompts.
    #[derive(Default)]
    pub struct UserMessage ["type" = "user"] {
        /// The role and the content.
        message: Option<UserContent>,
        /// The tool call that started the subagent of this message.
        parent_tool_use_id: Nullable<ToolUseId>,
        /// The session ID.
        session_id: Option<SessionId>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The time of the message.
        timestamp: Option<String>,
        /// Whether the message is a replay of a prompt.
        replay: Option<bool> as "isReplay",
        /// Whether the CLI created the message.
        is_synthetic: Option<bool> as "isSynthetic",
        /// The structured result of the tool; its schema depends on the tool.
        tool_use_result: Option<Json>,
        /// The permission decisions of the tool calls.
        tool_result_meta: Option<Json>,
        /// The priority of the message.
        priority: Option<Priority>,
        /// The source.
        origin: Option<Origin>,
        /// Whether the message starts a turn.
        should_query: Option<bool> as "shouldQuery",
        /// Whether the content is sent verbatim.
        client_composed: Option<bool>,
        /// The subagent.
        agent_id: Option<AgentId>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The subagent's task.
        task_description: Option<String>,
        /// The attached files.
        file_attachments: Option<Json>,
        /// The pasted texts.
        pasted_content: Option<Json>,
        /// The positions of the pasted texts.
        inline_pastes: Option<Json>,
    }
}

impl UserMessage {
    /// Creates a prompt.
    pub fn prompt(content: impl Into<Content>) -> Self {
        Self { message: Some(UserContent::new(content)), ..Self::default() }
    }

    /// Returns the content.
    pub fn content(&self) -> Option<&Content> {
        self.message.as_ref().and_then(|message| message.content.as_ref())
    }

    /// Returns whether the message is a replay of a prompt; false if the field is absent.
    pub fn is_replay(&self) -> bool {
        self.replay.unwrap_or(false)
    }

    /// Returns the results of tool calls in the message.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResultBlock> {
        tool_results(self.content().map(Content::blocks).unwrap_or_default())
    }
}

wire_struct! {
    /// The part of a user message that the model sees.
    #[derive(Default)]
    pub struct UserContent {
        /// Always `user`.
        role: Option<Role>,
        /// A text or content blocks.
        content: Option<Content>,
    }
}

impl UserContent {
    fn new(content: impl Into<Content>) -> Self {
        Self { role: Some(Role::User), content: Some(content.into()), extra: Extra::default() }
    }
}

open_enum! {
    /// The priority of a message that arrives while a turn is running.
    pub enum Priority {
        /// The message is handled at once.
        Now = "now",
        /// The message is handled after the current step.
        Next = "next",
        /// The message is handled after the current turn.
        Later = "later",
    }
}

wire_struct! {
    /// The origin of a message or a turn.
    #[derive(Default)]
    pub struct Origin {
        /// The kind of origin.
        kind: Option<OriginKind>,
        /// The kind of notification.
        subkind: Option<String>,
        /// The run that the notification is about.
        run_id: Option<String> as "runId",
        /// The channel's server.
        server: Option<String>,
        /// The peer.
        from: Option<String>,
        /// The permission mode of the peer.
        from_mode: Option<String> as "fromMode",
        /// The peer's name.
        name: Option<String>,
        /// The peer's session.
        from_session: Option<String> as "fromSession",
        /// The task that sent it.
        sender_task_id: Option<String> as "senderTaskId",
        /// What the peer wrote.
        body: Option<String>,
        /// The verified process ID of the peer.
        verified_peer_pid: Option<Number> as "verifiedPeerPid",
        /// The reason of a timer.
        fire_reason: Option<String> as "fireReason",
        /// The messages of this origin.
        uuids: List<MessageId>,
    }
}

open_enum! {
    /// The kind of origin of a message or a turn.
    pub enum OriginKind {
        /// A human user.
        Human = "human",
        /// A channel.
        Channel = "channel",
        /// Another session.
        Peer = "peer",
        /// A background task that ended.
        TaskNotification = "task-notification",
        /// The coordinator of several sessions.
        Coordinator = "coordinator",
        /// Not known.
        Unclassified = "unclassified",
        /// An observer.
        Observer = "observer",
        /// The CLI continued by itself.
        AutoContinuation = "auto-continuation",
        /// The activity of an observer.
        ObserverActivity = "observer-activity",
    }
}
