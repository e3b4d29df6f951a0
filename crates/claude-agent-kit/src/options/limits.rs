//! Limits and timeouts.

use std::time::Duration;

use super::Options;
use super::host::HostOptions;

/// Limits in bytes and numbers.
///
/// ```
/// use claude_agent_kit::{Limits, Options};
///
/// let options = Options::new().limits(Limits::new().max_line_bytes(1 << 20));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "limits do nothing until they are given to `Options::limits`"]
pub struct Limits {
    max_line_bytes: Option<usize>,
    max_unwritten_bytes: Option<usize>,
    backlog_soft_bytes: Option<usize>,
    backlog_hard_bytes: Option<usize>,
    waiting_operations: Option<usize>,
    pending_operations: Option<usize>,
    running_callbacks: Option<usize>,
    waiting_callbacks: Option<usize>,
    running_mcp_messages: Option<usize>,
}

impl Limits {
    /// Creates a value that sets no limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the length of a line that the CLI writes, in bytes. The minimum is 64 KiB, because the
    /// response to the handshake is one line; with a smaller value the start fails with
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions). Default: 64 MiB.
    pub fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = Some(bytes);
        self
    }

    /// Limits the bytes that are queued for writing to the CLI; beyond the limit, sending waits.
    /// Default: 16 MiB.
    pub fn max_unwritten_bytes(mut self, bytes: usize) -> Self {
        self.max_unwritten_bytes = Some(bytes);
        self
    }

    /// Limits the bytes of messages that are kept for a lagging reader; beyond the limit, the SDK reads
    /// from the CLI only if an operation or a callback requires it. Default: 16 MiB.
    pub fn backlog_soft_bytes(mut self, bytes: usize) -> Self {
        self.backlog_soft_bytes = Some(bytes);
        self
    }

    /// Limits the bytes of messages that are kept while the CLI has to be read; beyond the limit, the
    /// lagging reader gets the error `Lagged`. Default: 256 MiB.
    pub fn backlog_hard_bytes(mut self, bytes: usize) -> Self {
        self.backlog_hard_bytes = Some(bytes);
        self
    }

    /// Limits the number of operations that are queued for the handshake; further ones are rejected.
    /// Default: 16.
    pub fn waiting_operations(mut self, most: usize) -> Self {
        self.waiting_operations = Some(most);
        self
    }

    /// Limits the number of operations in flight; further ones are rejected. Default: 64.
    pub fn pending_operations(mut self, most: usize) -> Self {
        self.pending_operations = Some(most);
        self
    }

    /// Limits the number of hook and permission callbacks that run concurrently. Default: 256.
    pub fn running_callbacks(mut self, most: usize) -> Self {
        self.running_callbacks = Some(most);
        self
    }

    /// Limits the number of callbacks that are queued; further requests are blocked or denied. Default:
    /// 4,096.
    pub fn waiting_callbacks(mut self, most: usize) -> Self {
        self.waiting_callbacks = Some(most);
        self
    }

    /// Limits the number of messages that in-process servers handle concurrently. 100 more are queued;
    /// further ones get an error response and cause a warning. Default: 128.
    pub fn running_mcp_messages(mut self, most: usize) -> Self {
        self.running_mcp_messages = Some(most);
        self
    }
}

/// Timeouts. `None`, where it is accepted, disables a timeout.
///
/// ```
/// use std::time::Duration;
///
/// use claude_agent_kit::{Options, Timeouts};
///
/// let timeouts = Timeouts::new().idle(Duration::from_secs(600)).exit_grace(Duration::from_secs(2));
/// let options = Options::new().timeouts(timeouts);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "timeouts do nothing until they are given to `Options::timeouts`"]
pub struct Timeouts {
    initialize: Option<Duration>,
    idle: Option<Timeout>,
    background_ceiling: Option<Timeout>,
    exit_grace: Option<Duration>,
    operation: Option<Duration>,
    hook: Option<Duration>,
    permission: Option<Timeout>,
    cancel_grace: Option<Duration>,
}

/// A timeout that can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timeout(Option<Duration>);

impl Timeouts {
    /// Creates a value that sets no timeout.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the timeout of the handshake. Default: the variable
    /// `CLAUDE_CODE_STREAM_CLOSE_TIMEOUT` in milliseconds, or 60 s.
    pub fn initialize(mut self, timeout: Duration) -> Self {
        self.initialize = Some(timeout);
        self
    }

    /// Sets how long the CLI may send nothing during a query. `None` or zero disables the timeout.
    /// Default: no timeout, because a tool may run for hours.
    pub fn idle(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle = Some(Timeout(timeout.into()));
        self
    }

    /// Sets how long a query waits for background work after its result; `None` or zero disables
    /// the timeout. Default: the variable `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` in milliseconds, or
    /// 10 min.
    pub fn background_ceiling(mut self, ceiling: impl Into<Option<Duration>>) -> Self {
        self.background_ceiling = Some(Timeout(ceiling.into()));
        self
    }

    /// Sets the grace period for the CLI to exit after its stdin is closed; then SIGTERM is sent.
    /// Default: 5 s.
    pub fn exit_grace(mut self, grace: Duration) -> Self {
        self.exit_grace = Some(grace);
        self
    }

