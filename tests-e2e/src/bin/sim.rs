//! `claude-sim` again, because cargo builds only programs of the same package for its tests.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::sim::program::run_as_program()
}
