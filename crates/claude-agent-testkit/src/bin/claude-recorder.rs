//! Used in place of `claude` by any client: passes everything on and writes it down.
//!
//! `CLAUDE_RECORDER_CLI` names the real executable, `CLAUDE_RECORDER_TO` the directory in which each
//! run leaves one `.wire` file.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::recorder::run_as_program()
}
