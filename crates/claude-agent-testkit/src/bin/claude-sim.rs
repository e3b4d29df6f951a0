//! A `claude` that needs no network, no key and no money. Takes the arguments of the real CLI.
//!
//! `CLAUDE_SIM_SCRIPT` names a file that says what the model does and what goes wrong.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::sim::program::run_as_program()
}
