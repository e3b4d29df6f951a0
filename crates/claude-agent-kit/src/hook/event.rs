//! The events that have types of their own, from the list in `claude-wire`.

use std::time::Duration;

use claude_wire::Json;
use claude_wire::control::HookSpecificOutput;
use serde::de::DeserializeOwned;

use super::HookRegistration;

/// The timeout of a hook for which none is set, in events that do not have their own.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// An event that hooks can be registered for, represented by the type of its input:
/// [`PreToolUseInput`] for [`PreToolUse`] and so on, and [`RawHookInput`](super::RawHookInput) for
/// events by name.
///
/// This trait is sealed.
pub trait HookEvent: sealed::Event {}

/// What the kit needs to know about an event by its type. Public for the bounds of public items, and
/// not reachable from outside.
pub(super) mod sealed {
    use std::fmt::Debug;
    use std::time::Duration;

    use claude_wire::Json;
    use claude_wire::control::HookSpecificOutput;

    pub trait Event: Sized + Send + 'static {
        /// The name on the wire; empty for events by name.
        const NAME: &'static str;
        /// The default timeout.
        const TIMEOUT: Duration;
        /// The part of a response that only this event has.
        type Specific: Specific;

        /// Decodes the input of a request.
        fn read(input: Json) -> Result<Self, String>;
    }

    pub trait Specific: Clone + Debug + Default + PartialEq + Send + 'static {
        fn into_wire(self) -> Option<HookSpecificOutput>;
    }

    /// For events without a specific part.
    impl Specific for () {
        fn into_wire(self) -> Option<HookSpecificOutput> {
            None
        }
    }
}

/// Declares the events of the list: the constant with which a hook is registered, and what is known
/// about the event by the type of its input and by its name.
macro_rules! declare_events {
    ($(
        $(#[$meta:meta])*
        $event:ident($input:ident $(-> $output:ident)?) = $name:literal:
            $refusal:ident, $decision:literal, $seconds:literal;
    )+) => {
        use claude_wire::hook_input::{$($input),+};

        $(
        $(#[$meta])*
        pub const $event: HookRegistration<$input> = HookRegistration::typed();

        impl HookEvent for $input {}

        impl sealed::Event for $input {
            const NAME: &'static str = $name;
            const TIMEOUT: Duration = Duration::from_secs($seconds);
            type Specific = declare_events!(@specific $($output)?);

            // Compiled only where a hook of this event is registered.
            #[inline]
            fn read(input: Json) -> Result<Self, String> {
                decode(&input, $name)
            }
        }

        $(
        impl sealed::Specific for claude_wire::control::$output {
            fn into_wire(self) -> Option<HookSpecificOutput> {
                Some(self.into())
            }
        }
        )?
        )+

        /// Returns what is known about the event of this name.
        pub(super) fn known(event: &str) -> Option<KnownEvent> {
            match event {
                $( $name => Some(KnownEvent {
                    timeout: Duration::from_secs($seconds),
                    takes_decision: $decision,
                }), )+
                _ => None,
            }
        }
    };
    (@specific) => { () };
    (@specific $output:ident) => { claude_wire::control::$output };
}

/// What is known about an event that has a type.
pub(super) struct KnownEvent {
    pub(super) timeout: Duration,
    /// Whether the CLI follows `decision` in a response to it.
    pub(super) takes_decision: bool,
}

claude_wire::for_each_hook_event!(declare_events);

/// Decodes the input of a hook that is registered for this event.
fn decode<T: DeserializeOwned>(input: &Json, expected: &str) -> Result<T, String> {
    check_event(input, expected)?;
    input.deserialize().map_err(|error| format!("the input of the hook cannot be decoded: {error}"))
}

fn check_event(input: &Json, expected: &str) -> Result<(), String> {
    let event = name(input);
    if event == expected {
        return Ok(());
    }
    Err(format!("the hook is registered for {expected}, and the CLI called it for {event:?}"))
}

/// Returns the event of an input; empty if it has none.
pub(super) fn name(input: &Json) -> String {
    let name = input.get("hook_event_name").and_then(|name| name.deserialize().ok());
    name.unwrap_or_default()
}
