//! A simulated CLI in memory, with the interface of a child process.

use std::fmt;

use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{Model, Sim};
use crate::recording::Exit;

/// The capacity of a pipe on Linux.
const PIPE: usize = 64 * 1024;

/// A simulated CLI that runs in memory. Dropping it ends it.
#[derive(Debug)]
pub struct SimProcess {
    /// The stdin of the CLI. Dropping it closes the stream.
    pub stdin: DuplexStream,
    /// The stdout of the CLI.
    pub stdout: DuplexStream,
    /// The stderr of the CLI.
    pub stderr: DuplexStream,
    handle: SimHandle,
}

/// A [`SimProcess`] without its streams. Dropping it ends the CLI.
pub struct SimHandle {
    model: Model,
    terminate: watch::Sender<bool>,
    killed: watch::Sender<bool>,
    exit: watch::Receiver<Option<Exit>>,
    task: AbortHandle,
}

pub(super) fn start(sim: Sim) -> SimProcess {
    let (stdin, theirs_in) = tokio::io::duplex(PIPE);
    let (theirs_out, stdout) = tokio::io::duplex(PIPE);
    let (theirs_err, stderr) = tokio::io::duplex(PIPE);
    let (terminate, terminated) = watch::channel(false);
    let (killed, mut kill) = watch::channel(false);
    let (exit_in, exit) = watch::channel(None);
    let model = sim.model();
    let task = tokio::spawn(async move {
        let exit = tokio::select! {
            biased;
            // An error means that the handle was dropped, which aborts this task.
            _ = kill.wait_for(|kill| *kill) => Exit::Signal(9),
            exit = sim.run_until(theirs_in, theirs_out, theirs_err, terminated) => exit,
        };
        exit_in.send_replace(Some(exit));
    });
    let handle = SimHandle { model, terminate, killed, exit, task: task.abort_handle() };
    SimProcess { stdin, stdout, stderr, handle }
}

impl SimProcess {
    /// Splits the process into stdin, stdout, stderr and a handle.
    pub fn into_parts(self) -> (DuplexStream, DuplexStream, DuplexStream, SimHandle) {
        (self.stdin, self.stdout, self.stderr, self.handle)
    }

    /// Waits until the CLI exits. Does not close stdin.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn wait(&self) -> Exit {
        self.handle.wait().await
    }

    /// Terminates the CLI as SIGTERM would: it ends its shells and exits with code 143.
    pub fn terminate(&self) {
        self.handle.terminate();
    }

    /// Kills the CLI as SIGKILL would, except that its shells end too.
    pub fn kill(&self) {
        self.handle.kill();
    }

    /// Returns the model of the CLI.
    pub fn model(&self) -> &Model {
        self.handle.model()
    }
}

impl SimHandle {
    /// Waits until the CLI exits.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn wait(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await.map(|exit| *exit) {
            Ok(Some(exit)) => exit,
            // The task panicked, or the runtime was shut down.
            Ok(None) | Err(_) => Exit::Signal(9),
        }
    }

    /// Terminates the CLI as SIGTERM would: it ends its shells and exits with code 143.
    pub fn terminate(&self) {
        self.terminate.send_replace(true);
    }

    /// Kills the CLI as SIGKILL would, except that its shells end too.
    pub fn kill(&self) {
        self.killed.send_replace(true);
    }

    /// Returns the model of the CLI.
    pub fn model(&self) -> &Model {
        &self.model
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for SimHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimHandle").field("exit", &*self.exit.borrow()).finish_non_exhaustive()
    }
}
