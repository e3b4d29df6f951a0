//! Runs a CLI inside the host process.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use claude_wire::Exit;

use super::{Child, Connecting, Connection, Launch, Transport};

/// A transport backed by a function that receives a [`Launch`] and returns streams and an exit. Use it for a
/// simulated CLI, or for anything else that speaks the protocol.
///
/// ```
/// use claude_agent_kit::Exit;
/// use claude_agent_kit::transport::{ChildFuture, Connection, InMemory};
///
/// // A CLI that reads nothing, writes nothing and exits immediately.
/// let transport = InMemory::new(|_launch| async {
///     let child = ChildFuture::new(async { Exit::Code(0) });
///     Ok(Connection::new(tokio::io::sink(), tokio::io::empty(), child))
/// });
/// ```
#[derive(Clone)]
pub struct InMemory<F> {
    start: F,
}

impl<F, Starting> InMemory<F>
where
    F: Fn(Launch) -> Starting + Send + Sync + 'static,
    Starting: Future<Output = io::Result<Connection>> + Send + 'static,
{
    /// Creates a transport that starts its CLI with `start`.
    pub fn new(start: F) -> Self {
        Self { start }
    }
}

impl<F, Starting> Transport for InMemory<F>
where
    F: Fn(Launch) -> Starting + Send + Sync + 'static,
    Starting: Future<Output = io::Result<Connection>> + Send + 'static,
{
    fn connect(&self, launch: Launch) -> Connecting<'_> {
        Box::pin((self.start)(launch))
    }
}

impl<F> fmt::Debug for InMemory<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemory").finish_non_exhaustive()
    }
}

/// A CLI represented by a future of its exit.
///
/// Without functions for the signals, either signal drops the future and counts as the exit.
pub struct ChildFuture {
    exit: Option<Pin<Box<dyn Future<Output = Exit> + Send>>>,
    ended: Exit,
    terminate: Option<Box<dyn FnMut() + Send>>,
    kill: Option<Box<dyn FnMut() + Send>>,
}

impl ChildFuture {
    /// Creates a CLI that exits when the future completes.
    pub fn new(exit: impl Future<Output = Exit> + Send + 'static) -> Self {
        Self { exit: Some(Box::pin(exit)), ended: Exit::Signal(15), terminate: None, kill: None }
    }

    /// Sets the function that is called in place of SIGTERM.
    #[must_use]
    pub fn on_terminate(mut self, terminate: impl FnMut() + Send + 'static) -> Self {
        self.terminate = Some(Box::new(terminate));
        self
    }

    /// Sets the function that is called in place of SIGKILL.
    #[must_use]
    pub fn on_kill(mut self, kill: impl FnMut() + Send + 'static) -> Self {
        self.kill = Some(Box::new(kill));
        self
    }

    fn end(&mut self, signal: i32) {
        if self.exit.take().is_some() {
            self.ended = Exit::Signal(signal);
        }
    }
}

impl Child for ChildFuture {
    fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        if let Some(exit) = &mut self.exit {
            match exit.as_mut().poll(context) {
                Poll::Ready(exit) => self.ended = exit,
                Poll::Pending => return Poll::Pending,
            }
            self.exit = None;
        }
        Poll::Ready(Ok(self.ended))
    }

    fn terminate(&mut self) {
        match &mut self.terminate {
            Some(terminate) => terminate(),
            None => self.end(15),
        }
    }

    fn kill(&mut self) {
        match &mut self.kill {
            Some(kill) => kill(),
            None => self.end(9),
        }
    }
}

impl fmt::Debug for ChildFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildFuture").field("runs", &self.exit.is_some()).finish_non_exhaustive()
    }
}
