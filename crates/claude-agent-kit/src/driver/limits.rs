//! Converts options into the limits of the session machine and the backlog.

use claude_agent_core::session::{QueryLimits, SessionLimits};

use crate::backlog::BacklogLimits;
use crate::options::{Background, Options, Prepared};

pub(super) fn session(options: &Options, prepared: &Prepared) -> SessionLimits {
    let mut limits = SessionLimits::default();
    limits.initialize = prepared.initialize_timeout;
    limits.grace.exit = options.host.exit_grace;
    limits.unwritten_bytes = options.host.max_unwritten_bytes;
    limits.waiting_operations = options.host.waiting_operations;
    limits.pending_operations = options.host.pending_operations;
    limits.running_callbacks = options.host.running_callbacks;
    limits.waiting_callbacks = options.host.waiting_callbacks;
    limits.running_mcp = options.host.callbacks.running_mcp.unwrap_or(limits.running_mcp);
    limits.cancel_grace = options.host.callbacks.cancel_grace;
    limits
}

pub(super) fn query(options: &Options, prepared: &Prepared) -> QueryLimits {
    let mut limits = QueryLimits::default();
    limits.idle_timeout = options.host.idle_timeout.filter(|limit| !limit.is_zero());
    limits.background_ceiling = prepared.background_ceiling;
    limits.wait_for_shells = options.host.background == Background::All;
    limits.strict_exit_status = options.host.strict_exit_status;
    limits
}

pub(super) fn backlog(options: &Options) -> BacklogLimits {
    options.host.backlog
}
