//! Runs the CLI and records its standard streams. A client starts it instead of `claude`.
//!
//! `CLAUDE_RECORDER_CLI` is the path of the real executable, and `CLAUDE_RECORDER_TO` the directory in
//! which each run creates one `.wire` file.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::recorder::run_as_program()
}
