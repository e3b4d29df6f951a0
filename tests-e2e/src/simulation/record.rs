//! What was seen of a run, by everybody who takes part in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_kit::ErrorKind;
use tokio::time::Instant;

use crate::golden::{Golden, Names};

/// The record of a run. Clones are the same.
#[derive(Clone)]
pub(super) struct Record {
    start: Instant,
    state: Arc<Mutex<State>>,
    /// The time at which its runtime was lost, and with it the clock.
    stopped: Arc<OnceLock<Duration>>,
}

#[derive(Default)]
pub(super) struct State {
    trace: Vec<(Duration, String)>,
    /// The arguments and variables that the CLI was started with.
    pub(super) launch: Vec<String>,
    pub(super) counts: BTreeMap<String, u64>,
    violations: Vec<String>,
    pub(super) wire: Wire,
    pub(super) readings: Vec<Reading>,
    /// What became of requests of the CLI that reached a callback, by their ids, and when.
    pub(super) answers: BTreeMap<String, (Duration, Answer)>,
    /// Numbers of tool calls that really ran.
    pub(super) ran: Vec<u64>,
    /// Numbers of tool calls that a callback approved.
    pub(super) approved: Vec<u64>,
    /// Operations that succeeded, by their names on the wire.
    pub(super) succeeded: BTreeMap<&'static str, usize>,
    /// User messages that were accepted.
    pub(super) sent: Vec<String>,
    /// Those that were to be sent again.
    pub(super) repeated: BTreeSet<String>,
    /// User messages whose result came, as the CLI named it.
    pub(super) finished: Vec<String>,
}

/// What went over the wire, as the host's end saw it.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) read: Lines,
    pub(super) written: Lines,
    /// When the host read the end of the output.
    pub(super) read_end: Option<Duration>,
    /// When the host closed the input, or it broke.
    pub(super) closed: Option<Duration>,
    /// Since when the host cannot write.
    pub(super) blocked: Option<Duration>,
    pub(super) started: bool,
    pub(super) exit_told: Option<Duration>,
    pub(super) terminated: Option<Duration>,
    pub(super) killed: Option<Duration>,
    /// Whether the host let go of it while it ran.
    pub(super) abandoned: bool,
}

/// Bytes cut into lines, each with its time.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) whole: Vec<(Duration, Bytes)>,
    pub(super) rest: Vec<u8>,
}

impl Lines {
    fn add(&mut self, at: Duration, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(piece);
            if self.rest.pop_if(|byte| *byte == b'\n').is_some() {
                self.whole.push((at, Bytes::from(std::mem::take(&mut self.rest))));
            }
        }
    }
}

/// What a callback did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was called and has not ended.
    Running,
    Approved,
    Other,
    /// It failed, or panicked.
    Failed,
}

/// What somebody read.
pub(super) struct Reading {
    pub(super) who: &'static str,
    /// Whether it began with the run.
    pub(super) from_start: bool,
    pub(super) lines: Vec<Bytes>,
    /// Everything that it was given, as text.
    pub(super) items: Vec<String>,
    /// How it ended; nothing if it was let go before.
    pub(super) end: Option<Result<(), ErrorKind>>,
}

impl Record {
    /// A record that begins now.
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), state: Arc::default(), stopped: Arc::default() }
    }

    pub(super) fn now(&self) -> Duration {
        self.stopped.get().copied().unwrap_or_else(|| self.start.elapsed())
    }

    /// From here on it is always now.
    pub(super) fn stop_the_clock(&self) {
        let now = self.now();
        self.stopped.get_or_init(|| now);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, what: impl Into<String>) {
        // In which order tasks are dropped with their runtime is not decided by the seed.
        if self.stopped.get().is_none() {
            let now = self.now();
            self.lock().trace.push((now, what.into()));
        }
    }

    /// Counts a thing that happened, and notes it.
    pub(super) fn count(&self, what: impl Into<String>) {
        let what = what.into();
        self.note(what.as_str());
        *self.lock().counts.entry(what).or_default() += 1;
    }

    pub(super) fn violation(&self, what: impl Into<String>) {
        let what = what.into();
        self.note(format!("VIOLATION {what}"));
        self.lock().violations.push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    pub(super) fn read(&self, bytes: &[u8]) {
        let now = self.now();
        self.lock().wire.read.add(now, bytes);
    }

    pub(super) fn written(&self, bytes: &[u8]) {
        let now = self.now();
        let mut state = self.lock();
        state.wire.written.add(now, bytes);
        state.wire.blocked = None;
    }

    /// What was written to the CLI, and what readers were given, with ids that are the same in
    /// every run.
    pub(super) fn golden(&self) -> Golden {
        let state = self.lock();
        let mut written = state.launch.clone();
        // In which order tasks are dropped with their runtime is not decided by the seed.
        let until = self.stopped.get().copied().unwrap_or(Duration::MAX);
        let lines = state.wire.written.whole.iter().filter(|(at, _)| *at < until);
        written.extend(lines.map(|(_, line)| String::from_utf8_lossy(line).into_owned()));
        let readings = state.readings.iter();
        let readings = readings.map(|reading| (reading.who, reading.items.clone())).collect();
        Golden::ordered(written, readings)
    }

    /// Everything in the order of its time, with ids and dates that are the same in every run.
    pub(super) fn trace(&self) -> Vec<String> {
        let state = self.lock();
        let line = |mark: &str, (at, line): &(Duration, Bytes)| {
            (*at, format!("{mark} {}", String::from_utf8_lossy(line)))
        };
        let read = state.wire.read.whole.iter().map(|one| line("<", one));
        let written = state.wire.written.whole.iter().map(|one| line(">", one));
        let mut all: Vec<(Duration, String)> =
            state.trace.iter().cloned().chain(read).chain(written).collect();
        all.sort_by_key(|(at, _)| *at);
        let mut names = Names::default();
        all.iter()
            .map(|(at, what)| {
                let mut line = format!("{:>12.6} ", at.as_secs_f64());
                let _ = write!(line, "{}", names.normalise(what));
                line
            })
            .collect()
    }
}
