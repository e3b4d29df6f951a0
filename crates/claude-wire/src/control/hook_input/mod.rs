//! What the CLI tells a hook callback, one file per group of events.

/// A struct with the fields that every hook input has.
macro_rules! hook_input {
    (
        $(#[$meta:meta])*
        $name:ident = $event:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["hook_event_name" = $event] {
                $( $(#[$field_meta])* $field: $type $(as $wire)?, )*
                /// The session.
                session_id: Option<$crate::id::SessionId>,
                /// Where the transcript is.
                transcript_path: Option<String>,
                /// The working directory.
                cwd: Option<String>,
                /// The prompt that is being answered.
                prompt_id: Option<String>,
                /// The permission mode.
                permission_mode: Option<$crate::control::PermissionMode>,
                /// The subagent.
                agent_id: Option<$crate::id::AgentId>,
                /// The kind of subagent.
                agent_type: Option<String>,
                /// How hard the model thinks.
                effort: Option<$crate::control::HookEffort>,
            }
        }
    };
}

mod file;
mod prompt;
mod session;
mod task;
mod tool;

pub use file::*;
pub use prompt::*;
pub use session::*;
pub use task::*;
pub use tool::*;

use crate::id::{CallbackId, ToolUseId};

wire_struct! {
    /// What does the host's hook say?
    pub struct HookCallback ["subtype" = "hook_callback"] {
        /// The callback.
        callback_id: CallbackId,
        /// What happened.
        input: HookInput,
        /// The tool call, or another id that stands for the event.
        tool_use_id: Option<ToolUseId>,
    }
}

wire_struct! {
    /// How hard the model thinks.
    #[derive(Default)]
    pub struct HookEffort {
        /// `low`, `medium`, `high`, `xhigh` or `max`.
        level: Option<String>,
    }
}

open_union! {
    /// What a hook is told, by event.
    pub enum HookInput by "hook_event_name" {
        /// A tool is about to run.
        PreToolUse(Box<PreToolUseInput>) = "PreToolUse",
        /// A tool ran.
        PostToolUse(Box<PostToolUseInput>) = "PostToolUse",
        /// A tool failed.
        PostToolUseFailure(Box<PostToolUseFailureInput>) = "PostToolUseFailure",
        /// All tools of one answer ran.
        PostToolBatch(Box<PostToolBatchInput>) = "PostToolBatch",
        /// A permission is about to be asked for.
        PermissionRequest(Box<PermissionRequestInput>) = "PermissionRequest",
        /// A tool was not allowed to run.
        PermissionDenied(Box<PermissionDeniedInput>) = "PermissionDenied",
        /// A prompt came in.
        UserPromptSubmit(Box<UserPromptSubmitInput>) = "UserPromptSubmit",
        /// A command became a prompt.
        UserPromptExpansion(Box<UserPromptExpansionInput>) = "UserPromptExpansion",
        /// The model is done.
        Stop(Box<StopInput>) = "Stop",
        /// The turn ended with an error.
        StopFailure(Box<StopFailureInput>) = "StopFailure",
        /// There is something to show to the user.
        Notification(Box<NotificationInput>) = "Notification",
        /// A piece of an answer is about to be shown.
        MessageDisplay(Box<MessageDisplayInput>) = "MessageDisplay",
        /// An MCP server has a question for the user.
        Elicitation(Box<ElicitationInput>) = "Elicitation",
        /// The question of an MCP server was answered.
        ElicitationResult(Box<ElicitationResultInput>) = "ElicitationResult",
        /// A session begins.
        SessionStart(Box<SessionStartInput>) = "SessionStart",
        /// A session ends.
        SessionEnd(Box<SessionEndInput>) = "SessionEnd",
        /// The CLI sets itself up.
        Setup(Box<SetupInput>) = "Setup",
        /// The context is about to be made smaller.
        PreCompact(Box<PreCompactInput>) = "PreCompact",
        /// The context was made smaller.
        PostCompact(Box<PostCompactInput>) = "PostCompact",
        /// The model is about to change.
        PreModelSwitch(Box<PreModelSwitchInput>) = "PreModelSwitch",
        /// The model changed.
        PostModelSwitch(Box<PostModelSwitchInput>) = "PostModelSwitch",
        /// A subagent begins.
        SubagentStart(Box<SubagentStartInput>) = "SubagentStart",
        /// A subagent is done.
        SubagentStop(Box<SubagentStopInput>) = "SubagentStop",
        /// A task was put on the list.
        TaskCreated(Box<TaskCreatedInput>) = "TaskCreated",
        /// A task of the list is done.
        TaskCompleted(Box<TaskCompletedInput>) = "TaskCompleted",
        /// A teammate has nothing to do.
        TeammateIdle(Box<TeammateIdleInput>) = "TeammateIdle",
        /// A settings file changed.
        ConfigChange(Box<ConfigChangeInput>) = "ConfigChange",
        /// A file of instructions was read.
        InstructionsLoaded(Box<InstructionsLoadedInput>) = "InstructionsLoaded",
        /// The working directory changed.
        CwdChanged(Box<CwdChangedInput>) = "CwdChanged",
        /// A watched file changed.
        FileChanged(Box<FileChangedInput>) = "FileChanged",
        /// A directory became part of the session.
        DirectoryAdded(Box<DirectoryAddedInput>) = "DirectoryAdded",
        /// A worktree is to be made.
        WorktreeCreate(Box<WorktreeCreateInput>) = "WorktreeCreate",
        /// A worktree is to be removed.
        WorktreeRemove(Box<WorktreeRemoveInput>) = "WorktreeRemove",
    }
}
