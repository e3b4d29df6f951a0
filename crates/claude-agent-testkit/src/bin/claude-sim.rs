//! Simulates `claude` without network access, an API key or cost. Accepts the arguments of the real CLI.
//!
//! `CLAUDE_SIM_SCRIPT` is the path of a script file with the answers of the model and the faults.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::sim::program::run_as_program()
}
