//! What becomes of a session.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use claude_wire::id::SessionId;
use claude_wire::session::Exit;
use futures_core::Stream;

use crate::error::Error;
use crate::lock::lock;
use crate::panics;

/// A step in the life of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The process runs.
    Starting,
    /// The handshake is under way.
    Initializing,
    /// The handshake is done.
    Running,
    /// It is being stopped.
    Stopping,
    /// It was stopped; how the process ended, if that is known.
    Stopped(Option<Exit>),
    /// Its input was ended, and it came to a good end.
    Completed(Option<Exit>),
    /// It failed.
    Failed(Error),
}

impl SessionEvent {
    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::Completed(_) | Self::Failed(_))
    }
}

/// All steps so far. There are but a few, so that they are kept.
#[derive(Debug)]
pub(crate) struct EventLog {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    events: Vec<SessionEvent>,
    /// What the CLI answered to the handshake.
    info: Option<Bytes>,
    /// The session as the CLI names it.
    session_id: Option<SessionId>,
    /// Why it failed, while the process is still being ended.
    failure: Option<Error>,
    wakers: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl EventLog {
    pub(crate) fn new() -> Self {
        let events = vec![SessionEvent::Starting];
        Self {
            state: Mutex::new(State {
                events,
                info: None,
                session_id: None,
                failure: None,
                wakers: BTreeMap::new(),
                next_key: 0,
            }),
        }
    }

    pub(crate) fn add(&self, event: SessionEvent) {
        let mut state = self.lock();
        if state.events.last().is_some_and(SessionEvent::is_last) {
            return;
        }
        state.events.push(event);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        panics::wake(wakers.into_values());
    }

    pub(crate) fn run(&self, info: Bytes) {
        self.lock().info = Some(info);
        self.add(SessionEvent::Running);
    }

    /// Says why it failed before it is over.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure = Some(error);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        panics::wake(wakers.into_values());
    }

    /// Whether the handshake is done, or why it never will be.
    fn poll_ready(&self, key: u64, context: &mut Context<'_>) -> Poll<Option<Error>> {
        let mut state = self.lock();
        if let Some(error) = &state.failure {
            return Poll::Ready(Some(error.clone()));
        }
        match state.events.last() {
            Some(SessionEvent::Failed(error)) => Poll::Ready(Some(error.clone())),
            Some(SessionEvent::Stopped(_) | SessionEvent::Completed(_)) => {
                Poll::Ready(Some(super::stopped("ready")))
            }
            _ if state.info.is_some() => Poll::Ready(None),
            _ => {
                state.wakers.insert(key, context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Notes how the CLI names the session.
    pub(crate) fn name(&self, id: &SessionId) {
        let mut state = self.lock();
        if state.session_id.as_ref() != Some(id) {
            state.session_id = Some(id.clone());
        }
    }

    pub(crate) fn session_id(&self) -> Option<SessionId> {
        self.lock().session_id.clone()
    }

    pub(crate) fn info(&self) -> Option<Bytes> {
        self.lock().info.clone()
    }

    pub(crate) fn last(&self) -> Option<SessionEvent> {
        self.lock().events.last().cloned()
    }

    /// The event at this place, when there is one; `None` after the last.
    fn poll_at(
        &self,
        place: usize,
        key: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<SessionEvent>> {
        let mut state = self.lock();
        if let Some(event) = state.events.get(place) {
            return Poll::Ready(Some(event.clone()));
        }
        if state.events.last().is_some_and(SessionEvent::is_last) {
            return Poll::Ready(None);
        }
        state.wakers.insert(key, context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The steps of a session from the current one on; ends after the last.
pub struct Events {
    log: Arc<EventLog>,
    place: usize,
    /// Where its waker is kept.
    key: u64,
}

impl Events {
    pub(crate) fn new(log: Arc<EventLog>) -> Self {
        let mut state = log.lock();
        let (place, key) = (state.events.len().saturating_sub(1), state.next_key);
        state.next_key += 1;
        drop(state);
        Self { log, place, key }
    }

    /// The next step; `None` after the last.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<SessionEvent> {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    /// Whether the handshake is done, or why it never will be.
    pub(crate) fn poll_ready(&self, context: &mut Context<'_>) -> Poll<Option<Error>> {
        self.log.poll_ready(self.key, context)
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<SessionEvent>> {
        let polled = self.log.poll_at(self.place, self.key, context);
        if let Poll::Ready(Some(_)) = polled {
            self.place += 1;
        }
        polled
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.log.lock().wakers.remove(&self.key);
    }
}

impl Stream for Events {
    type Item = SessionEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(context)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("place", &self.place).finish_non_exhaustive()
    }
}
