//! Writes to the stdin of the CLI.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::AsyncWrite;

/// The CLI's stdin and its write buffer, whose size the machine bounds.
pub(super) struct Stdin {
    /// `None` once closed.
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

    /// Closes stdin once the buffer has been written.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// Writes buffered bytes and returns their number. Pending if there is nothing to write.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(writer) = &mut self.writer else { return Poll::Pending };
        let result = poll_step(Pin::new(writer), &mut self.waiting, &mut self.flushed, context);
        match result {
            Poll::Ready(Ok(0)) if self.closing => {
                // Dropping closes a pipe; other streams need an explicit shutdown.
                ready!(Pin::new(writer).poll_shutdown(context)).unwrap_or_else(|error| {
                    tracing::debug!(%error, "failed to shut down the CLI's stdin");
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

/// Performs one write, or the flush after the last one; returns 0 if nothing is left to do.
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
