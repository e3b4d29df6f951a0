//! The events that have types of their own. A new one is a line of the table.

use std::time::Duration;

use claude_wire::control::{self, HookInput};

use super::{
    Asked, DISPLAY_LIMIT, HookAnswer, HookEvent, HookPoint, Matching, PROMPT_LIMIT, Place,
    USUAL_LIMIT, answer, sealed,
};
use crate::callback::BoxError;

/// Declares events: the name, what a hook is told, what it can answer, how long it may take.
macro_rules! hook_events {
    ($(
        $(#[$meta:meta])*
        $event:ident($input:ident) -> $answer:ident, $limit:ident;
    )+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        #[expect(clippy::exhaustive_structs, reason = "a name that people write as a value")]
        pub struct $event;

        impl $event {
            /// Asks the hook only about what fits this pattern.
            pub fn matching(pattern: impl Into<String>) -> Matching<Self> {
                Self.point().matching(pattern)
            }

            /// How long the hook may take.
            pub fn timeout(self, limit: Duration) -> Matching<Self> {
                self.point().timeout(limit)
            }

            /// Blocks when the hook fails.
            pub fn fail_closed(self) -> Matching<Self> {
                self.point().fail_closed()
            }

            fn point(self) -> Matching<Self> {
                Matching::new(Self::NAME, Self::DEFAULT_LIMIT)
            }
        }

        impl sealed::Event for $event {}

        impl HookEvent for $event {
            const NAME: &'static str = stringify!($event);
            const DEFAULT_LIMIT: Duration = $limit;
            type Input = control::$input;
            type Output = answer::$answer;

            fn read(asked: Asked) -> Result<control::$input, String> {
                match asked.input {
                    HookInput::$event(input) => Ok(*input),
                    other => Err(mismatch(Self::NAME, &other)),
                }
            }
        }

        impl sealed::Point for $event {}

        impl HookPoint for $event {
            type Event = Self;

            fn place(self) -> Place {
                self.point().place()
            }
        }

        impl HookAnswer<$event> for answer::$answer {
            fn into_output(self) -> Result<answer::$answer, BoxError> {
                Ok(self)
            }
        }

    )+

        /// The names of the events that have types, and their limits.
        #[cfg(test)]
        pub(crate) const TYPED: &[(&str, Duration)] =
            &[$( ($event::NAME, $event::DEFAULT_LIMIT) ),+];
    };
}

