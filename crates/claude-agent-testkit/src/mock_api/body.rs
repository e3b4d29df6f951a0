//! The body of a response: what is sent, and when.

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

/// One thing to do while a response is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Send(Bytes),
    Pause(Duration),
    /// Wait until held answers are released.
    Hold,
    /// Wait until everything before it is in the hands of the operating system.
    Flush,
    /// End the connection, not the response.
    Cut,
}

/// The steps of a streamed answer.
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
        steps.extend([Step::Flush, Step::Cut]);
    }
    steps
}

/// The steps of an answer in one piece.
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

/// A response body that carries out its steps.
///
/// It runs inside the connection that it is sent on, without a task of its own: when the client
/// goes away or the server ends, nothing is left.
pub(super) struct StepBody {
    steps: VecDeque<Step>,
    waiting: Option<Waiting>,
    released: Option<Waiting>,
    flushed: Arc<Notify>,
    /// The announced length; a stream announces none.
    length: Option<u64>,
}

impl StepBody {
    /// `released` completes when held answers are let go, `flushed` is that of the connection.
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

/// A connection that tells when all that was written to it has gone out.
///
/// A body that fails makes hyper throw away what it has buffered, so a cut at a given event has to
/// wait for the events before it. hyper flushes the connection whenever a body has nothing ready,
/// and gets to the flush of the socket only when its own buffer is empty.
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
