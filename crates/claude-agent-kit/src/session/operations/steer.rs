//! What steers the work.

use claude_wire::control::{
    BackgroundTasks, BackgroundTasksResponse, CancelAsyncMessage, CancelAsyncMessageResponse,
    GetTaskOutput, PermissionMode, SetMaxThinkingTokens, SetModel, SetModelResponse,
    SetPermissionMode, SetPermissionModeResponse, StopTask, TaskOutput,
};
use claude_wire::id::{MessageId, TaskId};

operations! { Session:
    /// Changes the permission mode.
    fn set_permission_mode(mode: impl Into<PermissionMode>) -> SetPermissionModeResponse {
        SetPermissionMode::new(mode)
    }

    /// Changes the model, from the next request on.
    fn set_model(model: impl Into<String>) -> SetModelResponse {
        let mut change = SetModel::default();
        change.model = Some(model.into()).into();
        change
    }

    /// Returns to the default model, from the next request on.
    fn reset_model() -> SetModelResponse { SetModel::default() }

    /// Changes how many tokens the model may think; `None` restores the default.
    fn set_max_thinking_tokens(tokens: impl Into<Option<u64>>) {
        let mut change = SetMaxThinkingTokens::default();
        change.max_thinking_tokens = tokens.into().map(Into::into).into();
        change
    }

    /// Withdraws a message that waits for its turn. Returns whether that was still possible.
    fn cancel_message(message: impl Into<MessageId>) -> CancelAsyncMessageResponse {
        CancelAsyncMessage::new(message)
    }

    /// Moves all running tools and agents to the background, so that the turn continues without
    /// them.
    fn background_tasks() -> BackgroundTasksResponse { BackgroundTasks::default() }

    /// Returns the end of what a background shell has printed so far.
    fn task_output(task: impl Into<TaskId>) -> TaskOutput { GetTaskOutput::new(task) }

    /// Stops a background task. It is not an error if the task does not exist.
    fn stop_task(task: impl Into<TaskId>) { StopTask::new(task) }
}
