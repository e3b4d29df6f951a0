//! Notifications and informational messages.

use crate::control::SlashCommand;
use crate::id::{AgentId, ToolUseId};
use crate::json::{List, Number};

system_message! {
    /// The output of a command of the CLI.
    LocalCommandOutputMessage = "local_command_output" {
        /// The output.
        content: Option<String>,
    }
}

system_message! {
    /// Plugins are being installed.
    PluginInstallMessage = "plugin_install" {
        /// `started`, `installed`, `failed` or `completed`.
        status: Option<String>,
        /// The plugin.
        name: Option<String>,
        /// The error.
        error: Option<String>,
    }
}

system_message! {
    /// All commands, after a change.
    CommandsChangedMessage = "commands_changed" {
        /// The commands.
        commands: List<SlashCommand>,
    }
}

system_message! {
    /// A notification for the user.
    NotificationMessage = "notification" {
        /// The key; a later notification with the same key replaces this one.
        key: Option<String>,
        /// The text.
        text: Option<String>,
        /// `low`, `medium`, `high` or `immediate`.
        priority: Option<String>,
        /// The color.
        color: Option<String>,
        /// The display time in milliseconds.
        timeout_ms: Option<Number>,
    }
}

system_message! {
    /// Files were persisted.
    FilesPersistedMessage = "files_persisted" {
        /// The persisted files.
        files: List<PersistedFile>,
        /// The files that could not be persisted.
        failed: List<PersistedFile>,
        /// The time.
        processed_at: Option<String>,
    }
}

wire_struct! {
    /// A file that was persisted, or could not be.
    #[derive(Default)]
    pub struct PersistedFile {
        /// Its name.
        filename: Option<String>,
        /// The ID of the persisted file.
        file_id: Option<String>,
        /// The reason of the failure.
        error: Option<String>,
    }
}

system_message! {
    /// Memories were recalled.
    MemoryRecallMessage = "memory_recall" {
        /// `select` or `synthesize`.
        mode: Option<String>,
        /// The memories.
        memories: List<RecalledMemory>,
    }
}

wire_struct! {
    /// A memory that was recalled.
    #[derive(Default)]
    pub struct RecalledMemory {
        /// The file.
        path: Option<String>,
        /// The scope of the memory.
        scope: Option<String>,
        /// The content.
        content: Option<String>,
    }
}

system_message! {
    /// An elicitation of an MCP server was completed elsewhere.
    ElicitationCompleteMessage = "elicitation_complete" {
        /// The server.
        mcp_server_name: Option<String>,
        /// The question text.
        elicitation_id: Option<String>,
    }
}

system_message! {
    /// A tool call was denied.
    PermissionDeniedMessage = "permission_denied" {
        /// The tool.
        tool_name: Option<String>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The subagent.
        agent_id: Option<AgentId>,
        /// The kind of reason.
        decision_reason_type: Option<String>,
        /// The reason, for programs.
        decision_reason_code: Option<String>,
        /// The reason.
        decision_reason: Option<String>,
        /// The message for the model.
        message: Option<String>,
    }
}

system_message! {
    /// An informational message.
    InformationalMessage = "informational" {
        /// The text.
        content: Option<String>,
        /// `info`, `notice`, `suggestion` or `warning`.
        level: Option<String>,
        /// The ID of the related tool call.
        tool_use_id: Option<ToolUseId>,
        /// Whether it ends the turn.
        prevent_continuation: Option<bool>,
        /// The category.
        tag: Option<String>,
    }
}

system_message! {
    /// Something could not be written to disk.
    SessionWritesLostMessage = "session_writes_lost" {
        /// `ENOSPC` or `EDQUOT`.
        error_code: Option<String>,
        /// The lost data.
        lost: List<String>,
        /// The sessions with incomplete transcripts.
        transcript_session_ids: List<String>,
    }
}

system_message! {
    /// The title of the session changed.
    SessionTitleChangedMessage = "session_title_changed" {
        /// The title.
        title: Option<String>,
    }
}

system_message! {
    /// The transcript could not be written to the session store.
    MirrorErrorMessage = "mirror_error" {
        /// The reason.
        error: Option<String>,
        /// Which transcript.
        key: Option<MirrorKey>,
    }
}

wire_struct! {
    /// A transcript in a session store.
    #[derive(Default)]
    pub struct MirrorKey {
        /// The project.
        project_key: Option<String> as "projectKey",
        /// The session ID.
        session_id: Option<String> as "sessionId",
        /// The transcript of a subagent.
        subpath: Option<String>,
    }
}

system_message! {
    /// A summary of a turn. The fields are not published; they are in `extra`.
    PostTurnSummaryMessage = "post_turn_summary" {}
}

system_message! {
    /// A summary of a task. The fields are not published; they are in `extra`.
    TaskSummaryMessage = "task_summary" {}
}

system_message! {
    /// Metadata of the session. The fields are not published; they are in `extra`.
    SessionMetadataMessage = "session_metadata" {}
}
