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
mod tool_inputs;
mod transcript_corpus;
mod transcript_cost;
mod transcript_fork;
mod transcript_light;
mod transcript_lines;
mod transcript_random;
mod transcript_salvage;
mod transcript_shapes;
mod transcript_tree;
mod typed_messages;
mod unions;
mod views;
