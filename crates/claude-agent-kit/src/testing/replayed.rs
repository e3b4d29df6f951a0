//! Runs with a recording.

use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex};

use claude_agent_testkit::player::{Mismatch, Player};
use claude_agent_testkit::recording::{self, Recording};
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::PIPE;
use crate::Options;
use crate::cli::CliVersion;
use crate::lock::lock;
use crate::transport::{ChildFuture, Connecting, Connection, Exit, Launch, Transport};

impl Options {
    /// Replays a recording instead of starting a CLI: a [`Recording`], which is replayed strictly, or a
    /// [`Replay`], which also returns the mismatch. Replaces an earlier
    /// [`transport`](Self::transport). Default: the real CLI.
    ///
    /// Every run replays the recording from its start. If the messages of the host differ from the
    /// recording, the run fails, and the stderr text of the error contains the difference.
    pub fn replayed(self, replay: impl Into<Replay>) -> Self {
        self.transport(replay.into())
    }
}

/// A recording to be replayed. Clones share the mismatch.
///
/// A strict replay accepts the recorded messages, with other IDs and with concurrent messages in any
/// order. A lenient replay accepts any message of the recorded types, in any order.
///
/// ```
/// use claude_agent_kit::testing::{Recorder, Replay, Reply, Script};
/// use claude_agent_kit::{Options, query};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = Script::new().otherwise([Reply::text("Hello.")]);
/// let recorder = Recorder::new();
/// query("Hi", Options::new().simulated(script).recorded_to(&recorder)).await?.collect().await;
/// let [recording] = &recorder.recordings()?[..] else { panic!("one run was recorded") };
///
/// let replay = Replay::strict(recording.clone());
/// let answer = query("Hi", Options::new().replayed(&replay)).await?.collect().await;
/// assert_eq!(answer.into_result()?.text(), "Hello.");
/// assert_eq!(replay.mismatch(), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Replay {
    player: Player,
    version: Option<CliVersion>,
    mismatch: Arc<Mutex<Option<Mismatch>>>,
}

impl Replay {
    /// Creates a replay that accepts only the recorded messages.
    pub fn strict(recording: Recording) -> Self {
        Self::new(&recording.header.cli_version.clone(), Player::new(recording).strict())
    }

    /// Creates a replay that accepts any message of the recorded types, in any order.
    pub fn lenient(recording: Recording) -> Self {
        Self::new(&recording.header.cli_version.clone(), Player::new(recording).lenient())
    }

    fn new(version: &str, player: Player) -> Self {
        Self { player, version: CliVersion::find_in(version), mismatch: Arc::default() }
    }

    /// Returns the first difference between the recording and the messages of the host, in any run so
    /// far.
    pub fn mismatch(&self) -> Option<Mismatch> {
        lock(&self.mismatch).clone()
    }
}

impl From<Recording> for Replay {
    /// Creates a strict replay.
    fn from(recording: Recording) -> Self {
        Self::strict(recording)
    }
}

impl From<&Self> for Replay {
    fn from(replay: &Self) -> Self {
        replay.clone()
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("mismatch", &self.mismatch()).finish_non_exhaustive()
    }
}

impl Transport for Replay {
    fn cli_version(&self) -> Option<CliVersion> {
        self.version
    }

    fn connect(&self, launch: Launch) -> Connecting<'_> {
        let player = self.player.clone().arguments(launch.args());
        let (stdin, input) = duplex(PIPE);
        let (stdout, output) = duplex(PIPE);
        let (stderr, errors) = duplex(PIPE);
        let playing = play(player, self.mismatch.clone(), input, output, errors);
        let mut task = Task(tokio::spawn(playing));
        // An aborted task, or one whose runtime was shut down, counts as a killed process.
        let child =
            ChildFuture::new(
                async move { (&mut task.0).await.map_or(Exit::Signal(9), Exit::from) },
            );
        Box::pin(ready(Ok(Connection::new(stdin, stdout, child).stderr(stderr))))
    }
}

async fn play(
    player: Player,
    mismatch: Arc<Mutex<Option<Mismatch>>>,
    stdin: DuplexStream,
    stdout: DuplexStream,
    mut stderr: DuplexStream,
) -> recording::Exit {
    match player.run(stdin, stdout, &mut stderr).await {
        Ok(exit) => exit,
        Err(difference) => {
            let text = format!("the host does not follow the recording: {difference}\n");
            lock(&mismatch).get_or_insert(difference);
            // The mismatch is also available if the host does not read stderr.
            drop(stderr.write_all(text.as_bytes()).await);
            recording::Exit::Code(1)
        }
    }
}

/// A task that ends when it is dropped.
struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
