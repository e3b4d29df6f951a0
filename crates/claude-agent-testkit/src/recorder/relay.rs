//! Moves bytes between a client and a CLI and notes them on the way.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Tape;
use crate::recording::Channel;

/// What is read at once. Nothing is read while the other side does not take what was read before,
/// so this is also all that a relay holds of a stream.
const CHUNK: usize = 64 * 1024;

/// The client's ends of the three streams.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a process has these three streams")]
pub struct ClientStreams<I, O, E> {
    /// Where the client writes what the CLI shall read.
    pub input: I,
    /// Where the client reads what the CLI wrote.
    pub output: O,
    /// Where the client reads the CLI's stderr.
    pub errors: E,
}

/// The CLI's ends of the three streams.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a process has these three streams")]
pub struct CliStreams<I, O, E> {
    /// The CLI's stdin.
    pub input: I,
    /// The CLI's stdout.
    pub output: O,
    /// The CLI's stderr.
    pub errors: E,
}

/// Relays until the CLI has closed its stdout and its stderr.
///
/// Every byte, and the end of stdin and stdout, is noted before it is passed on, so that a response
/// never stands before its request and an end never before its cause. The end of the client's input
/// is passed on by closing the CLI's; a side that no longer takes bytes does not stop the noting of
/// what the other one says.
///
/// # Cancel safety
///
/// Dropping the future stops the relay; what was noted until then stays on the tape.
pub async fn relay<CI, CO, CE, I, O, E>(
    tape: &Tape,
    client: ClientStreams<CI, CO, CE>,
    cli: CliStreams<I, O, E>,
) where
    CI: AsyncRead + Unpin,
    CO: AsyncWrite + Unpin,
    CE: AsyncWrite + Unpin,
    I: AsyncWrite + Unpin,
    O: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    let input = async {
        pump(tape, Channel::Sent, client.input, cli.input).await;
        // The client may close its input long before the CLI is done, never the other way round.
        std::future::pending::<()>().await;
    };
    let output = async {
        tokio::join!(
            pump(tape, Channel::Received, cli.output, client.output),
            pump(tape, Channel::Stderr, cli.errors, client.errors),
        );
    };
    tokio::select! {
        biased;
        () = output => {}
        () = input => {}
    }
}

/// Moves everything from one stream to another; the target is closed at the end.
async fn pump(
    tape: &Tape,
    channel: Channel,
    mut from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
) {
    let mut chunk = vec![0; CHUNK];
    let mut to = Some(to);
    loop {
        // A read error is the end of the stream: nothing can be relayed after it.
        let count = match from.read(&mut chunk).await {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        tape.bytes(channel, &chunk[..count]);
        if let Some(open) = &mut to
            && write(open, &chunk[..count]).await.is_err()
        {
            // Nobody reads any more. What is still said is worth noting, so reading goes on.
            to = None;
        }
    }
    match channel {
        Channel::Sent => tape.input_closed(),
        Channel::Received => tape.output_closed(),
        Channel::Stderr => {}
    }
    if let Some(mut open) = to {
        // The stream is dropped right after, which closes it whatever the answer here.
        drop(open.shutdown().await);
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    // A client waits for each line: nothing may stay in a buffer.
    to.flush().await
}
