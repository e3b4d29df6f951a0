//! What the host asks of a running session, and what it is answered.

use crate::control::PermissionMode;
use crate::id::{MessageId, TaskId};
use crate::json::{Extra, Json, List, Nullable, Number};
use crate::message::McpServerStatus;

wire_struct! {
    /// End the turn that runs.
    #[derive(Default)]
    pub struct Interrupt ["subtype" = "interrupt"] {
        /// Whether messages that wait are dropped too.
        cancel_queued: Option<bool>,
    }
}

wire_struct! {
    /// The answer to an interrupt.
    #[derive(Default)]
    pub struct InterruptAnswer {
        /// Messages that still wait.
        still_queued: List<MessageId>,
        /// Messages that were dropped.
        cancelled: List<MessageId>,
    }
}

wire_struct! {
    /// Change the permission mode.
    pub struct SetPermissionMode ["subtype" = "set_permission_mode"] {
        /// The new mode.
        mode: PermissionMode,
    }
}

impl SetPermissionMode {
    /// Changes to this mode.
    pub fn new(mode: impl Into<PermissionMode>) -> Self {
        Self { mode: mode.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The answer to a change of the permission mode.
    #[derive(Default)]
    pub struct SetPermissionModeAnswer {
        /// The mode that is in force.
        mode: Option<PermissionMode>,
    }
}

wire_struct! {
    /// Change the model.
    #[derive(Default)]
    pub struct SetModel ["subtype" = "set_model"] {
        /// The new model; `null` is the default one.
        model: Nullable<String>,
    }
}

wire_struct! {
    /// The answer to a change of the model.
    #[derive(Default)]
    pub struct SetModelAnswer {
        /// The model that is in force.
        model: Option<String>,
    }
}

wire_struct! {
    /// Change how much the model thinks.
    #[derive(Default)]
    pub struct SetMaxThinkingTokens ["subtype" = "set_max_thinking_tokens"] {
        /// The limit; `null` is the default one.
        max_thinking_tokens: Nullable<Number>,
        /// How thinking is shown.
        thinking_display: Option<String>,
    }
}

wire_struct! {
    /// Which MCP servers are there?
    #[derive(Default)]
    pub struct McpStatus ["subtype" = "mcp_status"] {}
}

wire_struct! {
    /// The MCP servers.
    #[derive(Default)]
    pub struct McpStatusAnswer {
        /// One entry for each.
        mcp_servers: List<McpServerInfo> as "mcpServers",
    }
}

wire_struct! {
    /// An MCP server.
    #[derive(Default)]
    pub struct McpServerInfo {
        /// Its name.
        name: Option<String>,
        /// Whether it is connected.
        status: Option<McpServerStatus>,
        /// What it says of itself.
        server_info: Option<Json> as "serverInfo",
        /// What went wrong.
        error: Option<String>,
        /// Its settings.
        config: Option<Json>,
        /// How it is reached.
        transport: Option<String>,
        /// For whom it was configured.
        scope: Option<String>,
        /// Where it was configured.
        source: Option<String>,
        /// Its tools.
        tools: List<McpToolInfo>,
    }
}

wire_struct! {
    /// A tool of an MCP server.
    #[derive(Default)]
    pub struct McpToolInfo {
        /// Its name.
        name: Option<String>,
        /// What it does.
        description: Option<String>,
        /// Hints about it.
        annotations: Option<Json>,
    }
}

wire_struct! {
    /// Connect an MCP server again.
    pub struct McpReconnect ["subtype" = "mcp_reconnect"] {
        /// The server.
        server_name: String as "serverName",
    }
}

impl McpReconnect {
    /// For this server.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server_name: server.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Switch an MCP server on or off.
    pub struct McpToggle ["subtype" = "mcp_toggle"] {
        /// The server.
        server_name: String as "serverName",
        /// On or off.
        enabled: bool,
    }
}

impl McpToggle {
    /// For this server.
    pub fn new(server: impl Into<String>, enabled: bool) -> Self {
        Self { server_name: server.into(), enabled, extra: Extra::default() }
    }
}

wire_struct! {
    /// Replace the MCP servers.
    pub struct McpSetServers ["subtype" = "mcp_set_servers"] {
        /// The servers by name.
        servers: Json,
    }
}

impl McpSetServers {
    /// These servers by name.
    pub fn new(servers: impl Into<Json>) -> Self {
        Self { servers: servers.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// What became of the new MCP servers.
    #[derive(Default)]
    pub struct McpSetServersAnswer {
        /// Those that were added.
        added: List<String>,
        /// Those that were removed.
        removed: List<String>,
        /// What went wrong, by server.
        errors: Option<Json>,
    }
}

wire_struct! {
    /// What fills the context?
    #[derive(Default)]
    pub struct GetContextUsage ["subtype" = "get_context_usage"] {
        /// `summary` or `full`.
        detail: Option<String>,
    }
}

wire_struct! {
    /// What fills the context.
    #[derive(Default)]
    pub struct ContextUsage {
        /// By kind.
        categories: List<ContextCategory>,
        /// Tokens used.
        total_tokens: Option<Number> as "totalTokens",
        /// Tokens before the context is made smaller.
        max_tokens: Option<Number> as "maxTokens",
        /// Tokens that the model can read.
        raw_max_tokens: Option<Number> as "rawMaxTokens",
        /// Used of the tokens that there are, in percent.
        percentage: Option<Number>,
        /// The model.
        model: Option<String>,
        /// A picture of it.
        grid_rows: Option<Json> as "gridRows",
        /// Memory files.
        memory_files: Option<Json> as "memoryFiles",
        /// Tools of MCP servers.
        mcp_tools: Option<Json> as "mcpTools",
        /// Agents.
        agents: Option<Json>,
        /// Commands.
        slash_commands: Option<Json> as "slashCommands",
        /// Skills.
        skills: Option<Json>,
        /// Where the context is made smaller by itself.
        auto_compact_threshold: Option<Number> as "autoCompactThreshold",
        /// Whether it is.
        is_auto_compact_enabled: Option<bool> as "isAutoCompactEnabled",
        /// The messages by kind.
        message_breakdown: Option<Json> as "messageBreakdown",
        /// What the API counted last.
        api_usage: Option<Json> as "apiUsage",
    }
}

wire_struct! {
    /// One kind of thing that fills the context.
    #[derive(Default)]
    pub struct ContextCategory {
        /// Its id.
        id: Option<String>,
        /// Its name for people.
        name: Option<String>,
        /// Its tokens.
        tokens: Option<Number>,
        /// Its colour.
        color: Option<String>,
        /// `used`, `free`, `buffer` or `deferred`.
        kind: Option<String>,
        /// Whether it is loaded only when needed.
        is_deferred: Option<bool> as "isDeferred",
    }
}

wire_struct! {
    /// Put files back to where they were before a user message.
    pub struct RewindFiles ["subtype" = "rewind_files"] {
        /// The user message.
        user_message_id: MessageId,
        /// Whether only to say what would be done.
        dry_run: Option<bool>,
    }
}

impl RewindFiles {
    /// To before this user message.
    pub fn new(message: impl Into<MessageId>) -> Self {
        Self { user_message_id: message.into(), dry_run: None, extra: Extra::default() }
    }
}

wire_struct! {
    /// What became of the files.
    #[derive(Default)]
    pub struct RewindFilesAnswer {
        /// Whether they could be put back.
        can_rewind: Option<bool> as "canRewind",
        /// Why not.
        error: Option<String>,
        /// The files.
        files_changed: List<String> as "filesChanged",
        /// Lines added.
        insertions: Option<Number>,
        /// Lines removed.
        deletions: Option<Number>,
        /// Links that were left alone.
        skipped_links: Option<Number> as "skippedLinks",
    }
}

wire_struct! {
    /// End a background task.
    pub struct StopTask ["subtype" = "stop_task"] {
        /// The task.
        task_id: TaskId,
    }
}

impl StopTask {
    /// This task.
    pub fn new(task: impl Into<TaskId>) -> Self {
        Self { task_id: task.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Withdraw a message that waits.
    pub struct CancelAsyncMessage ["subtype" = "cancel_async_message"] {
        /// The message.
        message_uuid: MessageId,
    }
}

impl CancelAsyncMessage {
    /// This message.
    pub fn new(message: impl Into<MessageId>) -> Self {
        Self { message_uuid: message.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Whether a message was withdrawn.
    #[derive(Default)]
    pub struct CancelAsyncMessageAnswer {
        /// Whether it was.
        cancelled: Option<bool>,
    }
}

wire_struct! {
    /// Make another directory part of the session.
    pub struct RegisterRepoRoot ["subtype" = "register_repo_root"] {
        /// The directory.
        directory: String,
        /// Whether its instructions are read.
        reload_claude_md: Option<bool>,
        /// Whether its plugins are read.
        reload_plugins: Option<bool>,
        /// Whether its skills are read.
        reload_skills: Option<bool>,
    }
}
