//! Prompts, answers and what is shown.

use super::{BackgroundTaskSummary, HookElicitation, SessionCronSummary};
use crate::json::{Json, List, Number};

hook_input! {
    /// A prompt came in.
    UserPromptSubmitInput = "UserPromptSubmit" {
        /// The prompt.
        prompt: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// The session's title.
        session_title: Option<String>,
    }
}

hook_output! {
    /// For a prompt.
    UserPromptSubmitOutput = "UserPromptSubmit" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// The session's title.
        session_title: Option<String> as "sessionTitle",
        /// Whether the prompt itself is left out.
        suppress_original_prompt: Option<bool> as "suppressOriginalPrompt",
    }
}

hook_input! {
    /// A command became a prompt.
    UserPromptExpansionInput = "UserPromptExpansion" {
        /// `slash_command` or `mcp_prompt`.
        expansion_type: Option<String>,
        /// The command.
        command_name: Option<String>,
        /// Its arguments.
        command_args: Option<String>,
        /// Where the command comes from.
        command_source: Option<String>,
        /// What the user wrote.
        prompt: Option<String>,
    }
}

hook_output! {
    /// For a command that became a prompt.
    UserPromptExpansionOutput = "UserPromptExpansion" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// Whether what the user wrote is left out.
        suppress_original_prompt: Option<bool> as "suppressOriginalPrompt",
    }
}

hook_input! {
    /// The model is done.
    StopInput = "Stop" {
        /// Whether it goes on only because of a Stop hook.
        stop_hook_active: Option<bool>,
        /// What the model said last.
        last_assistant_message: Option<String>,
        /// Background tasks that still run.
        background_tasks: List<BackgroundTaskSummary>,
        /// Timers that are set.
        session_crons: List<SessionCronSummary>,
    }
}

hook_output! {
    /// For the end of a turn.
    StopOutput = "Stop" {
        /// What the model is told besides.
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
        /// What the model said last.
        last_assistant_message: Option<String>,
    }
}

hook_input! {
    /// There is something to show to the user.
    NotificationInput = "Notification" {
        /// The text.
        message: Option<String>,
        /// The title.
        title: Option<String>,
        /// What it is about.
        notification_type: Option<String>,
    }
}

hook_output! {
    /// For something to show.
    NotificationOutput = "Notification" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// A piece of an answer is about to be shown.
    MessageDisplayInput = "MessageDisplay" {
        /// The turn.
        turn_id: Option<String>,
        /// The answer.
        message_id: Option<String>,
        /// The number of the piece.
        index: Option<Number>,
        /// Whether it is the last piece.
        is_final: Option<bool> as "final",
        /// The piece.
        delta: Option<String>,
    }
}

hook_output! {
    /// For a piece of an answer that is about to be shown.
    MessageDisplayOutput = "MessageDisplay" {
        /// What is shown in its place.
        display_content: Option<String> as "displayContent",
    }
}

hook_input! {
    /// An MCP server has a question for the user.
    ElicitationInput = "Elicitation" {
        /// The server.
        mcp_server_name: Option<String>,
        /// The question.
        message: Option<String>,
        /// `form` or `url`.
        mode: Option<String>,
        /// Where the user should go.
        url: Option<String>,
        /// The question's id.
        elicitation_id: Option<String>,
        /// The schema of the answer.
        requested_schema: Option<Json>,
    }
}

hook_output! {
    /// For the question of an MCP server.
    ElicitationOutput = "Elicitation" {
        /// What the server is told.
        action: Option<HookElicitation>,
        /// The answer, when it is accepted.
        content: Option<Json>,
    }
}

hook_input! {
    /// The question of an MCP server was answered.
    ElicitationResultInput = "ElicitationResult" {
        /// The server.
        mcp_server_name: Option<String>,
        /// The question's id.
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
    /// For the answer to a question of an MCP server.
    ElicitationResultOutput = "ElicitationResult" {
        /// What the server is told in its place.
        action: Option<HookElicitation>,
        /// The answer in its place.
        content: Option<Json>,
    }
}
