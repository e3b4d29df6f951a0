//! The events that have types of their own, from the list in `claude-wire`.

use std::time::Duration;

use claude_wire::control::HookInput;

use super::{HookPoint, Matching, Place, sealed};

/// Declares the events of the list. What a hook is told and answers is declared with its answer.
macro_rules! declare_events {
    ($(
        $(#[$meta:meta])*
        $event:ident($input:ident $(-> $output:ident)?) = $name:literal:
            $refusal:ident, $decision:literal, $seconds:literal;
    )+) => {
        pub use claude_wire::control::{$($input),+};

        $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        #[expect(clippy::exhaustive_structs, reason = "a name that people write as a value")]
        pub struct $event;

        impl $event {
            pub(super) const LIMIT: Duration = Duration::from_secs($seconds);

            /// Asks the hook only about what fits this pattern.
            pub fn matching(pattern: impl Into<String>) -> Matching<Self> {
                Self.point().matching(pattern)
            }

            /// How long the hook may take.
            pub fn timeout(self, limit: Duration) -> Matching<Self> {
                self.point().timeout(limit)
            }

            /// Blocks when the hook fails.
            pub fn fail_closed(self) -> Matching<Self> {
                self.point().fail_closed()
            }

            fn point(self) -> Matching<Self> {
                Matching::new($name, Self::LIMIT)
            }
        }

        impl sealed::Point for $event {}

        impl HookPoint for $event {
            type Event = Self;

            fn place(self) -> Place {
                self.point().place()
            }
        }
        )+

        /// What is known of an event by its name.
        pub(super) fn known(event: &str) -> Option<Known> {
            match event {
                $( $name => Some(Known {
                    limit: $event::LIMIT,
                    takes_decision: $decision,
                }), )+
                _ => None,
            }
        }
    };
}

/// What is known of an event that has a type.
pub(super) struct Known {
    pub(super) limit: Duration,
    /// Whether the CLI obeys `decision` in an answer to it.
    pub(super) takes_decision: bool,
}

claude_wire::for_each_hook_event!(declare_events);

/// Why an event's hook cannot be told this input.
pub(super) fn mismatch(expected: &str, input: &HookInput) -> String {
    match input {
        HookInput::Undecodable(odd) => format!("the input cannot be made out: {}", odd.reason),
        other => {
            let came = other.kind().unwrap_or_default();
            format!("the hook is for {expected}, and the CLI asked it about {came:?}")
        }
    }
}
