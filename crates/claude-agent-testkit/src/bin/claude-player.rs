//! Used in place of `claude` by any client: plays a recording back.
//!
//! `CLAUDE_PLAYER_RECORDING` names the `.wire` file. With `CLAUDE_PLAYER_LENIENT=1` the client need
//! not say exactly what was recorded; without it, the first difference ends the program with code 1
//! and a message on stderr.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::player::run_as_program()
}
