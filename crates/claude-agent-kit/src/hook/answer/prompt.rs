//! Prompts, answers and what is shown.

use claude_wire::Json;
use claude_wire::control::{
    ElicitationOutput, ElicitationResultOutput, HookElicitation, MessageDisplayOutput,
    NotificationOutput, StopOutput, UserPromptExpansionOutput, UserPromptSubmitOutput,
};

use super::Nothing;

specific!(
    UserPromptSubmitOutput,
    UserPromptExpansionOutput,
    StopOutput,
    NotificationOutput,
    MessageDisplayOutput,
    ElicitationOutput,
    ElicitationResultOutput,
);

answer! {
    /// What a hook for [`UserPromptSubmit`](crate::hook::UserPromptSubmit) answers. A blocked prompt
    /// does not reach the model.
    UserPromptSubmit(UserPromptSubmitInput) => UserPromptSubmitAnswer(UserPromptSubmitOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
        /// The session's title.
        session_title: String,
        /// Whether the prompt itself is left out.
        suppress_original_prompt: bool,
    }
}

answer! {
    /// What a hook for [`UserPromptExpansion`](crate::hook::UserPromptExpansion) answers. A blocked
    /// command does not reach the model.
    UserPromptExpansion(UserPromptExpansionInput) => UserPromptExpansionAnswer(UserPromptExpansionOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
        /// Whether what the user wrote is left out.
        suppress_original_prompt: bool,
    }
}

answer! {
    /// What a hook for [`Stop`](crate::hook::Stop) answers. `block` makes the model go on, with the
    /// reason as its task; look at the input's `stop_hook_active`, or it goes on for ever.
    Stop(StopInput) => StopAnswer(StopOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`StopFailure`](crate::hook::StopFailure) answers. Nothing can be changed any
    /// more.
    StopFailure(StopFailureInput) => StopFailureAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`Notification`](crate::hook::Notification) answers.
    Notification(NotificationInput) => NotificationAnswer(NotificationOutput) {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`MessageDisplay`](crate::hook::MessageDisplay) answers.
    MessageDisplay(MessageDisplayInput) => MessageDisplayAnswer(MessageDisplayOutput) {
        /// What is shown in place of the piece. The model's answer is not changed by it.
        display_content: String,
    }
}

/// The answers to questions of MCP servers.
macro_rules! elicitation_answer {
    ($name:ident) => {
        impl $name {
            /// The question is answered with this, which should fit its schema.
            pub fn accept(content: impl Into<Json>) -> Self {
                let mut answer = Self::acted(HookElicitation::Accept);
                answer.0.specific.content = Some(content.into());
                answer
            }

            /// The question is answered with a no.
            pub fn decline() -> Self {
                Self::acted(HookElicitation::Decline)
            }

            /// The question is not answered.
            pub fn cancel() -> Self {
                Self::acted(HookElicitation::Cancel)
            }

            fn acted(action: HookElicitation) -> Self {
                let mut answer = Self::default();
                answer.0.specific.action = Some(action);
                answer
            }
        }
    };
}

answer! {
    /// What a hook for [`Elicitation`](crate::hook::Elicitation) answers. Undecided, the host's
    /// callback for questions is asked.
    Elicitation(ElicitationInput) => ElicitationAnswer(ElicitationOutput) {}
}

elicitation_answer!(ElicitationAnswer);

answer! {
    /// What a hook for [`ElicitationResult`](crate::hook::ElicitationResult) answers: another answer
    /// in place of the one that was given.
    ElicitationResult(ElicitationResultInput) => ElicitationResultAnswer(ElicitationResultOutput) {}
}

elicitation_answer!(ElicitationResultAnswer);
