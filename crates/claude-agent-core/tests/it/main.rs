//! Tests of the session machine: single events, random orders of them, and the recorded corpus.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    clippy::naive_bytecount,
    reason = "in a test a panic is the way to fail, and lines are short"
)]

mod purity;
#[path = "../../../claude-wire/tests/it/recording.rs"]
mod recording;
mod seeds;
mod session_callbacks;
mod session_handshake;
mod session_harness;
mod session_hook_denials;
mod session_lost_store;
mod session_mirror;
mod session_model;
mod session_operations;
mod session_query;
mod session_random;
mod session_recorded;
mod session_replays;
mod session_requests;
mod session_shutdown;
mod session_stdin;
mod session_stop;
mod session_termination;
mod session_turns;
