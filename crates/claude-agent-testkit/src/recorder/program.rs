//! The program `claude-recorder`.
//!
//! It is two processes. The *front* is the one that the client starts, signals and waits for; it
//! does nothing but wait for the *back*, which runs in a process group of its own, starts the CLI
//! and relays. So a client that kills its child, or its child's group, does not kill the recording:
//! the back learns of it from a pipe whose other end only the front holds, tells the CLI with
//! SIGTERM, and writes down how it ends.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, io, thread};

use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::{CliStreams, ClientStreams, Tape, relay};
use crate::recording::{Exit, Header, today};

const CLI: &str = "CLAUDE_RECORDER_CLI";
const TO: &str = "CLAUDE_RECORDER_TO";
/// What the recording is called; `recorded` without it.
const SCENARIO: &str = "CLAUDE_RECORDER_SCENARIO";
/// Names the pipe to the front; its presence makes a process the back.
const FRONT: &str = "CLAUDE_RECORDER_FRONT";

/// The whole program.
pub fn run_as_program() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let outcome = match (env::var_os(FRONT), env::var_os(CLI)) {
        (_, None) => Err(io::Error::other(format!("{CLI} does not name an executable"))),
        // What is asked before a run is no conversation.
        (_, Some(cli)) if arguments == ["--version"] => pass_through(&cli),
        (Some(front), Some(cli)) => back(&cli, arguments, Path::new(&front)),
        (None, Some(_)) => front(&arguments),
    };
    match outcome {
        Ok(exit) => leave(exit),
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program complains on stderr")]
fn complain(error: &io::Error) {
    eprintln!("claude-recorder: {error}");
}

fn pass_through(cli: &OsStr) -> io::Result<Exit> {
    Ok(Command::new(cli).arg("--version").status()?.into())
}

/// Ends this process in the way in which the CLI ended.
fn leave(exit: Exit) -> ExitCode {
    if let Exit::Signal(number) = exit
        && let Some(signal) = Signal::from_named_raw(number)
    {
        // Does not return for the signals that end a process.
        let _: Result<(), Errno> = kill_process(getpid(), signal);
    }
    match exit {
        Exit::Code(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        Exit::Signal(_) => ExitCode::FAILURE,
    }
}

fn front(arguments: &[OsString]) -> io::Result<Exit> {
    let (read, write) = io::pipe()?;
    // The back inherits the reading end alone: when the front is gone, so is the writing end.
    rustix::io::fcntl_setfd(&read, FdFlags::empty())?;
    let mut back = Command::new(env::current_exe()?)
        .args(arguments)
        .env(FRONT, format!("/dev/fd/{}", read.as_raw_fd()))
        .process_group(0)
        .spawn()?;
    drop(read);
    let status: ExitStatus = back.wait()?;
    drop(write);
    Ok(status.into())
}

fn back(cli: &OsStr, arguments: Vec<OsString>, front: &Path) -> io::Result<Exit> {
    let file = recording_file()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut header = header(&arguments);
    header.cli_version = runtime.block_on(version(cli));
    let tape = Tape::to_file(header, file)?;
    let exit = runtime.block_on(record(cli, arguments, front.to_owned(), &tape));
    // A read of the client's input may still be open; it must not hold the end.
    runtime.shutdown_background();
    if let Some(error) = tape.failure() {
        complain(&error);
    }
    exit
}

/// The version that the CLI says it has, or nothing: a recording without it is better than none.
async fn version(cli: &OsStr) -> String {
    let mut asked = tokio::process::Command::new(cli);
    asked.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let answer = tokio::time::timeout(Duration::from_secs(60), asked.output()).await;
    let text = answer.ok().and_then(Result::ok).map(|output| output.stdout).unwrap_or_default();
    let is_version = |word: &&str| {
        let numbers: Vec<&str> = word.split('.').collect();
        numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok())
    };
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().find(is_version).unwrap_or_default().to_owned()
}

async fn record(
    cli: &OsStr,
    arguments: Vec<OsString>,
    front: PathBuf,
    tape: &Tape,
) -> io::Result<Exit> {
    let mut child = tokio::process::Command::new(cli)
        .args(arguments)
        .env_remove(FRONT)
        .env_remove(CLI)
        .env_remove(TO)
        .env_remove(SCENARIO)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(process) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
        follow(front, process);
    }
    let missing = || io::Error::other("a pipe of the child is missing");
    let cli = CliStreams {
        input: child.stdin.take().ok_or_else(missing)?,
        output: child.stdout.take().ok_or_else(missing)?,
        errors: child.stderr.take().ok_or_else(missing)?,
    };
    let client = ClientStreams {
        input: tokio::io::stdin(),
        output: tokio::io::stdout(),
        errors: tokio::io::stderr(),
    };
    relay(tape, client, cli).await;
    let exit = child.wait().await?.into();
    tape.exited(exit);
    Ok(exit)
}

/// When the front is gone, tells the CLI.
///
/// The CLI may end at the same moment; its number is still its own then, because this process ends
/// right after it has reaped it.
fn follow(front: PathBuf, cli: Pid) {
    thread::spawn(move || {
        let mut front = fs::File::open(front)?;
        io::copy(&mut front, &mut io::sink())?;
        Ok::<_, io::Error>(kill_process(cli, Signal::TERM)?)
    });
}

/// A file of a name that no other run has.
fn recording_file() -> io::Result<fs::File> {
    let directory = env::var_os(TO).map(PathBuf::from).unwrap_or_default();
    fs::create_dir_all(&directory)
        .or_else(|error| if directory.as_os_str().is_empty() { Ok(()) } else { Err(error) })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("{}-{}.wire", now.as_millis(), std::process::id());
    fs::File::create_new(directory.join(name))
}

fn header(arguments: &[OsString]) -> Header {
    let mut header = Header::new(env::var(SCENARIO).unwrap_or_else(|_| "recorded".to_owned()));
    header.date = today();
    header.argv = arguments.iter().map(|text| text.to_string_lossy().into_owned()).collect();
    header.env = variables(env::vars_os());
    header
}

/// What a client sets for the CLI, without secrets and without what is the recorder's own.
fn variables(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let secret =
        |name: &str| ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| name.contains(word));
    all.map(|(name, value)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    })
    .filter(|(name, _)| name.starts_with("CLAUDE_") && !name.starts_with("CLAUDE_RECORDER_"))
    .filter(|(name, _)| !secret(name))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_holds_no_secrets() {
        let all = [
            ("CLAUDE_CODE_ENTRYPOINT", "sdk-rust"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "x"),
            ("CLAUDE_API_KEY", "x"),
            ("CLAUDE_RECORDER_TO", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("HOME", "x"),
        ];
        let found = variables(all.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(found, BTreeMap::from([("CLAUDE_CODE_ENTRYPOINT".into(), "sdk-rust".into())]));
    }
}
