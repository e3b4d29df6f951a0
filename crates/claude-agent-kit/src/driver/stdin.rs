//! Writes to the stdin of the CLI.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::AsyncWrite;

/// The CLI's stdin, and what waits to be written to it. The machine bounds that.
pub(super) struct Stdin {
    /// None when it is closed.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    waiting: VecDeque<Bytes>,
    flushed: bool,
    closing: bool,
}

impl Stdin {
    pub(super) fn new(writer: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        Self { writer: Some(writer), waiting: VecDeque::new(), flushed: true, closing: false }
    }

    pub(super) fn write(&mut self, bytes: Bytes) {
        if self.writer.is_some() && !self.closing {
            self.waiting.push_back(bytes);
        }
    }

    /// Closes it when everything that waits is written.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Writes, and says how much. Pending when there is nothing to do.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(writer) = &mut self.writer else { return Poll::Pending };
        let result = poll_step(Pin::new(writer), &mut self.waiting, &mut self.flushed, context);
        match result {
            Poll::Ready(Ok(0)) if self.closing => {
                // Dropping it closes a pipe; a stream that needs more is shut down first.
                ready!(Pin::new(writer).poll_shutdown(context)).unwrap_or_else(|error| {
                    tracing::debug!(%error, "stdin of the CLI could not be shut down");
                });
                self.writer = None;
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => Poll::Pending,
            Poll::Ready(Err(error)) => {
                self.writer = None;
                self.waiting.clear();
                Poll::Ready(Err(error))
            }
            other => other,
        }
    }
}

/// One write, or the flush after the last; 0 when nothing is left to do.
fn poll_step(
    mut writer: Pin<&mut Box<dyn AsyncWrite + Send + Unpin>>,
    waiting: &mut VecDeque<Bytes>,
    flushed: &mut bool,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let Some(first) = waiting.front_mut() else {
        if !*flushed {
            ready!(writer.poll_flush(context))?;
            *flushed = true;
        }
        return Poll::Ready(Ok(0));
    };
    let written = ready!(writer.as_mut().poll_write(context, first))?;
    if written == 0 {
        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
    }
    *flushed = false;
    first.advance(written);
    if first.is_empty() {
        waiting.pop_front();
    }
    Poll::Ready(Ok(written))
}
