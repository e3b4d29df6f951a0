//! The program `claude-player`.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::{env, fs};

use super::Player;
use crate::recording::{Exit, Recording};

const RECORDING: &str = "CLAUDE_PLAYER_RECORDING";
const LENIENT: &str = "CLAUDE_PLAYER_LENIENT";

/// Runs the program.
pub fn run_as_program() -> ExitCode {
    let arguments = env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned());
    match run(arguments.collect()) {
        Ok(exit) => exit_like(exit),
        Err(error) => {
            report_error(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program reports errors on stderr")]
fn report_error(error: &io::Error) {
    eprintln!("claude-player: {error}");
}

fn run(arguments: Vec<String>) -> io::Result<Exit> {
    let recording = recording()?;
    if arguments == ["--version"] || arguments == ["-v"] {
        writeln!(io::stdout(), "{} (Claude Code)", recording.header.cli_version)?;
        return Ok(Exit::Code(0));
    }
    let player = Player::new(recording).arguments(arguments);
    let lenient = env::var_os(LENIENT).is_some_and(|value| !value.is_empty() && value != "0");
    let player = if lenient { player.lenient() } else { player };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let streams = (tokio::io::stdin(), tokio::io::stdout(), tokio::io::stderr());
    let exit = runtime.block_on(player.run(streams.0, streams.1, streams.2));
    // A blocking read of stdin may still be pending; it must not delay the exit.
    runtime.shutdown_background();
    exit.map_err(io::Error::other)
}

fn recording() -> io::Result<Recording> {
    let name = env::var_os(RECORDING).ok_or_else(|| {
        io::Error::other(format!(
            "{RECORDING} is not set; help: set it to the path of a `.wire` file"
        ))
    })?;
    let named = |reason: String| io::Error::other(format!("{}: {reason}", name.display()));
    let file = fs::read(&name).map_err(|error| named(error.to_string()))?;
    Recording::parse(&file).map_err(|error| named(error.to_string()))
}

/// Ends this process with the exit code or signal of the recorded CLI.
fn exit_like(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        Exit::Signal(number) => {
            end_by_signal(number);
            ExitCode::FAILURE
        }
    }
}

/// Sends the signal to this process. Does not return if the signal ends the process.
#[cfg(unix)]
fn end_by_signal(number: i32) {
    use rustix::io::Errno;
    use rustix::process::{Signal, getpid, kill_process};
    if let Some(signal) = Signal::from_named_raw(number) {
        let _: Result<(), Errno> = kill_process(getpid(), signal);
    }
}

#[cfg(not(unix))]
fn end_by_signal(_: i32) {}
