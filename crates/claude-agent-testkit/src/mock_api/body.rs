//! The body of an HTTP response, with pauses and cuts.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::Reply;
use super::message::Event;

/// One step of sending a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Send(Bytes),
    Pause(Duration),
    /// Waits until held replies are released.
    Hold,
    /// Waits until all earlier bytes have been written to the socket.
    Flush,
    /// Closes the connection in the middle of the response.
    Cut,
}

/// Returns the steps of a streamed reply.
pub(super) fn stream_steps(reply: &Reply, events: Vec<Event>) -> VecDeque<Step> {
    let held_after = reply.hold.then(|| events.iter().position(Event::is_delta).unwrap_or(0));
    let sent = reply.cut_after.unwrap_or(events.len());
    let mut steps = VecDeque::new();
    for (at, event) in events.into_iter().take(sent).enumerate() {
        if let Some(pause) = reply.pause_between.filter(|_| at > 0) {
            steps.push_back(Step::Pause(pause));
        }
        steps.push_back(Step::Send(event.into_bytes()));
        if held_after == Some(at) {
            steps.push_back(Step::Hold);
        }
    }
    if reply.cut_after.is_some() {
        steps.push_back(Step::Flush);
        // Clients discard what they have not read when the connection closes.
        steps.extend(reply.pause_between.map(Step::Pause));
        steps.push_back(Step::Cut);
    }
    steps
}

/// Returns the steps of a reply that is not streamed.
pub(super) fn whole_steps(reply: &Reply, json: &Bytes) -> VecDeque<Step> {
    let mut steps = VecDeque::new();
    if reply.hold {
        steps.push_back(Step::Hold);
    }
    if reply.cut_after.is_some() {
        let half = json.slice(..json.len() / 2);
        steps.extend([Step::Send(half), Step::Flush, Step::Cut]);
    } else {
        steps.push_back(Step::Send(json.clone()));
    }
    steps
}

/// A response body that executes its steps.
///
/// The body is polled by its connection and has no task of its own, so it ends when the client
/// disconnects or the server stops.
pub(super) struct StepBody {
    steps: VecDeque<Step>,
    waiting: Option<Waiting>,
    released: Option<Waiting>,
    flushed: Arc<Notify>,
    /// The value of `content-length`; `None` for a stream.
    length: Option<u64>,
}

impl StepBody {
    /// Creates a body. `released` completes when held replies are released; `flushed` is notified by
    /// the connection.
    pub(super) fn new(
        steps: VecDeque<Step>,
        length: Option<u64>,
        released: Option<OwnedNotified>,
        flushed: Arc<Notify>,
    ) -> Self {
        let released = released.map(|released| Box::pin(released) as Waiting);
        Self { steps, waiting: None, released, flushed, length }
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Body for StepBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Pause(pause)) => {
                    self.waiting = Some(Box::pin(tokio::time::sleep(pause)));
                }
                Some(Step::Hold) => self.waiting = self.released.take(),
                Some(Step::Flush) => {
                    let flushed = Arc::clone(&self.flushed).notified_owned();
                    self.waiting = Some(Box::pin(flushed));
                }
                Some(Step::Cut) => {
                    return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
                }
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A connection that signals when all written bytes have been flushed to the socket.
///
/// If a body fails, hyper discards its buffer, so a cut after a given event must wait until the earlier
/// events have been flushed. hyper flushes the connection whenever a body is pending, and flushes the
/// socket only once its own buffer is empty.
pub(super) struct FlushSignal {
    inner: TokioIo<TcpStream>,
    flushed: Arc<Notify>,
}

impl FlushSignal {
    pub(super) fn new(stream: TcpStream, flushed: Arc<Notify>) -> Self {
        Self { inner: TokioIo::new(stream), flushed }
    }
}

impl Read for FlushSignal {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl Write for FlushSignal {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.flushed.notify_waiters();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}
