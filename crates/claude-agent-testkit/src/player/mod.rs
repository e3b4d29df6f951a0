//! Plays a recording back as a CLI.
//!
//! [`Player`] writes what the recorded CLI wrote, in order, and where the client spoke in the
//! recording it waits for the client to speak. So a client meets the real CLI's bytes with no CLI.
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
//! // The client has its own ids; the player answers with them.
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
//! A strict player (the default) ends with a [`Mismatch`] as soon as the client says something else
//! than what was recorded, or says it in another order. Lines are compared as JSON: the order of
//! keys and blanks do not matter.
//!
//! No time decides anything: neither when the client speaks nor how long the recorded CLI took.
//! What may come in another order, be missing or be added is only what depends on chance in a client
//! that does several things at once:
//!
//! - A response to a request of the CLI may come at any time after that request, and a message of an
//!   MCP server of the client at any time.
//! - Other lines with no line of the CLI between them may come in any order; lines of one kind, like
//!   prompts, keep theirs.
//! - A response to a request that the CLI cancelled may be missing or added. So may one to a request
//!   that the CLI made after its last result, when the client closes its input.
//! - An interrupt may be missing or added right before the client closes its input, if no message of
//!   the client waits for its result there. The recorded response to a missing one is left out.
//!
//! When the recorded CLI had closed its stdout, the player does so too, and then waits for nothing
//! more: the CLI exited by itself.
//!
//! A lenient player looks at kinds alone: a line of the client counts for the first line of the
//! same type and subtype that the recording still waits for, wherever it stands, and an answer
//! counts for the recorded answer to the same request. Other lines are ignored. When the client has
//! closed its input while more was waited for, the player goes on where the recording has that.
//!
//! # Ids
//!
//! Ids that the client invents differ from run to run: ids of its requests, its uuids and session
//! ids, its names of hook callbacks. The first time that one stands where the recording has one, the
//! two are tied; from then on the client must use its own where the recording uses the recorded one,
//! and the player writes the client's own. A session that the client names on the command line is
//! tied by [`Player::arguments`]. Ids of the CLI are written as they were recorded.

mod client;
mod compare;
mod expected;
mod ids;
mod mismatch;
mod play;
mod process;
mod program;

use claude_wire::frame::DEFAULT_MAX_LINE_BYTES;
use tokio::io::{AsyncRead, AsyncWrite};

use self::client::Client;
use self::ids::Ids;
pub use self::mismatch::Mismatch;
use self::play::Play;
pub use self::process::PlayerProcess;
#[doc(hidden)]
pub use self::program::run_as_program;
use crate::recording::{Exit, Recording};

/// Plays a recording back as a CLI.
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
    /// A strict player that does not wait longer than it must.
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            lenient: false,
            at_recorded_speed: false,
            max_line_bytes: DEFAULT_MAX_LINE_BYTES,
            arguments: Vec::new(),
        }
    }

    /// The client must say what was recorded, in the recorded order where that is no chance.
    pub fn strict(mut self) -> Self {
        self.lenient = false;
        self
    }

    /// The client must say something of the recorded kinds, in any order.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Takes as long as the CLI took from one entry to the next. Times of the client are its own.
    pub fn at_recorded_speed(mut self) -> Self {
        self.at_recorded_speed = true;
        self
    }

    /// The arguments with which the client starts the CLI, without the program's name.
    ///
    /// They are not compared. A session that is named in them is tied to the recorded one.
    pub fn arguments<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// The longest line that is taken from the client. Of a longer one only its size is kept, and
    /// it counts as none of the recorded lines.
    pub fn max_line_bytes(mut self, bytes: usize) -> Self {
        self.max_line_bytes = bytes;
        self
    }

    /// Starts to play in memory, on the current runtime.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(self) -> PlayerProcess {
        PlayerProcess::spawn(self)
    }

    /// Plays on these streams to the end and says how the recorded CLI ended.
    ///
    /// Input is read only where the recording waits for the client, so nothing piles up. A client
    /// that no longer reads does not end the play. A recording that does not show how the CLI ended
    /// ends with code 0.
    ///
    /// # Errors
    ///
    /// When the client did not say what was recorded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the play; what was read and written until then stays so.
    pub async fn run(
        self,
        stdin: impl AsyncRead + Unpin,
        stdout: impl AsyncWrite + Unpin,
        stderr: impl AsyncWrite + Unpin,
    ) -> Result<Exit, Mismatch> {
        let mut ids = Ids::of(&self.recording);
        ids.tie_sessions(&self.recording.header.argv, &self.arguments);
        let client = Client::new(stdin, self.max_line_bytes);
        Play::new(&self, ids, client, stdout, stderr).run().await
    }
}
