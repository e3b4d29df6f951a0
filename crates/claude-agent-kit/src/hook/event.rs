//! The events that have types of their own. A new one is a line of the table.

use std::time::Duration;

use claude_wire::control::{
    HookInput, NotificationInput, PermissionRequestInput, PostToolUseFailureInput,
    PostToolUseInput, PreCompactInput, PreToolUseInput, StopInput, SubagentStartInput,
    SubagentStopInput, UserPromptSubmitInput,
};

use super::answer::{
    NotificationAnswer, PermissionRequestAnswer, PostToolUseAnswer, PostToolUseFailureAnswer,
    PreCompactAnswer, PreToolUseAnswer, StopAnswer, SubagentStartAnswer, SubagentStopAnswer,
    UserPromptSubmitAnswer,
};
use super::{Asked, HookAnswer, HookEvent, HookPoint, Matching, Place, sealed};
use super::{PROMPT_LIMIT, USUAL_LIMIT};
use crate::callback::BoxError;

/// Declares events: the name, what a hook is told, what it can answer, how long it may take.
macro_rules! hook_events {
    ($(
        $(#[$meta:meta])*
        $event:ident($input:ty) -> $answer:ty, $limit:ident;
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
            type Input = $input;
            type Output = $answer;

            fn read(asked: Asked) -> Result<$input, String> {
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

        impl HookAnswer<$event> for $answer {
            fn into_output(self) -> Result<$answer, BoxError> {
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

    /// A permission is about to be asked for. CLI 2.1.325 asks callbacks about it.
    ///
    /// It is asked *beside* the permission callback, and the first answer wins: where both are
    /// registered, an allowing callback may be faster than a denying hook. A guard belongs on
    /// [`PreToolUse`].
    PermissionRequest(PermissionRequestInput) -> PermissionRequestAnswer, USUAL_LIMIT;

    /// A prompt came in. CLI 2.1.325 asks callbacks about it.
    UserPromptSubmit(UserPromptSubmitInput) -> UserPromptSubmitAnswer, PROMPT_LIMIT;

    /// The model is done. CLI 2.1.325 asks callbacks about it.
    Stop(StopInput) -> StopAnswer, USUAL_LIMIT;

    /// A subagent begins. CLI 2.1.325 asks callbacks about it.
    SubagentStart(SubagentStartInput) -> SubagentStartAnswer, USUAL_LIMIT;

    /// A subagent is done. CLI 2.1.325 asks callbacks about it.
    SubagentStop(SubagentStopInput) -> SubagentStopAnswer, USUAL_LIMIT;

    /// The context is about to be made smaller. CLI 2.1.325 asks callbacks about it.
    PreCompact(PreCompactInput) -> PreCompactAnswer, USUAL_LIMIT;

    /// There is something to show to the user. CLI 2.1.325 asks callbacks about it.
    Notification(NotificationInput) -> NotificationAnswer, USUAL_LIMIT;
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
