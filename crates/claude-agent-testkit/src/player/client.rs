//! What the client says.

use bytes::{Bytes, BytesMut};
use claude_wire::frame::{Frame, Framer};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The client's end of stdin.
pub(super) struct Client<I> {
    input: I,
    framer: Framer,
    closed: bool,
}

/// What came from the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Heard {
    Line(Bytes),
    /// What stood after the last line break when the input was closed.
    Unfinished(Bytes),
    /// A line that was too long to be kept, of this size.
    TooLong(u64),
    Closed,
}

impl<I: AsyncRead + Unpin> Client<I> {
    pub(super) fn new(input: I, max_line_bytes: usize) -> Self {
        Self { input, framer: Framer::new(max_line_bytes), closed: false }
    }

    /// What the client says next; after its end, always [`Heard::Closed`]. Blank lines are skipped.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            if let Some(frame) = self.framer.next_frame() {
                return heard(frame, Heard::Line);
            }
            if self.closed {
                let rest = self.framer.finish();
                return rest.map_or(Heard::Closed, |frame| heard(frame, Heard::Unfinished));
            }
            self.closed = read(&mut self.input, self.framer.space()).await == 0;
        }
    }
}

/// A read error is the end of the input: nothing can be heard after it.
async fn read(input: &mut (impl AsyncRead + Unpin), space: &mut BytesMut) -> usize {
    loop {
        match input.read_buf(space).await {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.unwrap_or(0),
        }
    }
}

fn heard(frame: Frame, line: fn(Bytes) -> Heard) -> Heard {
    match frame {
        Frame::Line(bytes) => line(bytes),
        Frame::Oversized(oversized) => Heard::TooLong(oversized.size),
    }
}
