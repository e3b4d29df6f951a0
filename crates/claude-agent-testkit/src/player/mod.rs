//! Replays a recording instead of the CLI.
//!
//! [`Player`] writes the recorded output of the CLI in order, and waits for the client wherever the
//! recording contains a line of the client. A client thus reads the bytes of the real CLI without a
//! CLI.
//!
//! ```
//! use claude_agent_testkit::{player::Player, recording::{Exit, Recording}};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = Recording::parse(br#"## {"format":1}
//! >> 0.000100 {"type":"control_request","request_id":"req_1","request":{"subtype":"interrupt"}}
//! << 0.200000 {"type":"control_response","response":{"subtype":"success","request_id":"req_1"}}
//! >> 0.300000 EOF
//! EXIT 0.350000 0
//! "#)?;
//! let mut cli = Player::new(recording).start();
//! let mut stdin = cli.stdin.take().ok_or("taken")?;
//! let mut stdout = BufReader::new(cli.stdout.take().ok_or("taken")?).lines();
//!
//! // The client uses its own request ids, and so does the response.
//! let request = r#"{"request":{"subtype":"interrupt"},"request_id":"mine","type":"control_request"}"#;
//! stdin.write_all(format!("{request}\n").as_bytes()).await?;
//! let answer = stdout.next_line().await?.unwrap_or_default();
//! assert!(answer.contains(r#""request_id":"mine""#));
//!
//! drop(stdin);
//! assert_eq!(cli.wait().await?, Exit::Code(0));
//! # Ok(())
//! # }
//! ```
//!
//! # Strict and lenient
//!
//! A strict player (the default) ends with a [`Mismatch`] as soon as the client sends a line that was
//! not recorded, or sends lines in another order. Lines are compared as JSON: whitespace and the order
//! of keys do not matter.
//!
//! The result never depends on time: neither on when the client sends a line nor on how long the
//! recorded CLI took. Only lines whose order depends on the scheduling of a concurrent client may be
//! reordered, missing or added:
//!
//! - A response to a request of the CLI may arrive at any time after that request, and a message of an
//!   MCP server in the client at any time.
//! - Other lines with no line of the CLI between them may arrive in any order; lines of the same kind,
//!   such as prompts, keep their order.
//! - A response to a request that the CLI cancelled may be missing or added. The same is true of a
//!   request that the CLI sent after its last result, when the client closes stdin.
//! - An interrupt may be missing or added right before the client closes stdin, if no message of the
//!   client is unanswered at that point. The recorded response to a missing interrupt is omitted.
//!
//! Where the recorded CLI closed its stdout, the player closes its own and no longer waits for the
//! client: the CLI exited on its own.
//!
//! A lenient player compares kinds only: a line of the client matches the first pending line with the
//! same type and subtype, at any position, and a response matches the recorded response to the same
//! request. Other lines are ignored. If the client closes stdin early, the player continues at the
//! point where the recorded client closed it.
//!
//! # Ids
//!
//! Ids that the client generates differ from run to run: request ids, UUIDs, session ids, names of hook
//! callbacks. The first time that the client sends an id where the recording has one, the two are
//! bound. From then on the client must use its id wherever the recording uses the recorded one, and the
//! player writes the client's id. [`Player::arguments`] binds a session id of the command line. Ids of
//! the CLI are written as recorded.

mod compare;
mod expected;
mod id_map;
mod input;
mod mismatch;
mod process;
mod program;
mod replay;

use claude_wire::frame::DEFAULT_MAX_LINE_BYTES;
use tokio::io::{AsyncRead, AsyncWrite};

use self::id_map::IdMap;
use self::input::ClientReader;
pub use self::mismatch::Mismatch;
pub use self::process::PlayerProcess;
#[doc(hidden)]
pub use self::program::run_as_program;
use self::replay::RecordingReplay;
use crate::recording::{Exit, Recording};

/// Replays a recording instead of the CLI.
#[must_use]
#[derive(Debug, Clone)]
pub struct Player {
    recording: Recording,
    lenient: bool,
    at_recorded_speed: bool,
    max_line_bytes: usize,
    arguments: Vec<String>,
}

impl Player {
    /// Creates a strict player that replays without delays.
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            lenient: false,
            at_recorded_speed: false,
            max_line_bytes: DEFAULT_MAX_LINE_BYTES,
            arguments: Vec::new(),
        }
    }

    /// Requires the recorded lines from the client, in the recorded order except where it depends on
    /// scheduling. This is the default.
    pub fn strict(mut self) -> Self {
        self.lenient = false;
        self
    }

    /// Requires only lines of the recorded kinds from the client, in any order.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Waits between entries as long as the recorded CLI did. By default, entries are written without
    /// delay.
    pub fn at_recorded_speed(mut self) -> Self {
        self.at_recorded_speed = true;
        self
    }

    /// Sets the arguments with which the client starts the CLI, without the program name.
    ///
    /// They are not compared. A session id in them is bound to the recorded one. Replaces earlier
    /// arguments.
    pub fn arguments<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the maximum length of a client line in bytes. A longer line matches none of the recorded
    /// lines. Defaults to [`DEFAULT_MAX_LINE_BYTES`].
    pub fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }

    /// Starts the replay in memory, on the current Tokio runtime.
    ///
    /// # Panics
    ///
    /// Panics if called outside a Tokio runtime.
    pub fn start(self) -> PlayerProcess {
        PlayerProcess::spawn(self)
    }

    /// Replays on these streams to the end and returns how the recorded CLI ended.
    ///
    /// Stdin is read only where the recording waits for the client, so the memory use is bounded. A
    /// client that no longer reads does not end the replay. A recording without an exit status ends
    /// with code 0.
    ///
    /// # Errors
    ///
    /// Returns an error if the client deviates from the recording.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the replay. Bytes that were read or written are not restored.
    pub async fn run(
        self,
        stdin: impl AsyncRead + Unpin,
        stdout: impl AsyncWrite + Unpin,
        stderr: impl AsyncWrite + Unpin,
    ) -> Result<Exit, Mismatch> {
        let mut ids = IdMap::from_recording(&self.recording);
        ids.bind_sessions(&self.recording.header.argv, &self.arguments);
        let client = ClientReader::new(stdin, self.max_line_bytes);
        RecordingReplay::new(&self, ids, client, stdout, stderr).run().await
    }
}
