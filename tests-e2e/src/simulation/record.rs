//! The record of a run, shared by all of its parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_kit::ErrorKind;
use tokio::time::Instant;

use crate::golden::{Golden, Normalizer};

/// The record of a run. Clones share the same state.
#[derive(Clone)]
pub(super) struct Record {
    start: Instant,
    state: Arc<Mutex<RecordState>>,
    /// The time at which the runtime, and with it the clock, was dropped.
    stopped: Arc<OnceLock<Duration>>,
}

#[derive(Default)]
pub(super) struct RecordState {
    trace: Vec<(Duration, String)>,
    /// The arguments and environment variables of the CLI.
    pub(super) launch: Vec<String>,
    pub(super) counts: BTreeMap<String, u64>,
    violations: Vec<String>,
    pub(super) wire: Wire,
    pub(super) readings: Vec<ReaderLog>,
    /// Outcomes of the CLI's requests that reached a callback, by request ID, with their time.
    pub(super) answers: BTreeMap<String, (Duration, CallbackOutcome)>,
    /// Numbers of the tool calls that were executed.
    pub(super) ran: Vec<u64>,
    /// Numbers of the tool calls that a callback approved.
    pub(super) approved: Vec<u64>,
    /// Operations that succeeded, by their names on the wire.
    pub(super) succeeded: BTreeMap<&'static str, usize>,
    /// User messages that were accepted.
    pub(super) sent: Vec<String>,
    /// User messages that were sent more than once on purpose.
    pub(super) repeated: BTreeSet<String>,
    /// User messages that a result of the CLI named.
    pub(super) finished: Vec<String>,
}

/// What crossed the wire, as the host's end saw it.
#[derive(Default)]
pub(super) struct Wire {
    pub(super) read: Lines,
    pub(super) written: Lines,
    /// When the host read EOF from stdout.
    pub(super) read_end: Option<Duration>,
    /// When stdin was closed by the host, or broke.
    pub(super) closed: Option<Duration>,
    /// Since when writes of the host are blocked.
    pub(super) blocked: Option<Duration>,
    pub(super) started: bool,
    pub(super) exit_reported: Option<Duration>,
    pub(super) terminated: Option<Duration>,
    pub(super) killed: Option<Duration>,
    /// Whether the host dropped the process while it was running.
    pub(super) abandoned: bool,
}

/// Bytes split into lines, each with its time.
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
pub(super) enum CallbackOutcome {
    /// It was called and has not returned.
    Running,
    Approved,
    Other,
    /// It returned an error or panicked.
    Failed,
}

/// What one reader received.
pub(super) struct ReaderLog {
    pub(super) who: &'static str,
    /// Whether it has been reading since the start of the run.
    pub(super) from_start: bool,
    pub(super) lines: Vec<Bytes>,
    /// Every item that it received, as text.
    pub(super) items: Vec<String>,
    /// How the stream ended; `None` if the reader was dropped first.
    pub(super) end: Option<Result<(), ErrorKind>>,
}

impl Record {
    /// Creates a record that starts now.
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), state: Arc::default(), stopped: Arc::default() }
    }

    pub(super) fn now(&self) -> Duration {
        self.stopped.get().copied().unwrap_or_else(|| self.start.elapsed())
    }

    /// Freezes the clock of the record.
    pub(super) fn stop_the_clock(&self) {
        let now = self.now();
        self.stopped.get_or_init(|| now);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, what: impl Into<String>) {
        // The order in which a runtime drops its tasks does not depend on the seed.
        if self.stopped.get().is_none() {
            let now = self.now();
            self.lock().trace.push((now, what.into()));
        }
    }

    /// Counts an occurrence and adds it to the trace.
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

    /// Returns what was written to the CLI and what readers received, with IDs that are the same in every run.
    pub(super) fn golden(&self) -> Golden {
        let state = self.lock();
        let mut written = state.launch.clone();
        // The order in which a runtime drops its tasks does not depend on the seed.
        let until = self.stopped.get().copied().unwrap_or(Duration::MAX);
        let lines = state.wire.written.whole.iter().filter(|(at, _)| *at < until);
        written.extend(lines.map(|(_, line)| String::from_utf8_lossy(line).into_owned()));
        let readings = state.readings.iter();
        let readings = readings.map(|reading| (reading.who, reading.items.clone())).collect();
        Golden::ordered(written, readings)
    }

    /// Returns everything in chronological order, with IDs and dates that are the same in every run.
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
        let mut names = Normalizer::default();
        all.iter()
            .map(|(at, what)| {
                let mut line = format!("{:>12.6} ", at.as_secs_f64());
                let _ = write!(line, "{}", names.normalize(what));
                line
            })
            .collect()
    }
}
