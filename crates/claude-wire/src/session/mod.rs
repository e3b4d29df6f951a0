//! What must happen next: the session machine, piece by piece. No I/O and no clock; time is an
//! event like any other.
//!
//! What passes between the machine and its driver is exhaustive: a new event or effect does not
//! compile until it is handled. The crates of this workspace depend on each other with exact versions.

#![expect(clippy::exhaustive_enums, reason = "the seam between machine and driver is closed")]

mod backlog;
mod callbacks;
mod calls;
mod ending;
mod event;
mod evidence;
mod fail_rule;
mod flat_map;
mod handshake;
mod life;
mod machine;
mod operations;
mod outbox;
mod query;
mod queue;
mod refusal;
mod requests;
mod run_end;
mod shorten;
mod stop;
mod turns;

pub use backlog::{Backlog, BacklogLimits, Subscriber, Taken};
pub use event::*;
pub use evidence::Evidence;
pub use machine::Machine;
pub use refusal::HookRefusal;
pub use run_end::{Ending, Exit, RunEnd, RunEndLimits, RunEvent, RunStep, RunWarning};
