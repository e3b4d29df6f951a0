//! Tests of in-process tools, MCP servers and structured output, on the simulated and on the real
//! CLI.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "in a test a panic is the way to fail; not all tests need all of what they share"
)]

#[path = "../sessions/play.rs"]
mod play;
#[path = "../sessions/puppet.rs"]
mod puppet;
#[path = "../kit/support.rs"]
mod support;

mod answers;
mod bridge;
mod calc;
mod calls;
mod changing;
mod elicitation;
mod many;
mod outside;
mod rmcp_server;
mod servers;
