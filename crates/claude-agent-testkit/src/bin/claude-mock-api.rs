//! Serves a scripted Messages API on loopback.
//!
//! `claude-mock-api [--port PORT] [SCRIPT]` answers according to the script file, and prints the
//! environment variables that make a CLI use it.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::mock_api::program::run_as_program()
}
