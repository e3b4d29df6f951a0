//! The operations on a running session and their responses, one file per subject. This file contains
//! those that control turns and tasks.

/// Declares a control request of the host. Fields that are not optional are required.
macro_rules! request {
    (
        $(#[$meta:meta])*
        $name:ident = $subtype:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["subtype" = $subtype] {
                $( $(#[$field_meta])* $field: $type $(as $wire)?, )*
            }
        }
    };
}

/// Implements the conversion from the most important field of a request.
macro_rules! request_by {
    ($name:ident.$field:ident) => {
        impl $name {
            #[doc = concat!("Creates the request with this `", stringify!($field), "`.")]
            pub fn new($field: impl Into<String>) -> Self {
                Self { $field: $field.into(), ..Self::default() }
            }
        }

        impl From<String> for $name {
            fn from($field: String) -> Self {
                Self::new($field)
            }
        }

        impl From<&str> for $name {
            fn from($field: &str) -> Self {
                Self::new($field)
            }
        }
    };
}

mod context;
mod files;
mod info;
mod mcp;
mod plugins;
mod settings;
mod usage;

pub use context::*;
pub use files::*;
pub use info::*;
pub use mcp::*;
pub use plugins::*;
pub use settings::*;
pub use usage::*;

use crate::control::PermissionMode;
use crate::id::{MessageId, TaskId, ToolUseId};
use crate::json::{Extra, List, Nullable, Number};

wire_struct! {
    /// Interrupts the running turn.
    #[derive(Default)]
    pub struct Interrupt ["subtype" = "interrupt"] {
        /// Whether queued messages are cancelled too.
        cancel_queued: Option<bool>,
    }
}

wire_struct! {
    /// The response to an interrupt.
    #[derive(Default)]
    pub struct InterruptResponse {
        /// The queued messages.
        still_queued: List<MessageId>,
        /// The cancelled messages.
        cancelled: List<MessageId>,
    }
}

wire_struct! {
    /// Changes the permission mode.
    pub struct SetPermissionMode ["subtype" = "set_permission_mode"] {
        /// The new mode.
        mode: PermissionMode,
    }
}

impl SetPermissionMode {
    /// Creates a request for this mode.
    pub fn new(mode: impl Into<PermissionMode>) -> Self {
        Self { mode: mode.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The response to a change of the permission mode.
    #[derive(Default)]
    pub struct SetPermissionModeResponse {
        /// The effective mode.
        mode: Option<PermissionMode>,
    }
}

wire_struct! {
    /// Changes the model.
    #[derive(Default)]
    pub struct SetModel ["subtype" = "set_model"] {
        /// The new model; `null` for the default.
        model: Nullable<String>,
    }
}

wire_struct! {
    /// The response to a change of the model.
    #[derive(Default)]
    pub struct SetModelResponse {
        /// The effective model.
        model: Option<String>,
    }
}

wire_struct! {
    /// Changes the thinking budget.
    #[derive(Default)]
    pub struct SetMaxThinkingTokens ["subtype" = "set_max_thinking_tokens"] {
        /// The maximum number of thinking tokens; `null` for the default.
        max_thinking_tokens: Nullable<Number>,
        /// How thinking is shown: `summarized`, `omitted` or `highlights`.
        thinking_display: Option<String>,
    }
}

wire_struct! {
    /// Stops a background task.
    pub struct StopTask ["subtype" = "stop_task"] {
        /// The task.
        task_id: TaskId,
    }
}

impl StopTask {
    /// Creates a request for this task.
    pub fn new(task: impl Into<TaskId>) -> Self {
        Self { task_id: task.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Cancels a queued message.
    pub struct CancelAsyncMessage ["subtype" = "cancel_async_message"] {
        /// The message.
        message_uuid: MessageId,
    }
}

impl CancelAsyncMessage {
    /// The ID of this message.
    pub fn new(message: impl Into<MessageId>) -> Self {
        Self { message_uuid: message.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The response to the cancellation of a message.
    #[derive(Default)]
    pub struct CancelAsyncMessageResponse {
        /// Whether it was cancelled.
        cancelled: Option<bool>,
    }
}

request! {
    /// Moves running work into the background.
    BackgroundTasks = "background_tasks" {
        /// The tool call; absent for all running ones.
        tool_use_id: Option<ToolUseId>,
    }
}

wire_struct! {
    /// The response to moving work into the background.
    #[derive(Default)]
    pub struct BackgroundTasksResponse {
        /// Whether anything was moved; absent means that it was.
        backgrounded: Option<bool>,
    }
}

wire_struct! {
    /// Returns the output of a background task.
    pub struct GetTaskOutput ["subtype" = "get_task_output"] {
        /// The task.
        task_id: TaskId,
    }
}

impl GetTaskOutput {
    /// Creates a request for this task.
    pub fn new(task: impl Into<TaskId>) -> Self {
        Self { task_id: task.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The output of a background task.
    #[derive(Default)]
    pub struct TaskOutput {
        /// The end of the output.
        output: Option<String>,
        /// The total size of the output.
        total_bytes: Option<Number>,
        /// Whether the output is truncated.
        truncated: Option<bool>,
    }
}

request! {
    /// Reports whether partial answers are displayed.
    SetHasSubscribers = "set_has_subscribers" {
        /// Whether partial answers are displayed; `null` if unknown.
        has_subscribers: Nullable<bool>,
    }
}
