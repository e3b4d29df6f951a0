//! Every published hook event, once: its types, how it is refused and how long a callback may take.

/// Calls a macro with the events.
///
/// A row: the input (and the output that only this event has), the name on the wire, what refusing the
/// event achieves (`HookRefusal`), whether the CLI obeys `decision` in a response to it, and how many
/// seconds a callback has. Most have 60; the CLI holds a prompt for 30 s and a piece of text for 10 s.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_hook_event {
    ($then:ident) => {
        $then! {
            /// A tool is about to run. CLI 2.1.325 asks callbacks about it.
            PreToolUse(PreToolUseInput -> PreToolUseOutput) = "PreToolUse": Deny, true, 60;
            /// A tool ran. CLI 2.1.325 asks callbacks about it.
            PostToolUse(PostToolUseInput -> PostToolUseOutput) = "PostToolUse": End, true, 60;
            /// A tool failed. CLI 2.1.325 asks callbacks about it.
            PostToolUseFailure(PostToolUseFailureInput -> PostToolUseFailureOutput) = "PostToolUseFailure": Impossible, true, 60;
            /// All tools of one answer ran. CLI 2.1.325 asks callbacks about it.
            PostToolBatch(PostToolBatchInput -> PostToolBatchOutput) = "PostToolBatch": End, true, 60;
            /// A permission is about to be asked for. CLI 2.1.325 asks callbacks about it.
            ///
            /// It is asked *beside* the permission callback, and the first answer wins: where both are
            /// registered, an allowing callback may be faster than a denying hook. A guard belongs on
            /// `PreToolUse`.
            PermissionRequest(PermissionRequestInput -> PermissionRequestOutput) = "PermissionRequest": Deny, false, 60;
            /// A tool was not allowed to run, by the model that decides in the mode `auto`.
            /// CLI 2.1.325 asks callbacks about it.
            PermissionDenied(PermissionDeniedInput -> PermissionDeniedOutput) = "PermissionDenied": Impossible, false, 60;
            /// A prompt came in. CLI 2.1.325 asks callbacks about it.
            UserPromptSubmit(UserPromptSubmitInput -> UserPromptSubmitOutput) = "UserPromptSubmit": Block, true, 25;
            /// A command became a prompt. CLI 2.1.325 asks callbacks about it.
            UserPromptExpansion(UserPromptExpansionInput -> UserPromptExpansionOutput) = "UserPromptExpansion": Block, true, 60;
            /// The model is done. CLI 2.1.325 asks callbacks about it.
            Stop(StopInput -> StopOutput) = "Stop": End, true, 60;
            /// The turn ended with an error. CLI 2.1.325 asks callbacks about it.
            StopFailure(StopFailureInput) = "StopFailure": Impossible, false, 60;
            /// There is something to show to the user. CLI 2.1.325 asks callbacks about it.
            Notification(NotificationInput -> NotificationOutput) = "Notification": Impossible, false, 60;
            /// A piece of an answer is about to be shown. CLI 2.1.325 asks callbacks about it.
            MessageDisplay(MessageDisplayInput -> MessageDisplayOutput) = "MessageDisplay": Hide, false, 8;
            /// An MCP server has a question for the user. CLI 2.1.325 asks callbacks about it.
            Elicitation(ElicitationInput -> ElicitationOutput) = "Elicitation": Decline, false, 60;
            /// The question of an MCP server was answered. CLI 2.1.325 asks callbacks about it.
            ElicitationResult(ElicitationResultInput -> ElicitationResultOutput) = "ElicitationResult": Decline, false, 60;
            /// A session begins. CLI 2.1.325 asks callbacks about it when a conversation is cleared or made
            /// smaller, not at the start of the process.
            SessionStart(SessionStartInput -> SessionStartOutput) = "SessionStart": Impossible, false, 60;
            /// A session ends. CLI 2.1.325 asks callbacks about it when a conversation is cleared, not at the
            /// end of the process.
            SessionEnd(SessionEndInput) = "SessionEnd": Impossible, false, 60;
            /// The CLI sets itself up. CLI 2.1.325 was not seen to ask callbacks about it.
            Setup(SetupInput -> SetupOutput) = "Setup": Impossible, false, 60;
            /// The context is about to be made smaller. CLI 2.1.325 asks callbacks about it.
            PreCompact(PreCompactInput) = "PreCompact": Block, true, 60;
            /// The context was made smaller. CLI 2.1.325 asks callbacks about it.
            PostCompact(PostCompactInput) = "PostCompact": Impossible, false, 60;
            /// The model is about to change. CLI 2.1.325 asks callbacks about it.
            PreModelSwitch(PreModelSwitchInput -> PreModelSwitchOutput) = "PreModelSwitch": Deny, false, 60;
            /// The model changed. CLI 2.1.325 asks callbacks about it.
            PostModelSwitch(PostModelSwitchInput -> PostModelSwitchOutput) = "PostModelSwitch": Impossible, false, 60;
            /// A subagent begins. CLI 2.1.325 asks callbacks about it.
            SubagentStart(SubagentStartInput -> SubagentStartOutput) = "SubagentStart": Impossible, false, 60;
            /// A subagent is done. CLI 2.1.325 asks callbacks about it.
            SubagentStop(SubagentStopInput -> SubagentStopOutput) = "SubagentStop": End, true, 60;
            /// A task was put on the list. CLI 2.1.325 asks callbacks about it.
            TaskCreated(TaskCreatedInput) = "TaskCreated": Impossible, false, 60;
            /// A task of the list is done. CLI 2.1.325 asks callbacks about it.
            TaskCompleted(TaskCompletedInput) = "TaskCompleted": Impossible, false, 60;
            /// A teammate has nothing to do. CLI 2.1.325 was not seen to ask callbacks about it.
            TeammateIdle(TeammateIdleInput) = "TeammateIdle": End, false, 60;
            /// A settings file changed. CLI 2.1.325 asks callbacks about it.
            ConfigChange(ConfigChangeInput) = "ConfigChange": Block, true, 60;
            /// A file of instructions was read. CLI 2.1.325 asks callbacks about those below the working
            /// directory, not about the one at its top, which is read before.
            InstructionsLoaded(InstructionsLoadedInput) = "InstructionsLoaded": Impossible, false, 60;
            /// The working directory changed. CLI 2.1.325 was not seen to ask callbacks about it.
            CwdChanged(CwdChangedInput -> CwdChangedOutput) = "CwdChanged": Impossible, false, 60;
            /// A watched file changed; `watch_paths` of an answer says which are. CLI 2.1.325 asks callbacks about it.
            FileChanged(FileChangedInput -> FileChangedOutput) = "FileChanged": Impossible, false, 60;
            /// A directory became part of the session. CLI 2.1.325 asks callbacks about it.
            DirectoryAdded(DirectoryAddedInput) = "DirectoryAdded": Impossible, false, 60;
            /// A worktree is to be made; the hook makes it and says where. CLI 2.1.325 asks callbacks about it.
            WorktreeCreate(WorktreeCreateInput -> WorktreeCreateOutput) = "WorktreeCreate": Block, false, 60;
            /// A worktree is to be removed. CLI 2.1.325 asks callbacks about it.
            WorktreeRemove(WorktreeRemoveInput) = "WorktreeRemove": Impossible, false, 60;
        }
    };
}
