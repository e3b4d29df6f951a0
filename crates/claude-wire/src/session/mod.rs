//! The session machine: decides what happens in a run, without I/O and without a clock. Time is an
//! event like any other.
//!
//! The enums between the machine and its driver are exhaustive, so that a new event or effect does
//! not compile until it is handled. The crates of this workspace depend on each other with exact
//! versions.

#![expect(clippy::exhaustive_enums, reason = "the driver must handle every variant")]

mod background;
mod backlog;
mod callbacks;
mod catch_up;
mod cost;
mod end;
mod event;
mod evidence;
mod exit;
mod failure_rule;
mod handshake;
mod hold;
mod hook_denial;
mod host_commands;
mod limits;
mod machine;
mod mirror;
mod mirror_event;
mod mirror_frame;
mod operations;
mod orphans;
mod outbox;
mod process;
mod query;
mod queue;
mod requests;
mod sequential;
mod shorten;
mod shutdown;
mod stop;
mod turns;

pub use backlog::{Backlog, BacklogLimits, BacklogRead, Subscriber};
pub use cost::{Cost, RunCost, Tokens};
pub use event::*;
pub use evidence::Evidence;
pub use exit::Exit;
pub use hook_denial::HookDenial;
pub use limits::{MirrorLimits, QueryLimits, SessionLimits};
pub use machine::Machine;
pub use mirror_event::*;
pub use requests::QUESTION_TOOL;
pub use shutdown::{GracePeriods, Shutdown, ShutdownStep};
