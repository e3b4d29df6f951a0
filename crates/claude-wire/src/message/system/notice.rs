//! Things to know and things to show.

use crate::control::SlashCommand;
use crate::id::{AgentId, ToolUseId};
use crate::json::{List, Number};

system_message! {
    /// What a command of the CLI printed.
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
        /// What went wrong.
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
    /// Something to show to the user.
    NotificationMessage = "notification" {
        /// What it is about; a later one with the same key replaces it.
        key: Option<String>,
        /// The text.
        text: Option<String>,
        /// `low`, `medium`, `high` or `immediate`.
        priority: Option<String>,
        /// The colour.
        color: Option<String>,
        /// Milliseconds for which to show it.
        timeout_ms: Option<Number>,
    }
}

system_message! {
    /// Files were put into storage.
    FilesPersistedMessage = "files_persisted" {
        /// Those that were.
        files: List<PersistedFile>,
        /// Those that could not be.
        failed: List<PersistedFile>,
        /// When.
        processed_at: Option<String>,
    }
}

wire_struct! {
    /// A file that was put into storage, or could not be.
    #[derive(Default)]
    pub struct PersistedFile {
        /// Its name.
        filename: Option<String>,
        /// What it is called there.
        file_id: Option<String>,
        /// Why it could not be.
        error: Option<String>,
    }
}

system_message! {
    /// Memories were read.
    MemoryRecallMessage = "memory_recall" {
        /// `select` or `synthesize`.
        mode: Option<String>,
        /// The memories.
        memories: List<RecalledMemory>,
    }
}

wire_struct! {
    /// A memory that was read.
    #[derive(Default)]
    pub struct RecalledMemory {
        /// The file.
        path: Option<String>,
        /// Whose it is.
        scope: Option<String>,
        /// What is in it.
        content: Option<String>,
    }
}

system_message! {
    /// A question of an MCP server was answered elsewhere.
    ElicitationCompleteMessage = "elicitation_complete" {
        /// The server.
        mcp_server_name: Option<String>,
        /// The question.
        elicitation_id: Option<String>,
    }
}

system_message! {
    /// A tool call was not allowed.
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
        /// What the model was told.
        message: Option<String>,
    }
}

system_message! {
    /// Something to know.
    InformationalMessage = "informational" {
        /// The text.
        content: Option<String>,
        /// `info`, `notice`, `suggestion` or `warning`.
        level: Option<String>,
        /// The tool call that it is about.
        tool_use_id: Option<ToolUseId>,
        /// Whether the turn ends with it.
        prevent_continuation: Option<bool>,
        /// What it is about, in one word.
        tag: Option<String>,
    }
}

system_message! {
    /// Something could not be written to disk.
    SessionWritesLostMessage = "session_writes_lost" {
        /// `ENOSPC` or `EDQUOT`.
        error_code: Option<String>,
        /// What was lost.
        lost: List<String>,
        /// The sessions whose transcripts are not whole.
        transcript_session_ids: List<String>,
    }
}

system_message! {
    /// The session has another title.
    SessionTitleChangedMessage = "session_title_changed" {
        /// The title.
        title: Option<String>,
    }
}

system_message! {
    /// The transcript could not be given to the session store.
    MirrorErrorMessage = "mirror_error" {
        /// Why.
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
        /// The session.
        session_id: Option<String> as "sessionId",
        /// The transcript of a subagent.
        subpath: Option<String>,
    }
}

system_message! {
    /// What a turn did. Its fields are not published: they stand in `extra`.
    PostTurnSummaryMessage = "post_turn_summary" {}
}

system_message! {
    /// What a task did. Its fields are not published: they stand in `extra`.
    TaskSummaryMessage = "task_summary" {}
}

system_message! {
    /// What is known about the session. Its fields are not published: they stand in `extra`.
    SessionMetadataMessage = "session_metadata" {}
}
