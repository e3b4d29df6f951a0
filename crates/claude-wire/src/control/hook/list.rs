//! The list of all published hook events with their types, denials and timeouts.

/// Calls a macro with all hook events.
///
/// A row contains the input (and the event-specific output), the name on the wire, the effect of
/// denying the event (`HookDenial`), whether the CLI supports `decision` in the response, and the
/// timeout in seconds. Most have 60 s; the CLI waits 30 s for a prompt and 10 s for a part of a text.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_hook_event {
    ($then:ident) => {
        $then! {
            /// Called before a tool runs. Observed with CLI 2.1.326.
            PreToolUse(PreToolUseInput -> PreToolUseOutput) = "PreToolUse": Deny, true, 60;
            /// Called after a tool has run. Observed with CLI 2.1.326.
            PostToolUse(PostToolUseInput -> PostToolUseOutput) = "PostToolUse": End, true, 60;
            /// Called after a tool has failed. Observed with CLI 2.1.326.
            PostToolUseFailure(PostToolUseFailureInput -> PostToolUseFailureOutput) = "PostToolUseFailure": Impossible, true, 60;
            /// Called after all tools of one answer have run. Observed with CLI 2.1.326.
            PostToolBatch(PostToolBatchInput -> PostToolBatchOutput) = "PostToolBatch": End, true, 60;
            /// Called before a permission prompt is shown. Observed with CLI 2.1.326.
            ///
            /// The hook runs concurrently with the permission callback, and the first response counts: an
            /// allowing callback may be faster than a denying hook. Use `PreToolUse` for a hook that must be
            /// able to deny.
            PermissionRequest(PermissionRequestInput -> PermissionRequestOutput) = "PermissionRequest": Deny, false, 60;
            /// Called after the classifier of the mode `auto` has denied a tool call.
            /// Observed with CLI 2.1.326.
            PermissionDenied(PermissionDeniedInput -> PermissionDeniedOutput) = "PermissionDenied": Impossible, false, 60;
            /// Called when a prompt is submitted. Observed with CLI 2.1.326.
            UserPromptSubmit(UserPromptSubmitInput -> UserPromptSubmitOutput) = "UserPromptSubmit": Block, true, 25;
            /// Called when a command is expanded into a prompt. Observed with CLI 2.1.326.
            UserPromptExpansion(UserPromptExpansionInput -> UserPromptExpansionOutput) = "UserPromptExpansion": Block, true, 60;
            /// Called before the model ends the turn. Observed with CLI 2.1.326.
            Stop(StopInput -> StopOutput) = "Stop": End, true, 60;
            /// Called after the turn has ended with an error. Observed with CLI 2.1.326.
            StopFailure(StopFailureInput) = "StopFailure": Impossible, false, 60;
            /// Called when there is a notification for the user. Observed with CLI 2.1.326.
            Notification(NotificationInput -> NotificationOutput) = "Notification": Impossible, false, 60;
            /// Called before a part of an answer is displayed. Observed with CLI 2.1.326.
            MessageDisplay(MessageDisplayInput -> MessageDisplayOutput) = "MessageDisplay": Hide, false, 8;
            /// Called when an MCP server sends an elicitation. Observed with CLI 2.1.326.
            Elicitation(ElicitationInput -> ElicitationOutput) = "Elicitation": Decline, false, 60;
            /// Called after an elicitation was completed. Observed with CLI 2.1.326.
            ElicitationResult(ElicitationResultInput -> ElicitationResultOutput) = "ElicitationResult": Decline, false, 60;
            /// Called when a session starts. CLI 2.1.326 calls it when a conversation is cleared or
            /// compacted, not at the start of the process.
            SessionStart(SessionStartInput -> SessionStartOutput) = "SessionStart": Impossible, false, 60;
            /// Called when a session ends. CLI 2.1.326 calls it when a conversation is cleared, not at the end
            /// of the process.
            SessionEnd(SessionEndInput) = "SessionEnd": Impossible, false, 60;
            /// Called when the CLI runs its setup. Not observed with CLI 2.1.326.
            Setup(SetupInput -> SetupOutput) = "Setup": Impossible, false, 60;
            /// Called before the conversation is compacted. Observed with CLI 2.1.326.
            PreCompact(PreCompactInput) = "PreCompact": Block, true, 60;
            /// Called after the conversation was compacted. Observed with CLI 2.1.326.
            PostCompact(PostCompactInput) = "PostCompact": Impossible, false, 60;
            /// Called before the model changes. Observed with CLI 2.1.326.
            PreModelSwitch(PreModelSwitchInput -> PreModelSwitchOutput) = "PreModelSwitch": Deny, false, 60;
            /// Called after the model has changed. Observed with CLI 2.1.326.
            PostModelSwitch(PostModelSwitchInput -> PostModelSwitchOutput) = "PostModelSwitch": Impossible, false, 60;
            /// Called when a subagent starts. Observed with CLI 2.1.326.
            SubagentStart(SubagentStartInput -> SubagentStartOutput) = "SubagentStart": Impossible, false, 60;
            /// Called before a subagent ends. Observed with CLI 2.1.326.
            SubagentStop(SubagentStopInput -> SubagentStopOutput) = "SubagentStop": End, true, 60;
            /// Called when a task is created. Observed with CLI 2.1.326.
            TaskCreated(TaskCreatedInput) = "TaskCreated": Impossible, false, 60;
            /// Called when a task is completed. Observed with CLI 2.1.326.
            TaskCompleted(TaskCompletedInput) = "TaskCompleted": Impossible, false, 60;
            /// Called when a teammate becomes idle. Not observed with CLI 2.1.326.
            TeammateIdle(TeammateIdleInput) = "TeammateIdle": End, false, 60;
            /// Called after a settings file has changed. Observed with CLI 2.1.326.
            ConfigChange(ConfigChangeInput) = "ConfigChange": Block, true, 60;
            /// Called after an instruction file was loaded. CLI 2.1.326 calls it for files below the working
            /// directory, not for the one at its top, which is loaded before.
            InstructionsLoaded(InstructionsLoadedInput) = "InstructionsLoaded": Impossible, false, 60;
            /// Called after the working directory has changed. Not observed with CLI 2.1.326.
            CwdChanged(CwdChangedInput -> CwdChangedOutput) = "CwdChanged": Impossible, false, 60;
            /// Called after a watched file has changed; `watch_paths` in an output selects the files. Observed with CLI 2.1.326.
            FileChanged(FileChangedInput -> FileChangedOutput) = "FileChanged": Impossible, false, 60;
            /// Called after a directory was added to the session. Observed with CLI 2.1.326.
            DirectoryAdded(DirectoryAddedInput) = "DirectoryAdded": Impossible, false, 60;
            /// Called to create a worktree; the hook creates it and returns its path. Observed with CLI 2.1.326.
            WorktreeCreate(WorktreeCreateInput -> WorktreeCreateOutput) = "WorktreeCreate": Block, false, 60;
            /// Called before a worktree is removed. Observed with CLI 2.1.326.
            WorktreeRemove(WorktreeRemoveInput) = "WorktreeRemove": Impossible, false, 60;
        }
    };
}
