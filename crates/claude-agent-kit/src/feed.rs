//! Passes messages from the driver to the readers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use claude_wire::Exit;

use crate::backlog::{Backlog, BacklogLimits, BacklogRead, Subscriber};
use crate::drift::Drift;
use crate::error::{Error, ErrorKind};
use crate::lock::lock;
use crate::panics::wake;
use crate::permission::PermissionOrigin;
use crate::wakers::Wakers;
use crate::warning::Warning;

/// The number of bytes a reader takes at a time: large enough to amortize the lock, small enough to ignore in limits.
const BATCH_BYTES: usize = 64 * 1024;

/// The maximum number of warnings kept from the start.
const MOST_START_WARNINGS: usize = 64;

/// The number of lines that share one block of reported marks.
const BLOCK_LINES: u32 = 256;

/// An item for a reader: a message or permission request that is not decoded yet, or a warning.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Line(Bytes, LineMark),
    Permission(Bytes, Box<PermissionOrigin>),
    Warning(Warning),
}

impl Piece {
    fn size(&self) -> usize {
        match self {
            Self::Line(line, _) | Self::Permission(line, _) => line.len(),
            Self::Warning(warning) => warning.held_bytes(),
        }
    }
}

/// Identifies a line of a run. Several readers may find that it is malformed, and only the first of them
/// reports it.
#[derive(Clone, Debug)]
pub(crate) struct LineMark {
    number: u32,
    /// Lines of the block that were reported. Freed with the last line of the block.
    reported: Arc<Mutex<Vec<u32>>>,
}

impl LineMark {
    /// Marks the line as reported; returns whether it was not reported before.
    pub(crate) fn is_first_report(&self) -> bool {
        let mut reported = lock(&self.reported);
        let is_first = !reported.contains(&self.number);
        if is_first {
            reported.push(self.number);
        }
        is_first
    }
}

/// Assigns a mark to every line.
#[derive(Debug, Default)]
pub(crate) struct LineMarks {
    next: Option<LineMark>,
}

impl LineMarks {
    pub(crate) fn next(&mut self) -> LineMark {
        let mark = self.next.take().filter(|mark| mark.number < BLOCK_LINES);
        let mark = mark.unwrap_or_else(|| LineMark { number: 0, reported: Arc::default() });
        self.next = Some(LineMark { number: mark.number + 1, reported: mark.reported.clone() });
        mark
    }
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct Over {
    pub(crate) exit: Option<Exit>,
    pub(crate) error: Option<Error>,
    /// Whether the host closed stdin and the run then ended without an error.
    pub(crate) completed: bool,
    /// Whether the host stopped the run.
    pub(crate) stopped: bool,
}

/// The messages of a run, shared by the driver and the readers.
#[derive(Debug)]
pub(crate) struct Feed {
    state: Mutex<State>,
    drift: Drift,
}

#[derive(Debug)]
struct State {
    backlog: Backlog<Piece>,
    readers: Wakers<Subscriber>,
    /// Warnings of the start that have not been read yet.
    start: Vec<Warning>,
    /// The waker of the driver, while it must not read.
    driver: Option<Waker>,
    has_waiters: bool,
    over: Option<Over>,
    /// The cause of a failure, while the run is still shutting down.
    failure: Option<Error>,
    waiting_for_the_end: Vec<Waker>,
}

impl Feed {
    pub(crate) fn new(limits: BacklogLimits) -> Self {
        let state = State {
            backlog: Backlog::new(limits),
            readers: Wakers::default(),
            start: Vec::new(),
            driver: None,
            has_waiters: false,
            over: None,
            failure: None,
            waiting_for_the_end: Vec::new(),
        };
        Self { state: Mutex::new(state), drift: Drift::default() }
    }

    /// Unknown fields and messages that readers found.
    pub(crate) fn drift(&self) -> &Drift {
        &self.drift
    }

    /// Creates a reader of all items from now on. The first reader also gets the warnings of the start.
    pub(crate) fn subscribe(&self) -> (Subscriber, VecDeque<Piece>) {
        let mut state = self.lock();
        let first = state.start.drain(..).map(Piece::Warning).collect();
        (state.backlog.subscribe(), first)
    }

    /// Keeps warnings of the start for the first reader.
    pub(crate) fn start_with(&self, mut warnings: Vec<Warning>) {
        warnings.truncate(MOST_START_WARNINGS);
        self.lock().start.append(&mut warnings);
    }

    /// Creates the reader of a turn, which gets nothing until the turn begins.
    pub(crate) fn subscribe_turn(&self) -> Subscriber {
        self.lock().backlog.subscribe_turn()
    }

    /// Creates the reader of a turn that begins now. The first reader of all messages still gets the earlier
    /// ones.
    pub(crate) fn subscribe_replay(&self) -> Subscriber {
        self.lock().backlog.subscribe_replay()
    }

