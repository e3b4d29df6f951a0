//! What steers the work.

use claude_wire::control::{
    BackgroundTasks, BackgroundTasksAnswer, CancelAsyncMessage, CancelAsyncMessageAnswer,
    GetTaskOutput, PermissionMode, SetHasSubscribers, SetMaxThinkingTokens, SetModel,
    SetModelAnswer, SetPermissionMode, SetPermissionModeAnswer, StopTask, TaskOutput,
};
use claude_wire::id::{MessageId, TaskId, ToolUseId};

operations! {
    /// Changes the permission mode.
    fn set_permission_mode(mode: impl Into<PermissionMode>) -> SetPermissionModeAnswer {
        SetPermissionMode::new(mode)
    }

    /// Changes the model, from the next request on.
    fn set_model(model: impl Into<String>) -> SetModelAnswer {
        let mut change = SetModel::default();
        change.model = Some(model.into()).into();
        change
    }

    /// Returns to the default model, from the next request on.
    fn reset_model() -> SetModelAnswer { SetModel::default() }

    /// Changes how many tokens the model may think; `None` is the default.
    fn set_max_thinking_tokens(tokens: Option<u64>) {
        let mut change = SetMaxThinkingTokens::default();
        change.max_thinking_tokens = tokens.map(Into::into).into();
        change
    }

    /// Changes how many tokens the model may think, and how its thinking is shown: `summarized`,
    /// `omitted` or `highlights`.
    fn set_thinking(tokens: Option<u64>, display: impl Into<String>) {
        let mut change = SetMaxThinkingTokens::default();
        change.max_thinking_tokens = tokens.map(Into::into).into();
        change.thinking_display = Some(display.into());
        change
    }

    /// Withdraws a message that waits for its turn. Returns whether that was still possible.
    fn cancel_message(message: impl Into<MessageId>) -> CancelAsyncMessageAnswer {
        CancelAsyncMessage::new(message)
    }

    /// Stops a background task. One that does not exist is no error.
    fn stop_task(task: impl Into<TaskId>) { StopTask::new(task) }

    /// Moves all running tools and agents to the background, so that the turn continues without
    /// them.
    fn background_tasks() -> BackgroundTasksAnswer { BackgroundTasks::default() }

    /// Moves one running tool call to the background. Returns whether it ran.
    fn background_task(call: impl Into<ToolUseId>) -> BackgroundTasksAnswer {
        let mut request = BackgroundTasks::default();
        request.tool_use_id = Some(call.into());
        request
    }

    /// Returns the end of what a background shell has printed so far.
    fn get_task_output(task: impl Into<TaskId>) -> TaskOutput { GetTaskOutput::new(task) }

    /// Tells the CLI whether anything reads pieces of answers as they come; `None` if that is not
    /// known. Only matters to a CLI that holds them back (`CLAUDE_CODE_STREAM_EVENT_HOLD_MS`).
    fn set_has_subscribers(has_subscribers: Option<bool>) {
        let mut request = SetHasSubscribers::default();
        request.has_subscribers = has_subscribers.into();
        request
    }
}
