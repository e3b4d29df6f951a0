//! A player in memory, shaped like a child process.

use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::{Mismatch, Player};
use crate::recording::Exit;

/// What a pipe of Linux holds.
const PIPE: usize = 64 * 1024;

/// A running player, with the client's ends of its streams.
///
/// The streams are as bounded as pipes: a client that does not read makes the player wait, and the
/// other way round. Dropping the process ends it.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlayerProcess {
    /// Where the client writes.
    pub stdin: Option<DuplexStream>,
    /// Where the client reads what the CLI wrote.
    pub stdout: Option<DuplexStream>,
    /// Where the client reads the CLI's stderr.
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

    /// Waits for the end. Like with a child process, stdin is closed first if it is still here.
    ///
    /// # Errors
    ///
    /// When the client did not say what was recorded.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: it can be called again, also after the end.
    pub async fn wait(&mut self) -> Result<Exit, Mismatch> {
        self.stdin = None;
        if let Some(outcome) = &self.outcome {
            return outcome.clone();
        }
        let outcome = match (&mut self.task).await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Nothing but `kill` cancels the task, apart from the end of the runtime.
                Err(_) => Ok(Exit::Signal(SIGKILL)),
            },
        };
        self.outcome.insert(outcome).clone()
    }

    /// Ends the player at once, as SIGKILL would.
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
