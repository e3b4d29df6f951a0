//! Tests of queries, options and processes, on the simulated and on the real CLI.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    reason = "tests fail by panicking"
)]

mod support;

mod decoding;
mod dependencies;
mod doctor;
mod drops;
mod happy_path;
mod isolation;
mod layers;
mod leaks;
mod memory;
mod options_real;
mod probe;
mod readme;
mod real_cli;
mod secrets;
mod signal_dispositions;
mod startup;
mod streams;
mod termination;
mod termination_order;
mod testing;
mod versions;
