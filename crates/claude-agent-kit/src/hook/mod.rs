//! Hooks: what a host is told at a point of the CLI's work, and what it answers.

mod answer;
mod check;
mod event;
#[cfg(test)]
mod every_event;
mod raw;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use claude_wire::Json;
use claude_wire::control::HookInput;

pub use answer::*;
pub use event::*;
pub use raw::{AnyEvent, RawAnswer, RawHookInput};

pub(crate) use check::problem;
pub(crate) use raw::session_of;

use crate::callback::BoxError;

/// How long a hook may take where nothing else is said.
pub(crate) const USUAL_LIMIT: Duration = Duration::from_secs(60);

/// A point of the CLI's work at which it asks hooks: [`PreToolUse`], [`Stop`] and so on, all that
/// are published. One that has no type here is [`AnyEvent`].
pub trait HookEvent: sealed::Event + Sized + Send + Sync + 'static {
    /// Its name on the wire; empty for [`AnyEvent`], whose name is given when it is registered.
    const NAME: &'static str;
    /// How long a hook may take unless an option says otherwise.
    const DEFAULT_LIMIT: Duration;
    /// What the hook is told.
    type Input: Send + 'static;
    /// What the hook can answer.
    type Output: HookOutput;

    /// What the hook is told, out of what the CLI asked.
    #[doc(hidden)]
    fn read(asked: Asked) -> Result<Self::Input, String>;
}

/// Where a hook is registered: an event, or an event with a pattern, a limit or a fail rule
/// ([`Matching`]).
pub trait HookPoint: sealed::Point {
    /// The event.
    type Event: HookEvent;

    #[doc(hidden)]
    fn place(self) -> Place;
}

/// What a hook for the event `E` may return: `()`, the event's own answer, or a `Result` of one of
/// them with [`BoxError`].
///
/// An answer of another event does not compile:
///
/// ```compile_fail,E0277
/// use claude_agent_kit::hook::{PostToolUse, PreToolUseAnswer};
/// use claude_agent_kit::Options;
///
/// Options::new().on(PostToolUse, |_, _| async { PreToolUseAnswer::deny("too late") });
/// ```
///
/// Nor does what an event cannot say:
///
/// ```compile_fail,E0599
/// use claude_agent_kit::hook::SubagentStartAnswer;
///
/// let answer = SubagentStartAnswer::block("it has begun");
/// ```
#[diagnostic::on_unimplemented(
    message = "a hook for `{E}` cannot answer `{Self}`",
    label = "this is no answer to `{E}`",
    note = "return `()`, the event's own answer, or a `Result` of one of them with `BoxError`"
)]
pub trait HookAnswer<E: HookEvent>: sealed::Answer + Send + 'static {
    #[doc(hidden)]
    fn into_output(self) -> Result<E::Output, BoxError>;
}

impl<E: HookEvent> HookAnswer<E> for () {
    fn into_output(self) -> Result<E::Output, BoxError> {
        Ok(E::Output::default())
    }
}

impl<E: HookEvent, T: HookAnswer<E>> HookAnswer<E> for Result<T, BoxError> {
    fn into_output(self) -> Result<E::Output, BoxError> {
        self.and_then(T::into_output)
    }
}

/// The answer type of an event.
pub trait HookOutput: sealed::Answer + Default + Send + 'static {
    #[doc(hidden)]
    fn encode(self, event: &str) -> Result<Encoded, String>;
}

/// An event, and for what of it a hook is asked and how.
///
/// Made by `matching`, `timeout` and `fail_closed` of an event.
///
/// ```
/// use std::time::Duration;
///
/// use claude_agent_kit::Options;
/// use claude_agent_kit::hook::PreToolUse;
///
/// let point = PreToolUse::matching("Write|Edit").timeout(Duration::from_secs(5)).fail_closed();
/// let options = Options::new().on(point, |_call, _ctx| async {});
/// ```
#[must_use]
pub struct Matching<E> {
    place: Place,
    event: PhantomData<fn() -> E>,
}

impl<E: HookEvent> Matching<E> {
    fn new(name: impl Into<Cow<'static, str>>, default_limit: Duration) -> Self {
        let event = name.into();
        let place = Place { event, default_limit, pattern: None, limit: None, fail_closed: false };
        Self { place, event: PhantomData }
    }

    /// Calls the hook only for what matches this pattern; for tools that is their name. Replaces
    /// an earlier pattern. Default: everything.
    ///
    /// `""` and `"*"` match everything. Letters, digits, `_`, `|`, `,` and blanks form a list of
    /// exact names (`"Write|Edit"`); anything else is a JavaScript regular expression, searched
    /// anywhere in the name (`"^mcp__"`). The start fails with
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if it is not a valid one, because the
    /// CLI would match nothing with it.
    pub fn matching(mut self, pattern: impl Into<String>) -> Self {
        self.place.pattern = Some(pattern.into());
        self
    }

    /// How long the hook may take. Beats `Options::hook_timeout` and the event's own limit.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.place.limit = Some(limit);
        self
    }

    /// Refuses the event when the hook fails, panics or times out, or when this process is gone.
    /// Use it for every guard. Default: the CLI continues as if there were no hook.
    ///
    /// What a refusal does is in the guide's table of [events](crate::guide::hooks). The start
    /// fails if the event cannot be refused, or if the CLI does not support it.
    pub fn fail_closed(mut self) -> Self {
        self.place.fail_closed = true;
        self
    }
}

impl<E> fmt::Debug for Matching<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)
    }
}

impl<E> Clone for Matching<E> {
    fn clone(&self) -> Self {
        Self { place: self.place.clone(), event: PhantomData }
    }
}

impl<E: HookEvent> sealed::Point for Matching<E> {}

impl<E: HookEvent> HookPoint for Matching<E> {
    type Event = E;

    fn place(self) -> Place {
        self.place
    }
}

/// Where a hook is registered, as plain data.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Place {
    pub(crate) event: Cow<'static, str>,
    pub(crate) default_limit: Duration,
    pub(crate) pattern: Option<String>,
    pub(crate) limit: Option<Duration>,
    pub(crate) fail_closed: bool,
}

impl Place {
    /// The limit that is in force. A default for all hooks does not lengthen that of an event
    /// which the CLI holds for less than usual.
    pub(crate) fn limit(&self, hook_timeout: Option<Duration>) -> Duration {
        self.limit.unwrap_or_else(|| match hook_timeout {
            Some(limit) if self.default_limit < USUAL_LIMIT => limit.min(self.default_limit),
            Some(limit) => limit,
            None => self.default_limit,
        })
    }
}

/// What the CLI asked a hook.
#[derive(Debug)]
#[non_exhaustive]
pub struct Asked {
    pub(crate) input: HookInput,
    pub(crate) line: Bytes,
}

/// An answer as it is sent, and which fields of it were left out because they do not fit the event.
#[derive(Debug)]
#[non_exhaustive]
pub struct Encoded {
    pub(crate) json: Json,
    pub(crate) dropped: Vec<String>,
}

/// Keeps the traits to the types of this crate.
mod sealed {
    use crate::callback::BoxError;

    pub trait Event {}

    pub trait Point {}

    pub trait Answer {}

    impl Answer for () {}

    impl<T: Answer> Answer for Result<T, BoxError> {}
}
