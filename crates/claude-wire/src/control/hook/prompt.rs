//! Prompts, answers and notifications.

use super::{BackgroundTaskSummary, HookElicitation, SessionCronSummary};
use crate::json::{Json, List, Number};

hook_input! {
    /// A prompt was submitted.
    UserPromptSubmitInput = "UserPromptSubmit" {
        /// The prompt.
        prompt: Option<String>,
        /// The source.
        source: Option<String>,
        /// The session's title.
        session_title: Option<String>,
    }
}

hook_output! {
    /// The output for a prompt.
    UserPromptSubmitOutput = "UserPromptSubmit" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
        /// The session's title.
        session_title: Option<String> as "sessionTitle",
        /// Whether the original prompt is suppressed.
        suppress_original_prompt: Option<bool> as "suppressOriginalPrompt",
    }
}

hook_input! {
    /// A command was expanded into a prompt.
    UserPromptExpansionInput = "UserPromptExpansion" {
        /// `slash_command` or `mcp_prompt`.
        expansion_type: Option<String>,
        /// The command.
        command_name: Option<String>,
        /// Its arguments.
        command_args: Option<String>,
        /// Where the command comes from.
        command_source: Option<String>,
        /// The original input.
        prompt: Option<String>,
    }
}

hook_output! {
    /// The output for an expanded command.
    UserPromptExpansionOutput = "UserPromptExpansion" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
        /// Whether the original input is suppressed.
        suppress_original_prompt: Option<bool> as "suppressOriginalPrompt",
    }
}

hook_input! {
    /// The model is about to end the turn.
    StopInput = "Stop" {
        /// Whether a `Stop` hook has already made the model continue.
        stop_hook_active: Option<bool>,
        /// The last message of the model.
        last_assistant_message: Option<String>,
        /// The running background tasks.
        background_tasks: List<BackgroundTaskSummary>,
        /// The scheduled prompts.
        session_crons: List<SessionCronSummary>,
    }
}

hook_output! {
    /// The output for the end of a turn.
    StopOutput = "Stop" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// The turn ended with an error.
    StopFailureInput = "StopFailure" {
        /// The kind of error.
        error: Option<String>,
        /// The error.
        error_details: Option<String>,
        /// The last message of the model.
        last_assistant_message: Option<String>,
    }
}

hook_input! {
    /// A notification for the user.
    NotificationInput = "Notification" {
        /// The text.
        message: Option<String>,
        /// The title.
        title: Option<String>,
        /// The subject.
        notification_type: Option<String>,
    }
}

hook_output! {
    /// The output for a notification.
    NotificationOutput = "Notification" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// A part of an answer is about to be displayed.
    MessageDisplayInput = "MessageDisplay" {
        /// The turn.
        turn_id: Option<String>,
        /// The answer.
        message_id: Option<String>,
        /// The index of the part.
        index: Option<Number>,
        /// Whether it is the last part.
        is_final: Option<bool> as "final",
        /// The text of the part.
        delta: Option<String>,
    }
}

hook_output! {
    /// The output for a part of an answer.
    MessageDisplayOutput = "MessageDisplay" {
        /// The text to display instead.
        display_content: Option<String> as "displayContent",
    }
}

hook_input! {
    /// An elicitation of an MCP server.
    ElicitationInput = "Elicitation" {
        /// The server.
        mcp_server_name: Option<String>,
        /// The question text.
        message: Option<String>,
        /// `form` or `url`.
        mode: Option<String>,
        /// The URL for the user.
        url: Option<String>,
        /// The elicitation ID.
        elicitation_id: Option<String>,
        /// The JSON schema of the answer.
        requested_schema: Option<Json>,
    }
}

hook_output! {
    /// The output for an elicitation.
    ElicitationOutput = "Elicitation" {
        /// The action.
        action: Option<HookElicitation>,
        /// The content, if accepted.
        content: Option<Json>,
    }
}

hook_input! {
    /// An elicitation was completed.
    ElicitationResultInput = "ElicitationResult" {
        /// The server.
        mcp_server_name: Option<String>,
        /// The elicitation ID.
        elicitation_id: Option<String>,
        /// `form` or `url`.
        mode: Option<String>,
        /// `accept`, `decline` or `cancel`.
        action: Option<String>,
        /// The answer.
        content: Option<Json>,
    }
}

hook_output! {
    /// The output for a completed elicitation.
    ElicitationResultOutput = "ElicitationResult" {
        /// The action that replaces it.
        action: Option<HookElicitation>,
        /// The content that replaces it.
        content: Option<Json>,
    }
}
