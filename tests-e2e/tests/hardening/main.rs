//! Secrets are never shown, and unusual values in options are not misinterpreted. A separate
//! program, because it records everything that is traced in its process.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "in a test a panic is the way to fail; not all tests need all of what they share"
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