    /// Discards the messages before the first reader: the host reads them by turn.
    pub(crate) fn release_early(&self) {
        let mut state = self.lock();
        state.backlog.release_early();
        let driver = state.driver_that_may_read();
        drop(state);
        wake(driver);
    }

    /// Begins a turn: its reader gets all items from now on.
    pub(crate) fn begin(&self, reader: Subscriber) {
        self.lock().backlog.begin(reader);
    }

    /// Ends the items of a reader at this position.
    pub(crate) fn finish(&self, reader: Subscriber) {
        let mut state = self.lock();
        state.backlog.finish(reader);
        let waiting = state.readers.remove(reader);
        drop(state);
        wake(waiting);
    }

    pub(crate) fn unsubscribe(&self, reader: Subscriber) {
        let mut state = self.lock();
        state.backlog.unsubscribe(reader);
        state.readers.remove(reader);
        let driver = state.driver_that_may_read();
        drop(state);
        wake(driver);
    }

    /// Appends a batch of items.
    pub(crate) fn push(&self, pieces: &mut Vec<Piece>, has_waiters: bool) {
        if pieces.is_empty() {
            return;
        }
        let mut state = self.lock();
        for piece in pieces.drain(..) {
            let size = piece.size();
            state.backlog.push(piece, size);
        }
        state.backlog.enforce(has_waiters);
        let readers = state.hungry_readers();
        drop(state);
        wake(readers);
    }

    /// Returns whether the driver may read; if not, it is woken when it may.
    pub(crate) fn poll_may_read(&self, context: &mut Context<'_>, has_waiters: bool) -> bool {
        let mut state = self.lock();
        state.has_waiters = has_waiters;
        // Every reader could take what was pushed. Only readers that wait again by now are up to date, so
        // only now is it known which ones lag.
        let lagged = state.backlog.enforce(has_waiters);
        let readers = if lagged { state.hungry_readers() } else { Vec::new() };
        let may = state.backlog.may_read(has_waiters);
        state.driver = (!may).then(|| context.waker().clone());
        drop(state);
        wake(readers);
        may
    }

    /// Polls for the next items of a reader. `None` at the end.
    pub(crate) fn poll_take(
        &self,
        context: &mut Context<'_>,
        reader: Subscriber,
        into: &mut VecDeque<Piece>,
    ) -> Poll<Option<Result<(), Error>>> {
        let mut state = self.lock();
        let taken = state.backlog.take(reader, BATCH_BYTES, into);
        if let BacklogRead::Empty = taken {
            state.readers.insert(reader, context);
        }
        // Both a reader that found nothing and one that made room allow the driver to read.
        let driver = state.driver_that_may_read();
        drop(state);
        wake(driver);
        match taken {
            BacklogRead::Items => Poll::Ready(Some(Ok(()))),
            BacklogRead::Empty => Poll::Pending,
            BacklogRead::Lagged { bytes } => Poll::Ready(Some(Err(lagged(bytes)))),
            BacklogRead::Ended => Poll::Ready(None),
        }
    }

    /// Publishes the cause of a failure before the run has ended.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.failure = Some(error);
        state.backlog.close();
        let readers = state.hungry_readers();
        drop(state);
        wake(readers);
    }

    /// Returns the error of the run, once everything has been read.
    pub(crate) fn error(&self) -> Option<Error> {
        let state = self.lock();
        state.failure.clone().or_else(|| state.over.as_ref()?.error.clone())
    }

    /// Publishes the end of the run.
    pub(crate) fn end(&self, over: Over) {
        let mut state = self.lock();
        state.over.get_or_insert(over);
        state.backlog.close();
        let readers = state.hungry_readers();
        let others = std::mem::take(&mut state.waiting_for_the_end);
        drop(state);
        wake(readers);
        wake(others);
    }

    pub(crate) fn over(&self) -> Option<Over> {
        self.lock().over.clone()
    }

    pub(crate) fn poll_over(&self, context: &mut Context<'_>) -> Poll<Over> {
        let mut state = self.lock();
        if let Some(over) = &state.over {
            return Poll::Ready(over.clone());
        }
        let waker = context.waker();
        if !state.waiting_for_the_end.iter().any(|other| other.will_wake(waker)) {
            state.waiting_for_the_end.push(waker.clone());
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn driver_that_may_read(&mut self) -> Option<Waker> {
        let may = self.driver.is_some() && self.backlog.may_read(self.has_waiters);
        if may { self.driver.take() } else { None }
    }

    /// Takes the wakers of all waiting readers; a spurious wake-up is cheap.
    fn hungry_readers(&mut self) -> Vec<Waker> {
        self.readers.take_all()
    }
}

pub(crate) fn lagged(bytes: u64) -> Error {
    Error::new(
        ErrorKind::Lagged,
        format!("the reader lagged: {bytes} bytes of unread messages were discarded"),
    )
    .with_help("read messages as they arrive, or increase `Limits::backlog_hard_bytes`")
    .with(|facts| facts.size = Some(bytes))
}
