//! Limits and timeouts, each as one value.

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
    /// Makes a value that sets no limit yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the line of the CLI that is read as a message, in bytes. At least 64 KiB, since the
    /// CLI's response to the handshake is one line; with less the start fails with
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions). Default: 64 MiB.
    pub fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = Some(bytes);
        self
    }

    /// Limits the bytes that may wait to be written to the CLI before sending waits. Default: 16
    /// MiB.
    pub fn max_unwritten_bytes(mut self, bytes: usize) -> Self {
        self.max_unwritten_bytes = Some(bytes);
        self
    }

    /// Limits the bytes of messages that may wait for a lagging reader: beyond it the CLI is read
    /// only while an operation or a callback needs it. Default: 16 MiB.
    pub fn backlog_soft_bytes(mut self, bytes: usize) -> Self {
        self.backlog_soft_bytes = Some(bytes);
        self
    }

    /// Limits the bytes of messages that may wait while the CLI has to be read: beyond it the
    /// lagging reader is cut off. Default: 256 MiB.
    pub fn backlog_hard_bytes(mut self, bytes: usize) -> Self {
        self.backlog_hard_bytes = Some(bytes);
        self
    }

    /// Limits how many operations may wait for the handshake; beyond it they are refused. Default:
    /// 16.
    pub fn waiting_operations(mut self, most: usize) -> Self {
        self.waiting_operations = Some(most);
        self
    }

    /// Limits how many operations may wait for their responses; beyond it they are refused.
    /// Default: 64.
    pub fn pending_operations(mut self, most: usize) -> Self {
        self.pending_operations = Some(most);
        self
    }

    /// Limits how many hook and permission callbacks run at a time. Default: 256.
    pub fn running_callbacks(mut self, most: usize) -> Self {
        self.running_callbacks = Some(most);
        self
    }

    /// Limits how many more callbacks may wait for their turn; beyond it they are refused, which
    /// blocks or denies. Default: 4,096.
    pub fn waiting_callbacks(mut self, most: usize) -> Self {
        self.waiting_callbacks = Some(most);
        self
    }

    /// Limits how many messages for servers of this process are served at a time. Beyond it 100
    /// wait, and further ones are answered with an error, with a warning. Default: 128.
    pub fn running_mcp_messages(mut self, most: usize) -> Self {
        self.running_mcp_messages = Some(most);
        self
    }
}

/// Timeouts. Where `None` is accepted, it disables the timeout.
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
    /// Makes a value that sets no timeout yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long the CLI may take for the handshake. Default: the variable
    /// `CLAUDE_CODE_STREAM_CLOSE_TIMEOUT` in milliseconds, or 60 s.
    pub fn initialize(mut self, timeout: Duration) -> Self {
        self.initialize = Some(timeout);
        self
    }

    /// Sets how long the CLI may be silent during a query. `None` or zero disables the timeout.
    /// Default: no timeout, because a tool may run for hours.
    pub fn idle(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle = Some(Timeout(timeout.into()));
        self
    }

    /// Sets how long a query waits for background work after its result; `None` or zero disables
    /// the limit. Default: the variable `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` in milliseconds, or
    /// 10 min.
    pub fn background_ceiling(mut self, ceiling: impl Into<Option<Duration>>) -> Self {
        self.background_ceiling = Some(Timeout(ceiling.into()));
        self
    }

    /// Sets how long the CLI may take to exit once its stdin is closed; after that it is stopped.
    /// Default: 5 s.
    pub fn exit_grace(mut self, grace: Duration) -> Self {
        self.exit_grace = Some(grace);
        self
    }

    /// Sets how long an operation of a session may take, from its write. One call can have another
    /// timeout: [`Session::with_timeout`](crate::Session::with_timeout). Default: 30 s, or 120 s for
    /// those that connect to servers or write files.
    pub fn operation(mut self, timeout: Duration) -> Self {
        self.operation = Some(timeout);
        self
    }

    /// Sets how long a hook may take where its registration does not say it. Sent as `timeout` of
    /// `hooks` in the handshake. Default: 60 s; 25 s for `UserPromptSubmit` and 8 s for
    /// `MessageDisplay`, which this does not lengthen.
    pub fn hook(mut self, timeout: Duration) -> Self {
        self.hook = Some(timeout);
        self
    }

    /// Sets how long a permission callback, or one for questions or dialogs, may take; after that
    /// the tool is denied, the question declined, the dialog cancelled. Default: no timeout,
    /// because users may have to answer.
    pub fn permission(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.permission = Some(Timeout(timeout.into()));
        self
    }

    /// Sets how long a callback may continue after its request was cancelled; then its task is
    /// aborted. Zero aborts at once. Default: 1 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = Some(grace);
        self
    }
}

impl Options {
    /// Sets limits in bytes and numbers. Replaces those limits that the value sets, and no others.
    /// Default: those of [`Limits`].
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

    /// Sets timeouts. Replaces those timeouts that the value sets, and no others. Default: those of
    /// [`Timeouts`].
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
