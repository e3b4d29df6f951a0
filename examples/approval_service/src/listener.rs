//! Accepts a bounded number of connections, and closes those whose request does not arrive.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// How many connections are open at once, with those of the pages. Further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The end of the head of a request.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A listener whose connections take places.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(MAX_CONNECTIONS)) }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // Only a closed semaphore has no place to wait for, and this one stays open.
        let place = self.places.clone().acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let deadline = Some(Box::pin(tokio::time::sleep(HEAD_TIMEOUT)));
        (Connection { stream, deadline, has_begun: false, head_end: 0, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection for one request.
pub(crate) struct Connection {
    stream: TcpStream,
    /// When the head of the request must be complete; `None` once it is.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Whether a byte of the request was read.
    has_begun: bool,
    /// How many bytes of the end of the head were read last.
    head_end: usize,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Looks for the end of the head, which may arrive in parts.
    fn record(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // Servers skip empty lines before a request, so these must not count as its end.
            self.has_begun |= !matches!(byte, b'\r' | b'\n');
            if !self.has_begun {
                continue;
            }
            self.head_end = match self.head_end {
                known if *byte == HEAD_END[known] => known + 1,
                _ => usize::from(*byte == HEAD_END[0]),
            };
            if self.head_end == HEAD_END.len() {
                self.deadline = None;
                return;
            }
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.deadline.is_some() {
            self.record(&buffer.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
