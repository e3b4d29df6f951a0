//! A player that runs in memory, with the interface of a child process.

use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::{Mismatch, Player};
use crate::recording::Exit;

/// The capacity of a pipe on Linux.
const PIPE: usize = 64 * 1024;

/// A running player and the client's ends of its streams.
///
/// The streams are bounded like pipes: a client that does not read makes the player wait, and vice
/// versa. Dropping the process ends it.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlayerProcess {
    /// The stdin of the CLI, which the client writes to.
    pub stdin: Option<DuplexStream>,
    /// The stdout of the CLI.
    pub stdout: Option<DuplexStream>,
    /// The stderr of the CLI.
    pub stderr: Option<DuplexStream>,
    task: JoinHandle<Result<Exit, Mismatch>>,
    outcome: Option<Result<Exit, Mismatch>>,
}

impl PlayerProcess {
    pub(super) fn spawn(player: Player) -> Self {
        let (stdin, input) = duplex(PIPE);
        let (stdout, output) = duplex(PIPE);
        let (stderr, errors) = duplex(PIPE);
        Self {
            stdin: Some(stdin),
            stdout: Some(stdout),
            stderr: Some(stderr),
            task: tokio::spawn(player.run(input, output, errors)),
            outcome: None,
        }
    }

    /// Waits until the player ends. As with [`tokio::process::Child`], stdin is closed first if it has
    /// not been taken.
    ///
    /// # Errors
    ///
    /// Returns an error if the client deviated from the recording.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it can be called again, also after the player has ended.
    pub async fn wait(&mut self) -> Result<Exit, Mismatch> {
        self.stdin = None;
        if let Some(outcome) = &self.outcome {
            return outcome.clone();
        }
        let outcome = match (&mut self.task).await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only `kill` or a shutdown of the runtime cancels the task.
                Err(_) => Ok(Exit::Signal(SIGKILL)),
            },
        };
        self.outcome.insert(outcome).clone()
    }

    /// Ends the player immediately, as SIGKILL would.
    pub fn kill(&self) {
        self.task.abort();
    }
}

const SIGKILL: i32 = 9;

impl Drop for PlayerProcess {
    fn drop(&mut self) {
        self.task.abort();
    }
}