    /// Sets the timeout of session operations, from the time when they are written.
    /// [`Session::with_timeout`](crate::Session::with_timeout) sets another timeout for single calls.
    /// Default: 30 s, or 120 s for operations that connect to servers or write files.
    pub fn operation(mut self, timeout: Duration) -> Self {
        self.operation = Some(timeout);
        self
    }

    /// Sets the timeout of hooks whose registration has none. Sent as `timeout` of `hooks` in the
    /// handshake. Default: 60 s; 25 s for `UserPromptSubmit` and 8 s for `MessageDisplay`, which this
    /// option can only shorten.
    pub fn hook(mut self, timeout: Duration) -> Self {
        self.hook = Some(timeout);
        self
    }

    /// Sets the timeout of callbacks for permissions, questions and dialogs; when it expires, the tool
    /// call is denied, the question declined or the dialog cancelled. Default: no timeout, because
    /// users may have to answer.
    pub fn permission(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.permission = Some(Timeout(timeout.into()));
        self
    }

    /// Sets how long a callback may continue after its request was cancelled; then its task is
    /// aborted. Zero aborts immediately. Default: 1 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = Some(grace);
        self
    }
}

impl Options {
    /// Sets limits in bytes and numbers. Replaces only the limits that the value sets. Default: those
    /// of [`Limits`].
    pub fn limits(self, limits: Limits) -> Self {
        self.given("limits.max_line_bytes", limits.max_line_bytes, |host, bytes| {
            host.max_line_bytes = bytes;
        })
        .given("limits.max_unwritten_bytes", limits.max_unwritten_bytes, |host, bytes| {
            host.max_unwritten_bytes = bytes;
        })
        .given("limits.backlog_soft_bytes", limits.backlog_soft_bytes, |host, bytes| {
            host.backlog.soft = bytes;
        })
        .given("limits.backlog_hard_bytes", limits.backlog_hard_bytes, |host, bytes| {
            host.backlog.hard = bytes;
        })
        .given("limits.waiting_operations", limits.waiting_operations, |host, most| {
            host.waiting_operations = most;
        })
        .given("limits.pending_operations", limits.pending_operations, |host, most| {
            host.pending_operations = most;
        })
        .given("limits.running_callbacks", limits.running_callbacks, |host, most| {
            host.running_callbacks = most;
        })
        .given("limits.waiting_callbacks", limits.waiting_callbacks, |host, most| {
            host.waiting_callbacks = most;
        })
        .given(
            "limits.running_mcp_messages",
            limits.running_mcp_messages,
            |host, most| {
                host.callbacks.running_mcp = Some(most);
            },
        )
    }

    /// Sets timeouts. Replaces only the timeouts that the value sets. Default: those of [`Timeouts`].
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        self.given("timeouts.initialize", timeouts.initialize, |host, timeout| {
            host.initialize_timeout = Some(timeout);
        })
        .given("timeouts.idle", timeouts.idle, |host, Timeout(timeout)| {
            host.idle_timeout = timeout;
        })
        .given(
            "timeouts.background_ceiling",
            timeouts.background_ceiling,
            |host, Timeout(ceiling)| {
                host.background_ceiling = Some(ceiling.unwrap_or(Duration::ZERO));
            },
        )
        .given("timeouts.exit_grace", timeouts.exit_grace, |host, grace| host.exit_grace = grace)
        .given("timeouts.operation", timeouts.operation, |host, timeout| {
            host.operation_timeout = Some(timeout);
        })
        .given("timeouts.hook", timeouts.hook, |host, timeout| {
            host.callbacks.hook_timeout = Some(timeout);
        })
        .given("timeouts.permission", timeouts.permission, |host, Timeout(timeout)| {
            host.callbacks.permission_timeout = timeout;
        })
        .given("timeouts.cancel_grace", timeouts.cancel_grace, |host, grace| {
            host.callbacks.cancel_grace = grace;
        })
    }

    /// Sets a member of a group, if the group sets it.
    fn given<T>(
        self,
        option: &'static str,
        value: Option<T>,
        set: impl FnOnce(&mut HostOptions, T),
    ) -> Self {
        match value {
            Some(value) => self.change_host(option, |host| set(host, value)),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_group_replaces_what_it_sets_and_nothing_else() {
        let options = Options::new()
            .limits(Limits::new().max_line_bytes(1).running_callbacks(2))
            .limits(Limits::new().running_callbacks(3))
            .timeouts(Timeouts::new().idle(SECOND).exit_grace(SECOND))
            .timeouts(Timeouts::new().idle(None));
        let host = &options.host;
        assert_eq!((host.max_line_bytes, host.running_callbacks), (1, 3));
        assert_eq!(host.waiting_callbacks, Options::new().host.waiting_callbacks);
        assert_eq!((host.idle_timeout, host.exit_grace), (None, SECOND));
        assert_eq!(
            options.explain().to_string(),
            "limits.max_line_bytes = 1 (builder)\nlimits.running_callbacks = 3 (builder)\n\
             timeouts.exit_grace = 1s (builder)\ntimeouts.idle = None (builder)\n"
        );
    }
}
