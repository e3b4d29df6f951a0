//! Runs the CLI as a local process.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::task::{Context, Poll, ready};

use claude_agent_core::session::ShutdownStep;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::pipe::{OutputPipe, Stdin};
use super::{Child, Connecting, Connection, Exit, Launch, Running, Transport};
use crate::cli::Program;
use crate::panics;
use crate::process::{Ended, Process, Started};

/// Starts an executable.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    program: Program,
}

impl Local {
    pub(crate) fn new(program: impl Into<Program>) -> Self {
        Self { program: program.into() }
    }
}

impl Local {
    /// Starts the executable with these arguments as a process of the run.
    pub(super) async fn start(
        &self,
        launch: Launch,
        arguments: Vec<String>,
    ) -> io::Result<Connection> {
        let spec = launch.spec(&self.program, &arguments);
        let started = Process::start(spec, launch.grace).await?;
        let Started { process, stdin, stdout, stderr } = started;
        let child = LocalChild::new(process.clone());
        let (stdin, stdout, stderr) = with_io(|| {
            Ok((
                ChildStdin::from_std(stdin)?,
                ChildStdout::from_std(stdout)?,
                ChildStderr::from_std(stderr)?,
            ))
        })?;
        Ok(Connection {
            input: Box::new(Stdin::new(stdin)),
            output: Box::new(OutputPipe::new(stdout, process.clone())),
            errors: Some(Box::new(OutputPipe::new(stderr, process))),
            child: Running::Local(child),
        })
    }
}

/// The runtime was built without I/O.
#[derive(Debug)]
pub(crate) struct NoIo;

impl fmt::Display for NoIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the Tokio runtime has no I/O")
    }
}

impl std::error::Error for NoIo {}

/// Opens pipes for Tokio, which panics on a runtime without I/O.
pub(super) fn with_io<T>(open: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    panics::catch(open).unwrap_or_else(|_| Err(io::Error::other(NoIo)))
}

impl Transport for Local {
    fn connect(&self, launch: Launch) -> Connecting<'_> {
        let arguments = launch.args().to_vec();
        Box::pin(self.start(launch, arguments))
    }
}

/// A local process. Dropping it ends the process, even if other handles exist.
pub(crate) struct LocalChild {
    process: Process,
    ended: Pin<Box<dyn Future<Output = io::Result<Ended>> + Send>>,
}

impl LocalChild {
    fn new(process: Process) -> Self {
        let waited_for = process.clone();
        Self { process, ended: Box::pin(async move { waited_for.wait().await }) }
    }

    pub(super) fn end_at_once(&self) {
        self.process.end_at_once();
    }

    pub(super) fn process(&self) -> Process {
        self.process.clone()
    }
}

impl Child for LocalChild {
    fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        if self.process.has_ended()
            && let Some(status) = self.process.exit_status()
        {
            return Poll::Ready(Ok(exit(status)));
        }
        Poll::Ready(match ready!(self.ended.as_mut().poll(context))? {
            Ended::Status(status) => Ok(exit(status)),
            Ended::Unknown => Ok(Exit::Unknown),
            Ended::NotKilled => Err(not_killed(self.process.pid())),
        })
    }

    fn terminate(&mut self) {
        self.process.terminate();
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn pid(&self) -> Option<u32> {
        Some(self.process.pid())
    }
}

impl Drop for LocalChild {
    fn drop(&mut self) {
        self.process.shut_down(ShutdownStep::CloseStdin);
    }
}

fn exit(status: ExitStatus) -> Exit {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return Exit::Signal(signal);
        }
    }
    status.code().map_or(Exit::Unknown, Exit::Code)
}

pub(crate) fn not_killed(pid: u32) -> io::Error {
    let message = format!(
        "the CLI (process {pid}) is still running: the host is not permitted to signal it; help: give \
         a host that uses the option `user` the capability CAP_KILL"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}
