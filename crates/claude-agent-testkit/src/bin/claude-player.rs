//! Replays a recording. A client starts it instead of `claude`.
//!
//! `CLAUDE_PLAYER_RECORDING` is the path of the `.wire` file. By default, the first line of the client
//! that differs from the recording ends the program with exit code 1 and a message on stderr. With
//! `CLAUDE_PLAYER_LENIENT=1`, only the kinds of lines are compared.

fn main() -> std::process::ExitCode {
    claude_agent_testkit::player::run_as_program()
}
