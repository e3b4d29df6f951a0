//! Options as limits of the machine.

use claude_wire::session::{BacklogLimits, QueryLimits, SessionLimits};

use crate::options::{Background, Options, Prepared};

pub(super) fn session(options: &Options, prepared: &Prepared) -> SessionLimits {
    let mut limits = SessionLimits::default();
    limits.initialize = prepared.initialize_timeout;
    limits.grace.exit = options.host.exit_grace;
    limits.unwritten_bytes = options.host.max_unwritten_bytes;
    (limits.waiting_operations, limits.pending_operations) = options.host.operations;
    (limits.running_callbacks, limits.waiting_callbacks) = options.host.callback_places;
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
    let mut limits = BacklogLimits::default();
    (limits.soft, limits.hard) = options.host.backlog;
    limits
}
