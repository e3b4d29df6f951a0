//! `claude-sim` once more, because only a program of the same package is built for its tests.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::sim::program::run_as_program()
}
