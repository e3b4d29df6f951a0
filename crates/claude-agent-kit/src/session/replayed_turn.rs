//! The turn in which the CLI replays a deferred tool call.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use crate::lock::lock;
use crate::panics;
use crate::turn::DetachedTurn;

/// Keeps the replayed turn until the host takes it or gives it up.
///
/// Only handles of the session own this, so that the turn of a dropped session keeps no messages. It contains no
/// handle itself, which would keep the session alive.
#[derive(Debug)]
pub(crate) struct ReplayedTurn(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    state: ReplayState,
    /// The tasks that wait for the turn.
    waiting: Vec<Waker>,
}

#[derive(Debug)]
enum ReplayState {
    /// The CLI may start a replay: with in-process servers only after the handshake.
    Possible,
    /// The CLI has started a replay.
    Started(DetachedTurn),
    /// The CLI replays nothing, the host has taken the turn, or the host reads messages in another way.
    Over,
}

impl ReplayedTurn {
    /// Creates the state at the start. Only the CLI of a resumed session can replay a call.
    pub(crate) fn new(is_resumed: bool) -> Self {
        let state = if is_resumed { ReplayState::Possible } else { ReplayState::Over };
        Self(Mutex::new(Inner { state, waiting: Vec::new() }))
    }

    /// Keeps the turn of a replay that has started, unless the host has given it up.
    pub(crate) fn offer(&self, turn: DetachedTurn) {
        self.resolve(ReplayState::Started(turn));
    }

    /// Records that the CLI replays nothing, or that the run has ended.
    pub(crate) fn rule_out(&self) {
        self.resolve(ReplayState::Over);
    }

    fn resolve(&self, resolved: ReplayState) {
        let mut inner = lock(&self.0);
        let unwanted = match inner.state {
            ReplayState::Possible => std::mem::replace(&mut inner.state, resolved),
            ReplayState::Started(_) | ReplayState::Over => resolved,
        };
        let waiting = std::mem::take(&mut inner.waiting);
        // Wakers are code of the host, and dropping a reader wakes the driver.
        drop(inner);
        drop(unwanted);
        panics::wake(waiting);
    }

    /// Returns the turn once, as soon as it is known whether the CLI replays a call.
    pub(super) fn poll_take(&self, context: &Context<'_>) -> Poll<Option<DetachedTurn>> {
        let mut inner = lock(&self.0);
        if let ReplayState::Possible = inner.state {
            if !inner.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                inner.waiting.push(context.waker().clone());
            }
            return Poll::Pending;
        }
        match std::mem::replace(&mut inner.state, ReplayState::Over) {
            ReplayState::Started(turn) => Poll::Ready(Some(turn)),
            ReplayState::Possible | ReplayState::Over => Poll::Ready(None),
        }
    }

    /// Discards the turn and its messages, because the host reads messages in another way.
    pub(super) fn give_up(&self) {
        let mut inner = lock(&self.0);
        let state = std::mem::replace(&mut inner.state, ReplayState::Over);
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        drop(state);
        panics::wake(waiting);
    }
}
