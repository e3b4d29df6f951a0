//! The inputs of hooks: one type for each event, and [`HookInput`] over all of them.

pub use crate::control::hook::{
    BackgroundTaskSummary, BatchedToolCall, ConfigChangeInput, CwdChangedInput,
    DirectoryAddedInput, ElicitationInput, ElicitationResultInput, FileChangedInput, HookEffort,
    HookInput, InstructionsLoadedInput, MessageDisplayInput, NotificationInput,
    PermissionDeniedInput, PermissionRequestInput, PostCompactInput, PostModelSwitchInput,
    PostToolBatchInput, PostToolUseFailureInput, PostToolUseInput, PreCompactInput,
    PreModelSwitchInput, PreToolUseInput, SessionCronSummary, SessionEndInput, SessionStartInput,
    SetupInput, StopFailureInput, StopInput, SubagentStartInput, SubagentStopInput,
    TaskCompletedInput, TaskCreatedInput, TeammateIdleInput, UserPromptExpansionInput,
    UserPromptSubmitInput, WorktreeCreateInput, WorktreeRemoveInput,
};
