//! The limits of a run, with their defaults.

use std::time::Duration;

use super::shutdown::GracePeriods;

/// The limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLimits {
    /// How long the handshake may take.
    pub initialize: Duration,
    /// Operations that may wait for the handshake.
    pub waiting_operations: usize,
    /// Operations that may wait for their answer, the handshake included.
    pub pending_operations: usize,
    /// Hook and permission callbacks that run at a time.
    pub running_callbacks: usize,
    /// Those that may wait for their turn to run; beyond it they are refused.
    pub waiting_callbacks: usize,
    /// Messages for in-process servers that are served at a time.
    pub running_mcp: usize,
    /// Those that may wait; beyond it they are answered with an error.
    pub waiting_mcp: usize,
    /// How long a cancelled callback may go on.
    pub cancel_grace: Duration,
    /// Bytes that may wait to be written before messages wait and operations are refused.
    pub unwritten_bytes: usize,
    /// The most bytes of requests of the CLI that are pending at a time. Beyond it requests are
    /// refused like those beyond `waiting_callbacks`, unless none is pending.
    pub request_bytes: usize,
    /// The most bytes of responses that wait to be written while the CLI does not read stdin. The
    /// run fails when more have waited for `stdin_stall` without a byte being written, and at once
    /// when four times as many wait, not counting the newest response.
    pub unwritten_response_bytes: usize,
    /// How long the CLI may leave stdin unread after `unwritten_response_bytes` was exceeded.
    pub stdin_stall: Duration,
    /// How long the process may take at each step of its shutdown.
    pub grace: GracePeriods,
    /// How long a stdout that another process holds open is read after the last byte.
    pub held_open_quiet: Duration,
    /// How long it is read at most.
    pub held_open_most: Duration,
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
            held_open_most: Duration::from_secs(2),
        }
    }
}

/// The limits of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryLimits {
    /// How long background work may hold the run after a result; none if there is no limit.
    pub background_ceiling: Option<Duration>,
    /// How long the CLI may be silent before its result; none if there is no limit.
    pub idle_timeout: Option<Duration>,
    /// Whether background shells hold the run too. Some of them are servers, which never end.
    pub wait_for_shells: bool,
    /// Whether an exit that is no success after a result that is no error fails the run.
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
