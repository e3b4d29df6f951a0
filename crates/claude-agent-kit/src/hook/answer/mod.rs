//! What hooks answer, one type per event: what does not fit the event cannot be said.

use std::time::Duration;

use claude_wire::control::{HookOutput as WireOutput, HookSpecificOutput};
use claude_wire::{Json, Number};

use super::Encoded;

/// Declares what a hook for an event is told and answers: the part that only this event has, what it shares with some others
/// (`[block]`, `[watch_paths]`), and its own fields.
macro_rules! answer {
    (
        $(#[$meta:meta])*
        $event:ident($input:ident) => $name:ident($specific:ty) $([$common:ident])* {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[must_use]
        pub struct $name($crate::hook::answer::Body<$specific>);

        impl $name {
            /// An answer that lets everything go on.
            pub fn new() -> Self {
                Self::default()
            }

            $( answer!(@$common); )*

            /// Lets everything go on at once, and says that the host is busy with it for so long.
            /// Nothing waits for it. Whatever else the answer says wins over this.
            pub fn run_async(limit: ::std::time::Duration) -> Self {
                let mut answer = Self::default();
                answer.0.run_async = Some(limit);
                answer
            }

            $(
                $(#[$field_meta])*
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.0.specific.$field = Some(value.into());
                    self
                }
            )*

            /// Shows this to the user.
            pub fn system_message(mut self, message: impl Into<String>) -> Self {
                self.0.common.system_message = Some(message.into());
                self
            }

            /// Writes this to the terminal, where there is one: a notification, a title.
            pub fn terminal_sequence(mut self, sequence: impl Into<String>) -> Self {
                self.0.common.terminal_sequence = Some(sequence.into());
                self
            }

            /// Keeps the output out of the transcript.
            pub fn suppress_output(mut self) -> Self {
                self.0.common.suppress_output = Some(true);
                self
            }

            /// Ends the turn, for this reason.
            pub fn stop(mut self, reason: impl Into<String>) -> Self {
                self.0.common.go_on = Some(false);
                self.0.common.stop_reason = Some(reason.into());
                self
            }
        }

        impl $crate::hook::sealed::Event for $crate::hook::$event {}

        impl $crate::hook::HookEvent for $crate::hook::$event {
            const NAME: &'static str = stringify!($event);
            const DEFAULT_LIMIT: ::std::time::Duration = Self::LIMIT;
            type Input = $crate::hook::$input;
            type Output = $name;

            fn read(asked: $crate::hook::Asked) -> Result<Self::Input, String> {
                match asked.input {
                    ::claude_wire::control::HookInput::$event(input) => Ok(*input),
                    other => Err($crate::hook::event::mismatch(Self::NAME, &other)),
                }
            }
        }

        impl $crate::hook::sealed::Answer for $name {}

        impl $crate::hook::HookAnswer<$crate::hook::$event> for $name {
            fn into_output(self) -> Result<$name, $crate::callback::BoxError> {
                Ok(self)
            }
        }

        impl $crate::hook::HookOutput for $name {
            fn encode(self, _event: &str) -> Result<$crate::hook::Encoded, String> {
                self.0.encode(stringify!($event))
            }
        }
    };
    (@block) => {
        /// Blocks what happened; the model is told this reason.
        pub fn block(reason: impl Into<String>) -> Self {
            let mut answer = Self::default();
            answer.0.common.decision = Some(::claude_wire::control::HookDecision::Block);
            answer.0.common.reason = Some(reason.into());
            answer
        }
    };
    (@watch_paths) => {
        /// Watches these files, in place of those that were watched before: each change is told
        /// as [`FileChanged`](crate::hook::FileChanged).
        pub fn watch_paths(mut self, paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.0.specific.watch_paths = paths.into_iter().map(Into::into).collect();
            self
        }
    };
}

/// Makes parts of answers go into their place on the wire.
macro_rules! specific {
    ($($name:ty),+ $(,)?) => {$(
        impl $crate::hook::answer::Specific for $name {
            fn into_wire(self) -> Option<::claude_wire::control::HookSpecificOutput> {
                Some(self.into())
            }
        }
    )+};
}

mod file;
mod prompt;
mod session;
mod task;
mod tool;

pub use file::*;
pub use prompt::*;
pub use session::*;
pub use task::*;
pub use tool::*;

/// An answer that is being put together.
#[derive(Clone, Debug, Default, PartialEq)]
struct Body<S> {
    common: WireOutput,
    specific: S,
    run_async: Option<Duration>,
}

impl<S: Specific> Body<S> {
    fn encode(self, event: &str) -> Result<Encoded, String> {
        let (mut output, specific) = (self.common, self.specific);
        if specific != S::default() {
            output.specific = specific.into_wire();
        }
        output.deny_if_stopped(event);
        // The CLI looks at nothing else of an asynchronous answer: a denial beside it is lost.
        if let Some(limit) = self.run_async
            && output == WireOutput::default()
        {
            output.is_async = Some(true);
            output.async_timeout = Some(milliseconds(limit));
        }
        // Most hooks have nothing to say, and the CLI waits for that.
        let json = if output == WireOutput::default() {
            Json::from_text("{}")
        } else {
            Json::from_serialize(&output)
        };
        let json = json.map_err(|error| error.to_string())?;
        Ok(Encoded { json, dropped: Vec::new() })
    }
}

pub(super) fn milliseconds(time: Duration) -> Number {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

/// The part of an answer that only one event has.
trait Specific: Default + PartialEq {
    fn into_wire(self) -> Option<HookSpecificOutput>;
}

/// For events that have no such part.
#[derive(Clone, Debug, Default, PartialEq)]
struct Nothing;

impl Specific for Nothing {
    fn into_wire(self) -> Option<HookSpecificOutput> {
        None
    }
}
