//! The session machine: decides what happens in a run, without I/O and without a clock. Time is an
//! event like any other.
//!
//! The enums between the machine and its driver are exhaustive, so that a new event or effect does
//! not compile until it is handled. The kit depends on the exact version of this crate.

#![expect(clippy::exhaustive_enums, reason = "the driver must handle every variant")]

mod agent_metadata;
mod background;
mod callbacks;
mod catch_up;
mod cost;
mod end;
mod event;
mod evidence;
mod failure_rule;
mod handshake;
mod hold;
mod host_commands;
mod limits;
mod machine;
mod mirror;
mod mirror_event;
mod operations;
mod orphans;
mod outbox;
mod process;
mod query;
mod queue;
mod requests;
mod shorten;
mod shutdown;
mod stop;
mod turns;

pub use agent_metadata::{is_metadata_entry, metadata_entry, metadata_file};
pub use cost::RunCost;
pub use event::*;
pub use evidence::Evidence;
pub use limits::{MirrorLimits, QueryLimits, SessionLimits};
pub use machine::Machine;
pub use mirror_event::*;
pub use requests::QUESTION_TOOL;
pub use shutdown::{GracePeriods, Shutdown, ShutdownStep};
