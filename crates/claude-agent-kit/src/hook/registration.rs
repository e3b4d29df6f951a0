//! Hook registrations.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::event::{DEFAULT_TIMEOUT, known};
use super::{HookEvent, RawHookInput};

/// An event for which a hook is registered, with the matcher, the timeout and the fail rule of the
/// hook.
///
/// The constants of this module, such as [`PreToolUse`](super::PreToolUse), are registrations without
/// a matcher. `E` is the type of the event's input.
///
/// ```
/// use std::time::Duration;
///
/// use claude_agent_kit::Options;
/// use claude_agent_kit::hook::PreToolUse;
///
/// let writes = PreToolUse.matching("Write|Edit").timeout(Duration::from_secs(5)).fail_closed();
/// let options = Options::new().on(writes, |_call, _ctx| async {});
/// ```
#[must_use]
pub struct HookRegistration<E> {
    target: HookTarget,
    event: PhantomData<fn() -> E>,
}

impl<E: HookEvent> HookRegistration<E> {
    /// Creates a registration without a matcher.
    pub(super) const fn typed() -> Self {
        Self::of(Cow::Borrowed(E::NAME), E::TIMEOUT)
    }

    const fn of(event: Cow<'static, str>, default_timeout: Duration) -> Self {
        let target =
            HookTarget { event, default_timeout, pattern: None, timeout: None, fail_closed: false };
        Self { target, event: PhantomData }
    }

    /// Calls the hook only for what matches this pattern; for tools that is their name. Replaces
    /// an earlier pattern. Default: everything.
    ///
    /// `""` and `"*"` match everything. Letters, digits, `_`, `|`, `,` and spaces form a list of
    /// exact names (`"Write|Edit"`); anything else is a JavaScript regular expression, searched
    /// anywhere in the name (`"^mcp__"`). The start fails with
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if it is not a valid one, because the
    /// CLI would match nothing with it.
    pub fn matching(mut self, pattern: impl Into<String>) -> Self {
        self.target.pattern = Some(pattern.into());
        self
    }

    /// Sets how long the hook may take. Takes precedence over `Timeouts::hook` and the
    /// default of the event.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.target.timeout = Some(timeout);
        self
    }

    /// Denies the event when the hook fails, panics or times out, or when this process is gone.
    /// Use it for every guard. Default: the CLI continues without the hook.
    ///
    /// The guide's table of [events](crate::guide::hooks) lists the effect of a denial. The start
    /// fails if the event cannot be denied, or if the CLI does not support it.
    pub fn fail_closed(mut self) -> Self {
        self.target.fail_closed = true;
        self
    }

    pub(crate) fn into_target(self) -> HookTarget {
        self.target
    }
}

impl HookRegistration<RawHookInput> {
    /// Creates a registration for the event of this name: for events that this version does not
    /// have types for, and for known events in their raw form.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::hook::{HookRegistration, RawHookResponse};
    ///
    /// let tidied = HookRegistration::named("SessionTidied");
    /// let options = Options::new().on(tidied, |input, _ctx| async move {
    ///     println!("{}: {}", input.event, input.json);
    ///     RawHookResponse::new().specific("additionalContext", "The session is tidy now.")
    /// });
    /// ```
    pub fn named(event: impl Into<String>) -> Self {
        let event = event.into();
        let timeout = known(&event).map_or(DEFAULT_TIMEOUT, |known| known.timeout);
        Self::of(Cow::Owned(event), timeout)
    }
}

impl<E> fmt::Debug for HookRegistration<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

impl<E> Clone for HookRegistration<E> {
    fn clone(&self) -> Self {
        Self { target: self.target.clone(), event: PhantomData }
    }
}

/// A registration without the type of its event.
#[derive(Clone, Debug)]
pub(crate) struct HookTarget {
    pub(crate) event: Cow<'static, str>,
    pub(super) default_timeout: Duration,
    pub(crate) pattern: Option<String>,
    timeout: Option<Duration>,
    pub(crate) fail_closed: bool,
}

impl HookTarget {
    /// Returns the timeout that is in force. A default for all hooks does not extend that of an
    /// event for which the CLI waits less than usual.
    pub(crate) fn timeout(&self, hook_timeout: Option<Duration>) -> Duration {
        self.timeout.unwrap_or_else(|| match hook_timeout {
            Some(timeout) if self.default_timeout < DEFAULT_TIMEOUT => {
                timeout.min(self.default_timeout)
            }
            Some(timeout) => timeout,
            None => self.default_timeout,
        })
    }
}
