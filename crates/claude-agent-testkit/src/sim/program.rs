//! The program `claude-sim`: the simulation with real pipes.

use std::fs::File;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

use super::{Sim, script_file};
use crate::recording::Exit;

/// Names the file with the script; without it the model says what it has heard.
pub const SCRIPT: &str = "CLAUDE_SIM_SCRIPT";

/// Names the address of a Messages API to ask in place of what a script says. Needs the feature
/// `mock-api`.
pub const API: &str = "CLAUDE_SIM_API";

/// Names a file to which the arguments are written, and then everything that is read from stdin.
pub const LOG: &str = "CLAUDE_SIM_LOG";

/// The whole program.
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

/// What the command line and the environment say.
fn from_environment() -> Result<Sim, String> {
    let text = |what: std::ffi::OsString| {
        what.into_string().map_err(|what| format!("not Unicode: {}", what.to_string_lossy()))
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
    // With an API to ask, the script says what goes wrong and no more.
    let sim = if std::env::var_os(API).is_some() { sim } else { sim.script(script.model) };
    Ok(match script.version {
        Some(version) => sim.version(version),
        None => sim,
    })
}

#[cfg(feature = "mock-api")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature there is an error")]
fn with_api(sim: Sim, address: String) -> Result<Sim, String> {
    Ok(sim.api(address))
}

#[cfg(not(feature = "mock-api"))]
fn with_api(_: Sim, _: String) -> Result<Sim, String> {
    Err(format!("{API} is set; help: install claude-agent-testkit with the feature `mock-api`"))
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
    // A read of stdin may still be under way in a thread of the runtime.
    runtime.shutdown_background();
    exit_like(exit)
}

/// Opens the log, if one is wanted, and writes the arguments to it.
fn log(sim: &Sim) -> io::Result<Option<File>> {
    let Some(path) = std::env::var_os(LOG) else { return Ok(None) };
    let mut log = File::options().create(true).append(true).open(path)?;
    for argument in &sim.arguments {
        writeln!(log, "{argument}")?;
    }
    Ok(Some(log))
}

/// A stdin whose bytes are written to a log.
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

/// The streams of the process, which can be closed.
#[cfg(unix)]
mod pipes {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd as _;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use tokio::io::{AsyncRead, AsyncWrite, Stdout};
    use tokio::net::unix::pipe;

    /// Closed when it is dropped, if it is a pipe.
    pub(super) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
        match stdin_pipe() {
            Ok(stdin) => Box::new(stdin),
            Err(_) => Box::new(tokio::io::stdin()),
        }
    }

    fn stdin_pipe() -> io::Result<pipe::Receiver> {
        let owned = io::stdin().as_fd().try_clone_to_owned()?;
        let stdin = pipe::Receiver::from_owned_fd(owned)?;
        // The copy is to be the only one.
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(stdin)
    }

    /// Closed when it is shut down.
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

/// Becomes true with every SIGTERM.
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
                // It does not return if it works.
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
