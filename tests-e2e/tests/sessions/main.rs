//! Tests of sessions, on the simulated and on the real CLI.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "tests fail by panicking; not every test uses every shared helper"
)]

#[path = "../kit/support.rs"]
mod support;

mod approvals;
mod callback_context;
mod callback_scheduling;
mod control;
mod conversations;
mod cost;
mod deferred;
mod every_hook;
mod every_operation;
mod fail_closed_hooks;
mod failing_hooks;
mod fake_cli;
mod helpers;
mod hooks;
mod host_panics;
mod interrupts;
mod lagging_readers;
mod lifetime;
mod limits;
mod operations;
mod option_effects;
mod own_process;
mod permission_items;
mod permissions;
mod queue;
mod replay;
mod replayed_turns;
mod run_groups;
mod store_contents;
mod store_files;
#[cfg(unix)]
mod store_loss;
mod store_mirror;
mod store_recovery;
mod store_resume;
mod stress;
mod turns;
mod unknown_messages;