hook_events! {
    /// A tool is about to run. CLI 2.1.325 asks callbacks about it.
    PreToolUse(PreToolUseInput) -> PreToolUseAnswer, USUAL_LIMIT;

    /// A tool ran. CLI 2.1.325 asks callbacks about it.
    PostToolUse(PostToolUseInput) -> PostToolUseAnswer, USUAL_LIMIT;

    /// A tool failed. CLI 2.1.325 asks callbacks about it.
    PostToolUseFailure(PostToolUseFailureInput) -> PostToolUseFailureAnswer, USUAL_LIMIT;

    /// All tools of one answer ran. CLI 2.1.325 asks callbacks about it.
    PostToolBatch(PostToolBatchInput) -> PostToolBatchAnswer, USUAL_LIMIT;

    /// A permission is about to be asked for. CLI 2.1.325 asks callbacks about it.
    ///
    /// It is asked *beside* the permission callback, and the first answer wins: where both are
    /// registered, an allowing callback may be faster than a denying hook. A guard belongs on
    /// [`PreToolUse`].
    PermissionRequest(PermissionRequestInput) -> PermissionRequestAnswer, USUAL_LIMIT;

    /// A tool was not allowed to run, by the model that decides in the mode `auto`.
    /// CLI 2.1.325 asks callbacks about it.
    PermissionDenied(PermissionDeniedInput) -> PermissionDeniedAnswer, USUAL_LIMIT;

    /// A prompt came in. CLI 2.1.325 asks callbacks about it.
    UserPromptSubmit(UserPromptSubmitInput) -> UserPromptSubmitAnswer, PROMPT_LIMIT;

    /// A command became a prompt. CLI 2.1.325 asks callbacks about it.
    UserPromptExpansion(UserPromptExpansionInput) -> UserPromptExpansionAnswer, USUAL_LIMIT;

    /// The model is done. CLI 2.1.325 asks callbacks about it.
    Stop(StopInput) -> StopAnswer, USUAL_LIMIT;

    /// The turn ended with an error. CLI 2.1.325 asks callbacks about it.
    StopFailure(StopFailureInput) -> StopFailureAnswer, USUAL_LIMIT;

    /// There is something to show to the user. CLI 2.1.325 asks callbacks about it.
    Notification(NotificationInput) -> NotificationAnswer, USUAL_LIMIT;

    /// A piece of an answer is about to be shown. CLI 2.1.325 asks callbacks about it.
    MessageDisplay(MessageDisplayInput) -> MessageDisplayAnswer, DISPLAY_LIMIT;

    /// An MCP server has a question for the user. CLI 2.1.325 asks callbacks about it.
    Elicitation(ElicitationInput) -> ElicitationAnswer, USUAL_LIMIT;

    /// The question of an MCP server was answered. CLI 2.1.325 asks callbacks about it.
    ElicitationResult(ElicitationResultInput) -> ElicitationResultAnswer, USUAL_LIMIT;

    /// A session begins. CLI 2.1.325 asks callbacks about it when a conversation is cleared or made
    /// smaller, not at the start of the process.
    SessionStart(SessionStartInput) -> SessionStartAnswer, USUAL_LIMIT;

    /// A session ends. CLI 2.1.325 asks callbacks about it when a conversation is cleared, not at the
    /// end of the process.
    SessionEnd(SessionEndInput) -> SessionEndAnswer, USUAL_LIMIT;

    /// The CLI sets itself up. CLI 2.1.325 was not seen to ask callbacks about it.
    Setup(SetupInput) -> SetupAnswer, USUAL_LIMIT;

    /// The context is about to be made smaller. CLI 2.1.325 asks callbacks about it.
    PreCompact(PreCompactInput) -> PreCompactAnswer, USUAL_LIMIT;

    /// The context was made smaller. CLI 2.1.325 asks callbacks about it.
    PostCompact(PostCompactInput) -> PostCompactAnswer, USUAL_LIMIT;

    /// The model is about to change. CLI 2.1.325 asks callbacks about it.
    PreModelSwitch(PreModelSwitchInput) -> PreModelSwitchAnswer, USUAL_LIMIT;

    /// The model changed. CLI 2.1.325 asks callbacks about it.
    PostModelSwitch(PostModelSwitchInput) -> PostModelSwitchAnswer, USUAL_LIMIT;

    /// A subagent begins. CLI 2.1.325 asks callbacks about it.
    SubagentStart(SubagentStartInput) -> SubagentStartAnswer, USUAL_LIMIT;

    /// A subagent is done. CLI 2.1.325 asks callbacks about it.
    SubagentStop(SubagentStopInput) -> SubagentStopAnswer, USUAL_LIMIT;

    /// A task was put on the list. CLI 2.1.325 asks callbacks about it.
    TaskCreated(TaskCreatedInput) -> TaskCreatedAnswer, USUAL_LIMIT;

    /// A task of the list is done. CLI 2.1.325 asks callbacks about it.
    TaskCompleted(TaskCompletedInput) -> TaskCompletedAnswer, USUAL_LIMIT;

    /// A teammate has nothing to do. CLI 2.1.325 was not seen to ask callbacks about it.
    TeammateIdle(TeammateIdleInput) -> TeammateIdleAnswer, USUAL_LIMIT;

    /// A settings file changed. CLI 2.1.325 asks callbacks about it.
    ConfigChange(ConfigChangeInput) -> ConfigChangeAnswer, USUAL_LIMIT;

    /// A file of instructions was read. CLI 2.1.325 asks callbacks about those below the working
    /// directory, not about the one at its top, which is read before.
    InstructionsLoaded(InstructionsLoadedInput) -> InstructionsLoadedAnswer, USUAL_LIMIT;

    /// The working directory changed. CLI 2.1.325 was not seen to ask callbacks about it.
    CwdChanged(CwdChangedInput) -> CwdChangedAnswer, USUAL_LIMIT;

    /// A watched file changed; `watch_paths` of an answer says which are. CLI 2.1.325 asks callbacks about it.
    FileChanged(FileChangedInput) -> FileChangedAnswer, USUAL_LIMIT;

    /// A directory became part of the session. CLI 2.1.325 asks callbacks about it.
    DirectoryAdded(DirectoryAddedInput) -> DirectoryAddedAnswer, USUAL_LIMIT;

    /// A worktree is to be made; the hook makes it and says where. CLI 2.1.325 asks callbacks about it.
    WorktreeCreate(WorktreeCreateInput) -> WorktreeCreateAnswer, USUAL_LIMIT;

    /// A worktree is to be removed. CLI 2.1.325 asks callbacks about it.
    WorktreeRemove(WorktreeRemoveInput) -> WorktreeRemoveAnswer, USUAL_LIMIT;
}

fn mismatch(expected: &str, input: &HookInput) -> String {
    match input {
        HookInput::Undecodable(odd) => format!("the input cannot be made out: {}", odd.reason),
        other => {
            let came = other.kind().unwrap_or_default();
            format!("the hook is for {expected}, and the CLI asked it about {came:?}")
        }
    }
}
