//! Tests of the wire crate: rules on single lines, and all of them on the recorded corpus.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    clippy::naive_bytecount,
    reason = "in a test a panic is the way to fail, and lines are short"
)]

mod bad_input;
mod bare_types;
mod control;
mod corpus;
mod envelope;
mod framing;
mod json_access;
mod launch;
mod launch_options;
mod launch_secrets;
mod launch_settings;
mod launch_values;
mod other_deserializers;
mod partial;
mod published;
mod purity;
mod recording;
mod session_backlog;
mod session_backlog_random;
mod session_callbacks;
mod session_handshake;
mod session_harness;
mod session_hook_denials;
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
mod tool_inputs;
mod transcript_corpus;
mod transcript_fork;
mod transcript_light;
mod transcript_lines;
mod transcript_random;
mod transcript_salvage;
mod transcript_tree;
mod typed_messages;
mod unions;
mod views;
