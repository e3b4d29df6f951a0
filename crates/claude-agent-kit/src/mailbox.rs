//! What the host tells the driver.
//!
//! Nothing here waits: a note is left, and the driver is woken. Each note belongs to a call that is
//! waited for, to a callback that runs (both have their limits), or to a handle that is dropped, so
//! there are no more notes than those.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use claude_wire::Json;
use claude_wire::id::MessageId;
use claude_wire::session::{Event, Waiter};
use tokio::sync::oneshot;

use crate::error::Result;
use crate::panics;
use crate::turn::TurnSlot;

/// Where notes for the driver are left.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    notes: VecDeque<Note>,
    driver: Option<Waker>,
    next_waiter: u64,
    /// Whether the driver is gone.
    closed: bool,
}

/// Something that the host tells the driver.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) event: Event,
    /// Who is told what became of it.
    pub(crate) reply: Option<Reply>,
    /// The turn of the message that is sent.
    pub(crate) turn: Option<Box<TurnSlot>>,
}

/// Who is told what became of a note.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) waiter: Waiter,
    /// What was asked, for an error.
    pub(crate) operation: String,
    /// The message that is sent, if it is one.
    pub(crate) turn: Option<MessageId>,
    /// The turns that were open when an interrupt was asked for.
    pub(crate) interrupts: Option<Vec<MessageId>>,
    pub(crate) sender: oneshot::Sender<Result<Done>>,
}

impl Reply {
    pub(crate) fn send(self, done: Result<Done>) {
        // The receiver may have been dropped since; its waker belongs to the host.
        if panics::catch(|| drop(self.sender.send(done))).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }
}

/// What became of a note.
#[derive(Debug)]
pub(crate) enum Done {
    /// The message waits to be written, or the input is closed.
    Accepted,
    /// The operation was done, with this answer if there is one.
    Answered(Option<Json>),
    /// The same for an interrupt, with those of the turns that were open when it was asked for that
    /// run now.
    Interrupted(Option<Json>, Vec<MessageId>),
}

/// The driver is gone.
#[derive(Debug)]
pub(crate) struct Closed;

impl Mailbox {
    /// Leaves an event that nobody waits for.
    pub(crate) fn tell(&self, event: Event) -> std::result::Result<(), Closed> {
        self.post(|_| Note { event, reply: None, turn: None }).map(drop)
    }

    /// Leaves an event and gives what will tell what became of it.
    pub(crate) fn ask(
        self: &Arc<Self>,
        operation: impl Into<String>,
        turn: Option<TurnSlot>,
        event: impl FnOnce(Waiter) -> Event,
    ) -> std::result::Result<Pending, Closed> {
        let (sender, receiver) = oneshot::channel();
        let operation = operation.into();
        let message = turn.as_ref().map(|slot| slot.id.clone());
        let waiter = self.post(|waiter| Note {
            event: event(waiter),
            reply: Some(Reply { waiter, operation, turn: message, interrupts: None, sender }),
            turn: turn.map(Box::new),
        })?;
        Ok(Pending { waiter, receiver, mailbox: self.clone(), done: false })
    }

    fn post(&self, note: impl FnOnce(Waiter) -> Note) -> std::result::Result<Waiter, Closed> {
        let mut state = self.lock();
        if state.closed {
            return Err(Closed);
        }
        let waiter = Waiter(state.next_waiter);
        state.next_waiter += 1;
        state.notes.push_back(note(waiter));
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(waiter)
    }

    /// The next note, for the driver.
    pub(crate) fn poll_note(&self, context: &mut Context<'_>) -> Poll<Note> {
        let mut state = self.lock();
        if let Some(note) = state.notes.pop_front() {
            return Poll::Ready(note);
        }
        match &mut state.driver {
            Some(driver) => driver.clone_from(context.waker()),
            driver @ None => *driver = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Takes no more notes; gives those that were left.
    pub(crate) fn close(&self) -> VecDeque<Note> {
        let mut state = self.lock();
        state.closed = true;
        state.driver = None;
        std::mem::take(&mut state.notes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics happens under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer that will come. Dropping it tells the driver that nobody waits any more.
pub(crate) struct Pending {
    waiter: Waiter,
    receiver: oneshot::Receiver<Result<Done>>,
    mailbox: Arc<Mailbox>,
    done: bool,
}

impl Future for Pending {
    /// `Err` when the driver went without an answer.
    type Output = std::result::Result<Result<Done>, Closed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.receiver).poll(context);
        self.done = polled.is_ready();
        polled.map_err(|_| Closed)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            // A driver that is gone remembers nobody.
            let _ = self.mailbox.tell(Event::Forget(self.waiter));
        }
    }
}
