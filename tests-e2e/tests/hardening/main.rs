//! Secrets are never shown, and unusual values in options are not misinterpreted. A separate
//! program, because it records everything that is traced in its process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "tests fail by panicking; not every test uses every shared helper"
)]

#[path = "../kit/support.rs"]
mod support;

mod confidential_options;
mod debug;
mod floods;
mod guard;
mod injection;
mod secrets;
mod trace_recorder;
