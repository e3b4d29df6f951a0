//! Tests of the test kit.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    reason = "in a test a panic is the way to fail"
)]

mod client;
mod deferred;
mod faults;
mod hook_responses;
mod mock_api;
mod player;
mod recorder;
mod script_file;
mod sim;
