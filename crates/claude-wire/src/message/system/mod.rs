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
                /// This message.
                uuid: Option<$crate::id::MessageId>,
                /// The session.
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
        /// A turn begins: what the session is made of.
        Init(InitMessage) = "init",
        /// The session works, waits for the host, or is idle.
        SessionStateChanged(SessionStateMessage) = "session_state_changed",
        /// What the CLI is doing.
        Status(StatusMessage) = "status",
        /// The context was made smaller.
        CompactBoundary(CompactBoundaryMessage) = "compact_boundary",
        /// A request to the API is made once more.
        ApiRetry(ApiRetryMessage) = "api_retry",
        /// A control request is being worked on.
        ControlRequestProgress(ControlRequestProgressMessage) = "control_request_progress",
        /// A model refused and another one answers.
        ModelRefusalFallback(ModelRefusalFallbackMessage) = "model_refusal_fallback",
        /// A model refused and none other answers.
        ModelRefusalNoFallback(ModelRefusalNoFallbackMessage) = "model_refusal_no_fallback",
        /// What a command of the CLI printed.
        LocalCommandOutput(LocalCommandOutputMessage) = "local_command_output",
        /// A hook began.
        HookStarted(HookStartedMessage) = "hook_started",
        /// A hook wrote something.
        HookProgress(HookProgressMessage) = "hook_progress",
        /// A hook ended.
        HookResponse(HookResponseMessage) = "hook_response",
        /// Plugins are being installed.
        PluginInstall(PluginInstallMessage) = "plugin_install",
        /// A task began.
        TaskStarted(TaskStartedMessage) = "task_started",
        /// A task goes on.
        TaskProgress(TaskProgressMessage) = "task_progress",
        /// A task changed.
        TaskUpdated(TaskUpdatedMessage) = "task_updated",
        /// A task ended.
        TaskNotification(TaskNotificationMessage) = "task_notification",
        /// All background tasks, after a change.
        BackgroundTasksChanged(BackgroundTasksChangedMessage) = "background_tasks_changed",
        /// How much the model thought so far.
        ThinkingTokens(ThinkingTokensMessage) = "thinking_tokens",
        /// The process is about to end.
        WorkerShuttingDown(WorkerShuttingDownMessage) = "worker_shutting_down",
        /// All commands, after a change.
        CommandsChanged(CommandsChangedMessage) = "commands_changed",
        /// Something to show to the user.
        Notification(NotificationMessage) = "notification",
        /// Files were put into storage.
        FilesPersisted(FilesPersistedMessage) = "files_persisted",
        /// Memories were read.
        MemoryRecall(MemoryRecallMessage) = "memory_recall",
        /// A question of an MCP server was answered elsewhere.
        ElicitationComplete(ElicitationCompleteMessage) = "elicitation_complete",
        /// A tool call was not allowed.
        PermissionDenied(PermissionDeniedMessage) = "permission_denied",
        /// Something to know.
        Informational(InformationalMessage) = "informational",
        /// The session has another title.
        SessionTitleChanged(SessionTitleChangedMessage) = "session_title_changed",
        /// The transcript could not be given to the session store.
        MirrorError(MirrorErrorMessage) = "mirror_error",
        /// What a turn did.
        PostTurnSummary(PostTurnSummaryMessage) = "post_turn_summary",
        /// What a task did.
        TaskSummary(TaskSummaryMessage) = "task_summary",
        /// What is known about the session.
        SessionMetadata(SessionMetadataMessage) = "session_metadata",
        /// Something could not be written to disk.
        SessionWritesLost(SessionWritesLostMessage) = "session_writes_lost",
    }
}
