//! A Messages API on loopback for any CLI that `ANTHROPIC_BASE_URL` can point to it.
//!
//! `claude-mock-api [--port PORT] [SCRIPT]` answers as the script file says, and prints the variables
//! to set.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::mock_api::program::run_as_program()
}
