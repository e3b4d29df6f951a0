//! The program `claude-sim`.

use std::fs::File;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

use super::{Sim, script_file};
use crate::recording::Exit;

/// The environment variable with the path of the script file. Without it, the model repeats the prompt.
pub const SCRIPT: &str = "CLAUDE_SIM_SCRIPT";

/// The environment variable with the address of a Messages API that answers instead of the script.
/// Requires the feature `mock-api`.
pub const API: &str = "CLAUDE_SIM_API";

/// The environment variable with the path of a log file, to which the arguments and then all bytes from
/// stdin are appended.
pub const LOG: &str = "CLAUDE_SIM_LOG";

/// Runs the program.
pub fn run_as_program() -> ExitCode {
    match from_environment() {
        Ok(sim) => run(sim),
        Err(reason) => {
            report_error(&reason);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program reports errors on stderr")]
fn report_error(reason: &str) {
    eprintln!("claude-sim: {reason}");
}

/// Creates the simulated CLI from the command line and the environment.
fn from_environment() -> Result<Sim, String> {
    let text = |argument: std::ffi::OsString| {
        argument
            .into_string()
            .map_err(|argument| format!("argument is not Unicode: \"{}\"", argument.display()))
    };
    let mut sim = Sim::new();
    for argument in std::env::args_os().skip(1) {
        sim = sim.args([text(argument)?]);
    }
    for (name, value) in std::env::vars_os() {
        sim = sim.env(name.to_string_lossy(), value.to_string_lossy());
    }
    with_script(sim)
}

fn with_script(sim: Sim) -> Result<Sim, String> {
    let sim = match std::env::var(API) {
        Ok(address) => with_api(sim, address)?,
        Err(_) => sim,
    };
    let Some(path) = std::env::var_os(SCRIPT) else { return Ok(sim) };
    let shown = path.to_string_lossy().into_owned();
    let file = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    let script = script_file::parse(&file).map_err(|error| format!("{shown}: {error}"))?;
    let sim = sim.faults(script.faults);
    // With an API, only the faults and the version of the script apply.
    let sim = if std::env::var_os(API).is_some() { sim } else { sim.script(script.model) };
    Ok(match script.version {
        Some(version) => sim.version(version),
        None => sim,
    })
}

#[cfg(feature = "mock-api")]
#[expect(clippy::unnecessary_wraps, reason = "returns an error without the feature")]
fn with_api(sim: Sim, address: String) -> Result<Sim, String> {
    Ok(sim.api(address))
}

#[cfg(not(feature = "mock-api"))]
fn with_api(_: Sim, _: String) -> Result<Sim, String> {
    Err(format!(
        "{API} requires the feature `mock-api`; help: install claude-agent-testkit with \
         `--features mock-api`"
    ))
}

fn run(sim: Sim) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            report_error(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let log = match log(&sim) {
        Ok(log) => log,
        Err(error) => {
            report_error(&format!("{LOG}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let exit = runtime.block_on(async {
        let stdin = LoggedStdin { stdin: pipes::stdin(), log };
        sim.run_until(stdin, pipes::stdout(), tokio::io::stderr(), sigterm_receiver()).await
    });
    // A blocking read of stdin may still be pending; it must not delay the exit.
    runtime.shutdown_background();
    exit_like(exit)
}

/// Opens the log file, if one is configured, and writes the arguments to it.
fn log(sim: &Sim) -> io::Result<Option<File>> {
    let Some(path) = std::env::var_os(LOG) else { return Ok(None) };
    let mut log = File::options().create(true).append(true).open(path)?;
    for argument in &sim.arguments {
        writeln!(log, "{argument}")?;
    }
    Ok(Some(log))
}

/// A stdin whose bytes are also written to a log file.
struct LoggedStdin<R> {
    stdin: R,
    log: Option<File>,
}

impl<R: AsyncRead + Unpin> AsyncRead for LoggedStdin<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stdin).poll_read(context, buffer))?;
        if let Some(log) = &mut self.log {
            log.write_all(&buffer.filled()[before..])?;
        }
        Poll::Ready(Ok(()))
    }
}

/// The standard streams of the process, in a form that can be closed.
#[cfg(unix)]
mod pipes {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd as _;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use tokio::io::{AsyncRead, AsyncWrite, Stdout};
    use tokio::net::unix::pipe;

    /// Returns stdin. If it is a pipe, dropping the stream closes it.
    pub(super) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
        match stdin_pipe() {
            Ok(stdin) => Box::new(stdin),
            Err(_) => Box::new(tokio::io::stdin()),
        }
    }

    fn stdin_pipe() -> io::Result<pipe::Receiver> {
        let owned = io::stdin().as_fd().try_clone_to_owned()?;
        let stdin = pipe::Receiver::from_owned_fd(owned)?;
        // Replaces the original, so that the duplicate is the only open descriptor of the pipe.
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(stdin)
    }

    /// Returns stdout. Shutting the stream down closes it.
    pub(super) fn stdout() -> impl AsyncWrite + Send + Unpin {
        ClosableStdout(tokio::io::stdout())
    }

    struct ClosableStdout(Stdout);

    impl AsyncWrite for ClosableStdout {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            ready!(Pin::new(&mut self.0).poll_shutdown(context))?;
            let nowhere = File::options().write(true).open("/dev/null")?;
            Poll::Ready(Ok(rustix::stdio::dup2_stdout(nowhere)?))
        }
    }
}

#[cfg(not(unix))]
mod pipes {
    pub(super) use tokio::io::{stdin, stdout};
}

/// Returns a channel that becomes `true` with every SIGTERM.
#[cfg(unix)]
fn sigterm_receiver() -> watch::Receiver<bool> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = watch::channel(false);
    if let Ok(mut terminate) = signal(SignalKind::terminate()) {
        tokio::spawn(async move {
            while terminate.recv().await.is_some() {
                sender.send_replace(true);
            }
        });
    }
    receiver
}

#[cfg(not(unix))]
fn sigterm_receiver() -> watch::Receiver<bool> {
    watch::channel(false).1
}

#[cfg(unix)]
fn exit_like(exit: Exit) -> ExitCode {
    use rustix::process::{Signal, getpid, kill_process};
    match exit {
        Exit::Code(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Exit::Signal(number) => {
            if let Some(signal) = Signal::from_named_raw(number) {
                // Does not return if the signal ends the process.
                kill_process(getpid(), signal).ok();
            }
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(unix))]
fn exit_like(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Exit::Signal(_) => ExitCode::FAILURE,
    }
}
