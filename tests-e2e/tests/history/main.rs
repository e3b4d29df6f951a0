//! Tests of the history: compared with the official SDKs, and beside the real CLI.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "tests fail by panicking; not every test uses every shared helper"
)]

#[path = "../kit/support.rs"]
mod support;

mod beside_cli;
mod compare;
mod conversation;
mod deviations;
mod differential;
mod extra;
mod feature;
mod folder;
mod jobs;
mod ours;
mod random;
mod state;
mod stored;
mod subjects;
