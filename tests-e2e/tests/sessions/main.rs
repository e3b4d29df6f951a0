//! Tests of sessions, on the simulated and on the real CLI.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "in a test a panic is the way to fail; not all tests need all of what they share"
)]

#[path = "../kit/support.rs"]
mod support;

mod alone;
mod callback_context;
mod control;
mod deferred;
mod drift;
mod every_hook;
mod every_operation;
mod failing_hooks;
mod hooks;
mod host_code;
mod interrupts;
mod lifetime;
mod limits;
mod money;
mod one_thread;
mod operations;
mod option_effects;
mod permission_items;
mod permissions;
mod play;
mod puppet;
mod queue;
mod refusals;
mod replay;
mod run_groups;
mod slow_readers;
mod starting_points;
mod stress;
mod turns;
