//! Copies bytes between a client and a CLI and records them on the way.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::RecordingWriter;
use crate::recording::Channel;

/// The buffer size of one stream. Nothing is read while the other side has not accepted the previous
/// chunk, so a relay never buffers more than this.
const CHUNK: usize = 64 * 1024;

/// The client's ends of the three streams.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a process has these three streams")]
pub struct ClientStreams<I, O, E> {
    /// The stream that the client writes to.
    pub stdin: I,
    /// The stream from which the client reads the CLI's stdout.
    pub stdout: O,
    /// The stream from which the client reads the CLI's stderr.
    pub stderr: E,
}

/// The CLI's ends of the three streams.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a process has these three streams")]
pub struct CliStreams<I, O, E> {
    /// The CLI's stdin.
    pub stdin: I,
    /// The CLI's stdout.
    pub stdout: O,
    /// The CLI's stderr.
    pub stderr: E,
}

/// Relays until the CLI has closed its stdout and its stderr.
///
/// Every byte, and EOF on stdin and stdout, is recorded before it is forwarded, so that a response is
/// never recorded before its request. When the client closes its stdin, the CLI's stdin is closed too.
/// If one side no longer accepts bytes, the traffic of the other side is still recorded.
///
/// # Cancel safety
///
/// Dropping the future stops the relay. Everything recorded so far remains in the recording.
pub async fn relay<CI, CO, CE, I, O, E>(
    writer: &RecordingWriter,
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
        forward(writer, Channel::Sent, client.stdin, cli.stdin).await;
        // The client may close stdin long before the CLI exits; only the CLI ends the relay.
        std::future::pending::<()>().await;
    };
    let output = async {
        tokio::join!(
            forward(writer, Channel::Received, cli.stdout, client.stdout),
            forward(writer, Channel::Stderr, cli.stderr, client.stderr),
        );
    };
    tokio::select! {
        biased;
        () = output => {}
        () = input => {}
    }
}

/// Copies one stream to another until EOF, then closes the target.
async fn forward(
    writer: &RecordingWriter,
    channel: Channel,
    mut from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin,
) {
    let mut chunk = vec![0; CHUNK];
    let mut to = Some(to);
    loop {
        // A read error is treated as EOF.
        let count = match from.read(&mut chunk).await {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        writer.record_bytes(channel, &chunk[..count]);
        if let Some(open) = &mut to
            && write(open, &chunk[..count]).await.is_err()
        {
            // The receiver is gone; keep reading, because the rest is still recorded.
            to = None;
        }
    }
    match channel {
        Channel::Sent => writer.record_stdin_closed(),
        Channel::Received => writer.record_stdout_closed(),
        Channel::Stderr => {}
    }
    if let Some(mut open) = to {
        // The stream is dropped right after, which closes it even if this fails.
        drop(open.shutdown().await);
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    // The receiver waits for each line, so nothing may remain in a buffer.
    to.flush().await
}
