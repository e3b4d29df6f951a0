//! The states of a session.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use claude_wire::Exit;
use claude_wire::id::SessionId;
use futures_core::Stream;
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::feed::Over;
use crate::lock::lock;
use crate::panics;
use crate::wakers::Wakers;
use claude_session_store::json_object::JsonObject;

/// The state of a session.
///
/// Serialises as `{"type":"session_state","state":"running"}`, with `exit` or `error` where there is one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionState {
    /// The process was started.
    Starting,
    /// The handshake is in progress.
    Initializing,
    /// The handshake is done.
    Running,
    /// The session is being stopped.
    Stopping,
    /// The session was stopped. Contains the exit of the process, if known.
    Stopped(Option<Exit>),
    /// The session completed after its input was ended. Contains the exit of the process, if known.
    Completed(Option<Exit>),
    /// The session failed.
    Failed(Error),
}

impl SessionState {
    pub(crate) fn at_end(over: &Over) -> Self {
        match &over.error {
            Some(error) => Self::Failed(error.clone()),
            None if over.completed => Self::Completed(over.exit),
            None => Self::Stopped(over.exit),
        }
    }

    /// Returns whether the session has ended: no other state follows.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::Completed(_) | Self::Failed(_))
    }
}

impl Serialize for SessionState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (name, exit, error) = match self {
            Self::Starting => ("starting", None, None),
            Self::Initializing => ("initializing", None, None),
            Self::Running => ("running", None, None),
            Self::Stopping => ("stopping", None, None),
            Self::Stopped(exit) => ("stopped", exit.as_ref(), None),
            Self::Completed(exit) => ("completed", exit.as_ref(), None),
            Self::Failed(error) => ("failed", None, Some(error)),
        };
        let mut object = JsonObject::new(serializer, "session_state")?;
        object.field("state", name)?;
        object.optional("exit", exit)?;
        object.optional("error", error)?;
        object.end()
    }
}

/// All states so far. There are only a few, so they are all kept.
#[derive(Debug)]
pub(crate) struct EventLog {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Never empty.
    states: Vec<SessionState>,
    /// The response to the handshake.
    info: Option<Bytes>,
    /// The ID that the CLI reported last.
    session_id: Option<SessionId>,
    /// The error of the session, while the process is still being shut down.
    failure: Option<Error>,
    /// Whether the CLI waits for a message, and no agent works in the background.
    is_idle: bool,
    wakers: Wakers<u64>,
    next_key: u64,
}

impl EventLog {
    /// Creates a log with the ID of the session, if it is known before the CLI runs.
    pub(crate) fn new(session_id: Option<SessionId>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                states: vec![SessionState::Starting],
                info: None,
                session_id,
                failure: None,
                is_idle: true,
                wakers: Wakers::default(),
                next_key: 0,
            }),
        }
    }

    pub(crate) fn add(&self, state: SessionState) {
        let mut inner = self.lock();
        if inner.states.last().is_some_and(SessionState::is_final) {
            return;
        }
        inner.states.push(state);
        let wakers = inner.wakers.take_all();
        drop(inner);
        panics::wake(wakers);
    }

    pub(crate) fn run(&self, info: Bytes) {
        self.lock().info = Some(info);
        self.add(SessionState::Running);
    }

    /// Publishes the error of the session before the process has exited.
    pub(crate) fn fail(&self, error: Error) {
        let mut inner = self.lock();
        inner.failure = Some(error);
        let wakers = inner.wakers.take_all();
        drop(inner);
        panics::wake(wakers);
    }

    /// Waits for the handshake; `Some` is the error because of which it will never be done.
    fn poll_ready(&self, key: u64, context: &mut Context<'_>) -> Poll<Option<Error>> {
        let mut inner = self.lock();
        if let Some(error) = &inner.failure {
            return Poll::Ready(Some(error.clone()));
        }
        match inner.states.last() {
            Some(SessionState::Failed(error)) => Poll::Ready(Some(error.clone())),
            Some(SessionState::Stopped(_) | SessionState::Completed(_)) => {
                Poll::Ready(Some(super::stopped("ready")))
            }
            _ if inner.info.is_some() => Poll::Ready(None),
            _ => {
                inner.wakers.insert(key, context);
                Poll::Pending
            }
        }
    }

    pub(crate) fn set_idle(&self, is_idle: bool) {
        let mut inner = self.lock();
        if inner.is_idle == is_idle {
            return;
        }
        inner.is_idle = is_idle;
        let wakers = inner.wakers.take_all();
        drop(inner);
        panics::wake(wakers);
    }

    /// Waits until the CLI is idle or the run ends.
    fn poll_idle(&self, key: u64, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        let has_ended = inner.states.last().is_some_and(SessionState::is_final);
        if inner.is_idle || has_ended || inner.failure.is_some() {
            return Poll::Ready(());
        }
        inner.wakers.insert(key, context);
        Poll::Pending
    }

    /// Stores the session ID that the CLI reports.
    pub(crate) fn set_session_id(&self, id: &SessionId) {
        let mut inner = self.lock();
        if inner.session_id.as_ref() != Some(id) {
            inner.session_id = Some(id.clone());
        }
    }

    pub(crate) fn session_id(&self) -> Option<SessionId> {
        self.lock().session_id.clone()
    }

    pub(crate) fn info(&self) -> Option<Bytes> {
        self.lock().info.clone()
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> SessionState {
        self.lock().states.last().cloned().unwrap_or(SessionState::Starting)
    }

    /// Waits for the state at this index; `None` after the final one.
    fn poll_at(
        &self,
        index: usize,
        key: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<SessionState>> {
        let mut inner = self.lock();
        if let Some(state) = inner.states.get(index) {
            return Poll::Ready(Some(state.clone()));
        }
        if inner.states.last().is_some_and(SessionState::is_final) {
            return Poll::Ready(None);
        }
        inner.wakers.insert(key, context);
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

/// A stream of the states of a session, starting with the current one. Ends after the final state.
pub struct Events {
    log: Arc<EventLog>,
    index: usize,
    /// The key of its waker.
    key: u64,
}

impl Events {
    pub(crate) fn new(log: Arc<EventLog>) -> Self {
        let mut inner = log.lock();
        let (index, key) = (inner.states.len().saturating_sub(1), inner.next_key);
        inner.next_key += 1;
        drop(inner);
        Self { log, index, key }
    }

    /// Returns the next state; `None` after the final one.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<SessionState> {
        std::future::poll_fn(|context| self.poll_state(context)).await
    }

    /// Waits for the handshake; `Some` is the error because of which it will never be done.
    pub(crate) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<Option<Error>> {
        self.log.poll_ready(self.key, context)
    }

    pub(crate) fn poll_idle(&self, context: &mut Context<'_>) -> Poll<()> {
        self.log.poll_idle(self.key, context)
    }

    fn poll_state(&mut self, context: &mut Context<'_>) -> Poll<Option<SessionState>> {
        let polled = self.log.poll_at(self.index, self.key, context);
        if let Poll::Ready(Some(_)) = polled {
            self.index += 1;
        }
        polled
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.log.lock().wakers.remove(self.key);
    }
}

impl Stream for Events {
    type Item = SessionState;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_state(context)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("index", &self.index).finish_non_exhaustive()
    }
}
