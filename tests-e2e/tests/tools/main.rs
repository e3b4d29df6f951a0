//! Tests of in-process tools, MCP servers and structured output, on the simulated and on the real
//! CLI.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "tests fail by panicking; not every test uses every shared helper"
)]

#[path = "../sessions/fake_cli.rs"]
mod fake_cli;
#[path = "../sessions/helpers.rs"]
mod helpers;
#[path = "../kit/support.rs"]
mod support;

mod bridge;
mod calc;
mod calls;
mod changeable_servers;
mod command_lines;
mod elicitation;
mod external_servers;
mod many_calls;
mod rmcp_server;
mod servers;
mod structured_output;
