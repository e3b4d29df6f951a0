//! What the host asks of a running session, and what it is answered, one file per subject. Here is
//! what steers the work.

/// Declares a request of the host. All its fields can be set; those that are not optional must be.
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

/// Lets a request be given by its most important field.
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
    /// End the turn that runs.
    #[derive(Default)]
    pub struct Interrupt ["subtype" = "interrupt"] {
        /// Whether messages that wait are dropped too.
        cancel_queued: Option<bool>,
    }
}

wire_struct! {
    /// The answer to an interrupt.
    #[derive(Default)]
    pub struct InterruptResponse {
        /// Messages that still wait.
        still_queued: List<MessageId>,
        /// Messages that were dropped.
        cancelled: List<MessageId>,
    }
}

wire_struct! {
    /// Change the permission mode.
    pub struct SetPermissionMode ["subtype" = "set_permission_mode"] {
        /// The new mode.
        mode: PermissionMode,
    }
}

impl SetPermissionMode {
    /// Changes to this mode.
    pub fn new(mode: impl Into<PermissionMode>) -> Self {
        Self { mode: mode.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The answer to a change of the permission mode.
    #[derive(Default)]
    pub struct SetPermissionModeResponse {
        /// The mode that is in force.
        mode: Option<PermissionMode>,
    }
}

wire_struct! {
    /// Change the model.
    #[derive(Default)]
    pub struct SetModel ["subtype" = "set_model"] {
        /// The new model; `null` is the default one.
        model: Nullable<String>,
    }
}

wire_struct! {
    /// The answer to a change of the model.
    #[derive(Default)]
    pub struct SetModelResponse {
        /// The model that is in force.
        model: Option<String>,
    }
}

wire_struct! {
    /// Change how much the model thinks.
    #[derive(Default)]
    pub struct SetMaxThinkingTokens ["subtype" = "set_max_thinking_tokens"] {
        /// The limit; `null` is the default one.
        max_thinking_tokens: Nullable<Number>,
        /// How thinking is shown: `summarized`, `omitted` or `highlights`.
        thinking_display: Option<String>,
    }
}

impl SetMaxThinkingTokens {
    /// Creates a request that sets the budget to this number of tokens.
    pub fn new(tokens: u64) -> Self {
        let tokens = Some(Number::from(tokens));
        Self { max_thinking_tokens: tokens.into(), ..Self::default() }
    }
}

wire_struct! {
    /// End a background task.
    pub struct StopTask ["subtype" = "stop_task"] {
        /// The task.
        task_id: TaskId,
    }
}

impl StopTask {
    /// This task.
    pub fn new(task: impl Into<TaskId>) -> Self {
        Self { task_id: task.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Withdraw a message that waits.
    pub struct CancelAsyncMessage ["subtype" = "cancel_async_message"] {
        /// The message.
        message_uuid: MessageId,
    }
}

impl CancelAsyncMessage {
    /// This message.
    pub fn new(message: impl Into<MessageId>) -> Self {
        Self { message_uuid: message.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Whether a message was withdrawn.
    #[derive(Default)]
    pub struct CancelAsyncMessageResponse {
        /// Whether it was.
        cancelled: Option<bool>,
    }
}

request! {
    /// Let what runs go on in the background.
    BackgroundTasks = "background_tasks" {
        /// The tool call; absent, all that run.
        tool_use_id: Option<ToolUseId>,
    }
}

wire_struct! {
    /// What went into the background.
    #[derive(Default)]
    pub struct BackgroundTasksResponse {
        /// Whether anything did; absent means that it did.
        backgrounded: Option<bool>,
    }
}

wire_struct! {
    /// What did a background task print?
    pub struct GetTaskOutput ["subtype" = "get_task_output"] {
        /// The task.
        task_id: TaskId,
    }
}

impl GetTaskOutput {
    /// This task.
    pub fn new(task: impl Into<TaskId>) -> Self {
        Self { task_id: task.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// What a background task printed.
    #[derive(Default)]
    pub struct TaskOutput {
        /// The end of it.
        output: Option<String>,
        /// How much it printed in all.
        total_bytes: Option<Number>,
        /// Whether only the end is here.
        truncated: Option<bool>,
    }
}

request! {
    /// Say whether anybody looks at pieces of answers as they come.
    SetHasSubscribers = "set_has_subscribers" {
        /// Whether somebody does; `null` if it is not known.
        has_subscribers: Nullable<bool>,
    }
}
