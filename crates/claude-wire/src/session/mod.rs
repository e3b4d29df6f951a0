//! What must happen next: the session machine, piece by piece. No I/O and no clock; time is an
//! event like any other.
//!
//! What passes between the machine and its driver is exhaustive: a new event or effect does not
//! compile until it is handled. The crates of this workspace depend on each other with exact versions.

#![expect(clippy::exhaustive_enums, reason = "the seam between machine and driver is closed")]

mod background;
mod backlog;
mod callbacks;
mod calls;
mod cost;
mod ending;
mod event;
mod evidence;
mod exit;
mod fail_rule;
mod handshake;
mod limits;
mod machine;
mod operations;
mod orphans;
mod outbox;
mod process;
mod query;
mod queue;
mod refusal;
mod requests;
mod shorten;
mod shutdown;
mod stop;
mod turns;

pub use backlog::{Backlog, BacklogLimits, Subscriber, Taken};
pub use cost::{Cost, RunCost, Tokens};
pub use event::*;
pub use evidence::Evidence;
pub use exit::Exit;
pub use limits::{QueryLimits, SessionLimits};
pub use machine::Machine;
pub use refusal::HookRefusal;
pub use requests::QUESTION_TOOL;
pub use shutdown::{GracePeriods, Shutdown, ShutdownStep};
