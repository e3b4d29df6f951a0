//! The program `claude-recorder`.
//!
//! The program consists of two processes. The client starts, signals and waits for the *front*, which
//! only waits for the *back*. The back runs in its own process group, starts the CLI and relays. A
//! client that kills its child, or the process group of its child, therefore does not kill the
//! recording: the back holds a pipe whose other end only the front has open, sends SIGTERM to the CLI
//! when that pipe closes, and records how the CLI ends.

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

use super::{CliStreams, ClientStreams, RecordingWriter, relay};
use crate::recording::{Exit, Header, today};

const CLI: &str = "CLAUDE_RECORDER_CLI";
const TO: &str = "CLAUDE_RECORDER_TO";
/// The scenario name of the recording; defaults to `recorded`.
const SCENARIO: &str = "CLAUDE_RECORDER_SCENARIO";
/// The path of the pipe to the front; set only for the back.
const FRONT: &str = "CLAUDE_RECORDER_FRONT";

/// Runs the program.
pub fn run_as_program() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let outcome = match (env::var_os(FRONT), env::var_os(CLI)) {
        (_, None) => {
            let error = format!("{CLI} is not set; help: set it to the path of the CLI");
            Err(io::Error::other(error))
        }
        // A version check before the run is not part of a conversation.
        (_, Some(cli)) if arguments == ["--version"] => pass_through(&cli),
        (Some(front), Some(cli)) => back(&cli, arguments, Path::new(&front)),
        (None, Some(_)) => front(&arguments),
    };
    match outcome {
        Ok(exit) => exit_like(exit),
        Err(error) => {
            report_error(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program reports errors on stderr")]
fn report_error(error: &io::Error) {
    eprintln!("claude-recorder: {error}");
}

fn pass_through(cli: &OsStr) -> io::Result<Exit> {
    Ok(Command::new(cli).arg("--version").status()?.into())
}

/// Ends this process with the exit code or signal of the CLI.
fn exit_like(exit: Exit) -> ExitCode {
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
    // The back inherits the read end only, so the write end closes when the front exits.
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
    let writer = RecordingWriter::to_file(header, file)?;
    let exit = runtime.block_on(record(cli, arguments, front.to_owned(), &writer));
    // A blocking read of stdin may still be pending; it must not delay the exit.
    runtime.shutdown_background();
    if let Some(error) = writer.take_error() {
        report_error(&error);
    }
    exit
}

/// Returns the version that the CLI prints, or an empty string: a recording without a version is better
/// than none.
async fn version(cli: &OsStr) -> String {
    let mut command = tokio::process::Command::new(cli);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let text = output.ok().and_then(Result::ok).map(|output| output.stdout).unwrap_or_default();
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
    writer: &RecordingWriter,
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
        terminate_after(front, process);
    }
    let missing = || io::Error::other("the CLI process has no pipe for a standard stream");
    let cli = CliStreams {
        stdin: child.stdin.take().ok_or_else(missing)?,
        stdout: child.stdout.take().ok_or_else(missing)?,
        stderr: child.stderr.take().ok_or_else(missing)?,
    };
    let client = ClientStreams {
        stdin: tokio::io::stdin(),
        stdout: tokio::io::stdout(),
        stderr: tokio::io::stderr(),
    };
    relay(writer, client, cli).await;
    let exit = child.wait().await?.into();
    writer.record_exit(exit);
    Ok(exit)
}

/// Sends SIGTERM to the CLI when the front exits.
///
/// The CLI may exit at the same moment. Its process ID cannot have been reused by then, because this
/// process exits right after it reaps the CLI.
fn terminate_after(front: PathBuf, cli: Pid) {
    thread::spawn(move || {
        let mut front = fs::File::open(front)?;
        io::copy(&mut front, &mut io::sink())?;
        Ok::<_, io::Error>(kill_process(cli, Signal::TERM)?)
    });
}

/// Creates a file whose name no other run uses.
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

/// Returns the variables that the client sets for the CLI, without secrets and without those of the
/// recorder.
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
    fn the_header_contains_no_secrets() {
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
