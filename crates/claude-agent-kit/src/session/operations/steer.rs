//! Steering: permission mode, model, queued messages, background tasks.

use claude_wire::control::{
    CancelAsyncMessage, CancelAsyncMessageResponse, PermissionMode, SetModel, SetModelResponse,
    SetPermissionMode, SetPermissionModeResponse, StopTask,
};
use claude_wire::id::{MessageId, TaskId};

operations! { Session:
    /// Changes the permission mode.
    fn set_permission_mode(mode: impl Into<PermissionMode>) -> SetPermissionModeResponse {
        SetPermissionMode::new(mode)
    }

    /// Changes the model, from the next request on. `session.request(SetModel::default())` returns
    /// to the default model.
    fn set_model(model: impl Into<String>) -> SetModelResponse {
        let mut change = SetModel::default();
        change.model = Some(model.into()).into();
        change
    }

    /// Withdraws a message that waits for its turn. Returns whether that was still possible.
    fn cancel_message(message: impl Into<MessageId>) -> CancelAsyncMessageResponse {
        CancelAsyncMessage::new(message)
    }

    /// Stops a background task. Succeeds as well if the task does not exist.
    fn stop_task(task: impl Into<TaskId>) { StopTask::new(task) }
}
