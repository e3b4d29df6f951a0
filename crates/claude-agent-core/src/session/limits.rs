//! The limits of a run, with their defaults.

use std::time::Duration;

use super::shutdown::GracePeriods;

/// The limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLimits {
    /// The timeout of the handshake.
    pub initialize: Duration,
    /// The maximum number of operations that wait for the handshake.
    pub waiting_operations: usize,
    /// The maximum number of operations in flight, including the handshake.
    pub pending_operations: usize,
    /// The concurrency limit of hook and permission callbacks.
    pub running_callbacks: usize,
    /// The maximum number of queued callbacks. Requests beyond it are denied.
    pub waiting_callbacks: usize,
    /// The concurrency limit of messages for in-process MCP servers.
    pub running_mcp: usize,
    /// The maximum number of queued messages. The response to messages beyond it is an error.
    pub waiting_mcp: usize,
    /// The grace period of a cancelled callback before it is aborted.
    pub cancel_grace: Duration,
    /// The capacity of the write buffer in bytes. Beyond it messages wait and operations are rejected.
    pub unwritten_bytes: usize,
    /// The maximum total size of pending requests of the CLI, in bytes. Requests beyond it are denied
    /// like those beyond `waiting_callbacks`, unless none is pending.
    pub request_bytes: usize,
    /// The maximum total size of unwritten responses while the CLI does not read stdin, in bytes. The
    /// run fails if more were unwritten for `stdin_stall` without any progress, and at once if four
    /// times as many are unwritten, not counting the newest response.
    pub unwritten_response_bytes: usize,
    /// The time that the CLI may leave stdin unread after `unwritten_response_bytes` was exceeded.
    pub stdin_stall: Duration,
    /// The grace periods of the shutdown sequence.
    pub grace: GracePeriods,
    /// The time after the last byte for which a stdout that another process keeps open is read.
    pub held_open_quiet: Duration,
    /// The maximum time for which such a stdout is read after the exit.
    pub held_open_max: Duration,
    /// The limits of the mirror to a store.
    pub mirror: MirrorLimits,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            initialize: Duration::from_secs(60),
            waiting_operations: 16,
            pending_operations: 64,
            running_callbacks: 256,
            waiting_callbacks: 4096,
            running_mcp: 128,
            waiting_mcp: 100,
            cancel_grace: Duration::from_secs(1),
            unwritten_bytes: 16 * 1024 * 1024,
            request_bytes: 256 * 1024 * 1024,
            unwritten_response_bytes: 16 * 1024 * 1024,
            stdin_stall: Duration::from_secs(5),
            grace: GracePeriods::default(),
            held_open_quiet: Duration::from_millis(100),
            held_open_max: Duration::from_secs(2),
            mirror: MirrorLimits::default(),
        }
    }
}

/// The limits of the mirror to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorLimits {
    /// The maximum number of entries of one append.
    pub batch_entries: usize,
    /// The maximum size of one append in bytes, unless a single entry is larger.
    pub batch_bytes: usize,
    /// The maximum size of unstored entries and held messages in bytes. Beyond it the mirror is degraded.
    pub queued_bytes: usize,
    /// The delay before the first retry; it doubles with each one.
    pub first_retry: Duration,
    /// The maximum delay before a retry.
    pub max_retry: Duration,
    /// The maximum time for the append of one batch with its retries.
    pub give_up: Duration,
    /// The pause before the store of a degraded mirror is tried again.
    pub probe: Duration,
    /// The time without new entries after which a degraded mirror that was caught up is in order again.
    pub quiet: Duration,
    /// The maximum time after the exit of the process in which the remaining entries are stored.
    pub flush: Duration,
}

impl Default for MirrorLimits {
    fn default() -> Self {
        Self {
            batch_entries: 500,
            batch_bytes: 1024 * 1024,
            queued_bytes: 8 * 1024 * 1024,
            first_retry: Duration::from_millis(200),
            max_retry: Duration::from_secs(10),
            give_up: Duration::from_secs(30),
            probe: Duration::from_secs(30),
            quiet: Duration::from_secs(1),
            flush: Duration::from_secs(10),
        }
    }
}

/// The timeouts of a query and its rules for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryLimits {
    /// The maximum time that background tasks delay the end after a result. `None` for no limit.
    pub background_ceiling: Option<Duration>,
    /// The maximum time without output before the result. `None` for no limit.
    pub idle_timeout: Option<Duration>,
    /// Whether background shells delay the end too. Some of them are servers, which never exit.
    pub wait_for_shells: bool,
    /// Whether a failed exit after a result that is not an error fails the run.
    pub strict_exit_status: bool,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            background_ceiling: Some(Duration::from_secs(10 * 60)),
            idle_timeout: None,
            wait_for_shells: false,
            strict_exit_status: false,
        }
    }
}
