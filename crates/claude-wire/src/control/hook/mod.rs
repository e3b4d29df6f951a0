//! Hooks: the inputs and outputs of hook callbacks, one file per group of events.

/// A struct with the fields that every hook input has.
macro_rules! hook_input {
    (
        $(#[$meta:meta])*
        $name:ident = $event:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["hook_event_name" = $event] {
                $( $(#[$field_meta])* $field: $type $(as $wire)?, )*
                /// The session ID.
                session_id: Option<$crate::id::SessionId>,
                /// The path of the transcript.
                transcript_path: Option<String>,
                /// The working directory.
                cwd: Option<String>,
                /// The ID of the prompt.
                prompt_id: Option<String>,
                /// The permission mode.
                permission_mode: Option<$crate::control::PermissionMode>,
                /// The subagent.
                agent_id: Option<$crate::id::AgentId>,
                /// The kind of subagent.
                agent_type: Option<String>,
                /// The effort level of the model.
                effort: Option<$crate::hook_input::HookEffort>,
            }
        }

        impl $name {
            /// Returns the working directory of the session; empty if the field is absent.
            pub fn directory(&self) -> &::std::path::Path {
                ::std::path::Path::new(self.cwd.as_deref().unwrap_or_default())
            }
        }
    };
}

/// A struct for the output that is specific to one event.
macro_rules! hook_output {
    (
        $(#[$meta:meta])*
        $name:ident = $event:literal { $($fields:tt)* }
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["hookEventName" = $event] { $($fields)* }
        }
    };
}

#[macro_use]
mod list;

mod denial;
mod file;
mod output;
mod prompt;
mod session;
mod task;
mod tool;

pub use denial::HookDenial;
pub use file::*;
pub use output::*;
pub use prompt::*;
pub use session::*;
pub use task::*;
pub use tool::*;

use crate::id::{CallbackId, ToolUseId};
use crate::json::Json;

wire_struct! {
    /// Runs a hook callback.
    pub struct HookCallback ["subtype" = "hook_callback"] {
        /// The callback.
        callback_id: CallbackId,
        /// The input, an object with `hook_event_name`: decode it as the type of the event, or as
        /// [`HookInput`] for any event.
        input: Json,
        /// The ID of the tool call or of the event.
        tool_use_id: Option<ToolUseId>,
    }
}

impl HookCallback {
    /// Returns the event.
    pub fn event(&self) -> Option<String> {
        self.input.get("hook_event_name")?.decode().ok()
    }
}

wire_struct! {
    /// The effort level of the model.
    #[derive(Default)]
    pub struct HookEffort {
        /// `low`, `medium`, `high`, `xhigh` or `max`.
        level: Option<String>,
    }
}

/// Declares the unions over all events.
macro_rules! declare_unions {
    ($(
        $(#[$meta:meta])*
        $event:ident($input:ident $(-> $output:ident)?) = $name:literal:
            $refusal:ident, $decision:literal, $seconds:literal;
    )+) => {
        open_union! {
            /// The input of a hook, by event.
            pub enum HookInput by "hook_event_name" {
                $( $(#[$meta])* $event(Box<$input>) = $name, )+
            }
        }

        open_union! {
            /// The event-specific output of a hook.
            pub enum HookSpecificOutput by "hookEventName" {
                $($(
                    #[doc = concat!("For `", $name, "`.")]
                    $event($output) = $name,
                )?)+
            }
        }

        $($(
            impl From<$output> for HookSpecificOutput {
                fn from(output: $output) -> Self {
                    Self::$event(output)
                }
            }
        )?)+

        impl HookSpecificOutput {
            /// Returns the fields that are specific to the output of this event; empty for an event
            /// without such fields and for an unknown event.
            pub fn fields_of(event: &str) -> &'static [&'static str] {
                match event {
                    $($( $name => $output::FIELDS, )?)+
                    _ => &[],
                }
            }

            /// Returns whether a field of this name belongs to any event.
            pub fn has_field(name: &str) -> bool {
                Self::KNOWN.iter().any(|event| Self::fields_of(event).contains(&name))
            }
        }
    };
}

for_each_hook_event!(declare_unions);
