//! The host's ends of the pipes, which record everything that passes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::record::Record;

/// Records what the host reads.
pub(super) struct ObservedReader {
    pub(super) inner: DuplexStream,
    pub(super) record: Record,
    /// Whether the end of the stream is reported as an error.
    pub(super) breaks: bool,
}

impl AsyncRead for ObservedReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &polled {
            let new = &buffer.filled()[before..];
            if new.is_empty() && buffer.remaining() > 0 {
                let now = self.record.now();
                self.record.lock().wire.read_end.get_or_insert(now);
                if self.breaks {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
            }
            self.record.read(new);
        }
        polled
    }
}

/// Records what the host writes.
pub(super) struct ObservedWriter {
    pub(super) inner: DuplexStream,
    pub(super) record: Record,
}

impl ObservedWriter {
    fn close(&self) {
        let now = self.record.now();
        self.record.lock().wire.closed.get_or_insert(now);
    }
}

impl AsyncWrite for ObservedWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        match &polled {
            Poll::Ready(Ok(written)) => self.record.written(&bytes[..*written]),
            Poll::Ready(Err(_)) => self.close(),
            Poll::Pending => {
                let now = self.record.now();
                self.record.lock().wire.blocked.get_or_insert(now);
            }
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl Drop for ObservedWriter {
    fn drop(&mut self) {
        self.close();
    }
}
