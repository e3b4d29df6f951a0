//! Messages about the session itself.

/// A struct with the two fields that every system message has.
macro_rules! system_message {
    (
        $(#[$meta:meta])*
        $name:ident = $subtype:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["type" = "system", "subtype" = $subtype] {
                $( $(#[$field_meta])* $field: $type $(as $wire)?, )*
                /// The ID of this message.
                uuid: Option<$crate::id::MessageId>,
                /// The session ID.
                session_id: Option<$crate::id::SessionId>,
            }
        }
    };
}

mod hook;
mod init;
mod notice;
mod state;
mod task;

pub use hook::*;
pub use init::*;
pub use notice::*;
pub use state::*;
pub use task::*;

message_union! {
    /// A message about the session itself.
    pub enum SystemMessage by optional "subtype"
    messages {
        /// Describes the session at the start of a turn.
        Init(InitMessage) = "init",
        /// The session state changed.
        SessionStateChanged(SessionStateMessage) = "session_state_changed",
        /// The activity of the CLI.
        Status(StatusMessage) = "status",
        /// The conversation was compacted.
        CompactBoundary(CompactBoundaryMessage) = "compact_boundary",
        /// A request to the API is retried.
        ApiRetry(ApiRetryMessage) = "api_retry",
        /// A control request is in progress.
        ControlRequestProgress(ControlRequestProgressMessage) = "control_request_progress",
        /// A model refused, and another model answers.
        ModelRefusalFallback(ModelRefusalFallbackMessage) = "model_refusal_fallback",
        /// A model refused, and no other model answers.
        ModelRefusalNoFallback(ModelRefusalNoFallbackMessage) = "model_refusal_no_fallback",
        /// The output of a command of the CLI.
        LocalCommandOutput(LocalCommandOutputMessage) = "local_command_output",
        /// A hook started.
        HookStarted(HookStartedMessage) = "hook_started",
        /// A hook wrote something.
        HookProgress(HookProgressMessage) = "hook_progress",
        /// A hook ended.
        HookResponse(HookResponseMessage) = "hook_response",
        /// Plugins are being installed.
        PluginInstall(PluginInstallMessage) = "plugin_install",
        /// A task started.
        TaskStarted(TaskStartedMessage) = "task_started",
        /// The progress of a task.
        TaskProgress(TaskProgressMessage) = "task_progress",
        /// A task changed.
        TaskUpdated(TaskUpdatedMessage) = "task_updated",
        /// A task ended.
        TaskNotification(TaskNotificationMessage) = "task_notification",
        /// All background tasks, after a change.
        BackgroundTasksChanged(BackgroundTasksChangedMessage) = "background_tasks_changed",
        /// The thinking tokens so far.
        ThinkingTokens(ThinkingTokensMessage) = "thinking_tokens",
        /// The process is about to exit.
        WorkerShuttingDown(WorkerShuttingDownMessage) = "worker_shutting_down",
        /// All commands, after a change.
        CommandsChanged(CommandsChangedMessage) = "commands_changed",
        /// A notification for the user.
        Notification(NotificationMessage) = "notification",
        /// Files were persisted.
        FilesPersisted(FilesPersistedMessage) = "files_persisted",
        /// Memories were recalled.
        MemoryRecall(MemoryRecallMessage) = "memory_recall",
        /// An elicitation of an MCP server was completed elsewhere.
        ElicitationComplete(ElicitationCompleteMessage) = "elicitation_complete",
        /// A tool call was denied.
        PermissionDenied(PermissionDeniedMessage) = "permission_denied",
        /// An informational message.
        Informational(InformationalMessage) = "informational",
        /// The title of the session changed.
        SessionTitleChanged(SessionTitleChangedMessage) = "session_title_changed",
        /// The transcript could not be written to the session store.
        MirrorError(MirrorErrorMessage) = "mirror_error",
        /// A summary of a turn.
        PostTurnSummary(PostTurnSummaryMessage) = "post_turn_summary",
        /// A summary of a task.
        TaskSummary(TaskSummaryMessage) = "task_summary",
        /// Metadata of the session.
        SessionMetadata(SessionMetadataMessage) = "session_metadata",
        /// Something could not be written to disk.
        SessionWritesLost(SessionWritesLostMessage) = "session_writes_lost",
    }
}
