//! Reads the lines of the client.

use bytes::{Bytes, BytesMut};
use claude_wire::frame::{Frame, Framer};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Reads lines from the stream that the client writes to.
pub(super) struct ClientReader<I> {
    input: I,
    framer: Framer,
    closed: bool,
}

/// One item read from the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClientInput {
    Line(Bytes),
    /// The bytes after the last newline at EOF.
    Unfinished(Bytes),
    /// A line of this size, which exceeds the limit.
    TooLong(u64),
    Closed,
}

impl<I: AsyncRead + Unpin> ClientReader<I> {
    pub(super) fn new(input: I, max_line_bytes: usize) -> Self {
        Self { input, framer: Framer::new(max_line_bytes), closed: false }
    }

    /// Reads the next line; returns [`ClientInput::Closed`] after EOF. Blank lines are skipped.
    pub(super) async fn next(&mut self) -> ClientInput {
        loop {
            if let Some(frame) = self.framer.next_frame() {
                return to_input(frame, ClientInput::Line);
            }
            if self.closed {
                let rest = self.framer.finish();
                return rest
                    .map_or(ClientInput::Closed, |frame| to_input(frame, ClientInput::Unfinished));
            }
            self.closed = read(&mut self.input, self.framer.space()).await == 0;
        }
    }
}

/// Reads into `space`; a read error is treated as EOF.
async fn read(input: &mut (impl AsyncRead + Unpin), space: &mut BytesMut) -> usize {
    loop {
        match input.read_buf(space).await {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.unwrap_or(0),
        }
    }
}

fn to_input(frame: Frame, line: fn(Bytes) -> ClientInput) -> ClientInput {
    match frame {
        Frame::Line(bytes) => line(bytes),
        Frame::Oversized(oversized) => ClientInput::TooLong(oversized.size),
    }
}
