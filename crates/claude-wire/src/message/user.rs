//! What is said to the model: prompts of the host, their replays, tool results.

use crate::content::{Content, ToolResultBlock, tool_results};
use crate::id::{AgentId, MessageId, SessionId, ToolUseId};
use crate::json::{Extra, Json, List, Nullable, Number};
use crate::message::Role;

wire_struct! {
    /// A message to the model. The host sends prompts in this shape; the CLI sends tool results
    /// and, when asked to, replays of prompts.
    #[derive(Default)]
    pub struct UserMessage ["type" = "user"] {
        /// The role and the content.
        message: Option<UserContent>,
        /// The tool call inside which a subagent was told this.
        parent_tool_use_id: Nullable<ToolUseId>,
        /// The session.
        session_id: Option<SessionId>,
        /// This message.
        uuid: Option<MessageId>,
        /// When it was said.
        timestamp: Option<String>,
        /// Whether it is the replay of a prompt.
        replay: Option<bool> as "isReplay",
        /// Whether the CLI made it up.
        is_synthetic: Option<bool> as "isSynthetic",
        /// What the tool gave back, in the tool's own shape.
        tool_use_result: Option<Json>,
        /// How each tool call came to be allowed.
        tool_result_meta: Option<Json>,
        /// When the CLI should take it up.
        priority: Option<Priority>,
        /// Where it comes from.
        origin: Option<Origin>,
        /// Whether it should start a turn.
        should_query: Option<bool> as "shouldQuery",
        /// Whether the content is to be sent as it is.
        client_composed: Option<bool>,
        /// The subagent.
        agent_id: Option<AgentId>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The subagent's task.
        task_description: Option<String>,
        /// Files that came with it.
        file_attachments: Option<Json>,
        /// Texts that were pasted into it.
        pasted_content: Option<Json>,
        /// Where in the text they stand.
        inline_pastes: Option<Json>,
    }
}

impl UserMessage {
    /// A prompt.
    pub fn prompt(content: impl Into<Content>) -> Self {
        Self { message: Some(UserContent::new(content)), ..Self::default() }
    }

    /// Returns the content.
    pub fn content(&self) -> Option<&Content> {
        self.message.as_ref().and_then(|message| message.content.as_ref())
    }

    /// Returns whether the message is the replay of a prompt; false if the CLI does not say.
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
        /// One text, or blocks.
        content: Option<Content>,
    }
}

impl UserContent {
    fn new(content: impl Into<Content>) -> Self {
        Self { role: Some(Role::User), content: Some(content.into()), extra: Extra::default() }
    }
}

open_enum! {
    /// When the CLI takes up a message that it gets while a turn runs.
    pub enum Priority {
        /// At once.
        Now = "now",
        /// After the step that runs.
        Next = "next",
        /// After the turn that runs.
        Later = "later",
    }
}

wire_struct! {
    /// Where a message or a turn comes from.
    #[derive(Default)]
    pub struct Origin {
        /// Who or what it was.
        kind: Option<OriginKind>,
        /// What kind of notification.
        subkind: Option<String>,
        /// The run that it tells of.
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
        /// The peer's process, if it is sure.
        verified_peer_pid: Option<Number> as "verifiedPeerPid",
        /// Why a timer rang.
        fire_reason: Option<String> as "fireReason",
        /// Messages that this origin stands for.
        uuids: List<MessageId>,
    }
}

open_enum! {
    /// Who or what started a message or a turn.
    pub enum OriginKind {
        /// A person.
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
        /// The CLI went on by itself.
        AutoContinuation = "auto-continuation",
        /// What an observer saw.
        ObserverActivity = "observer-activity",
    }
}
