//! What collects the entries of a recording.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use bytes::Bytes;

use crate::recording::{Channel, Entry, Exit, Header, Recording, What};

/// Collects what is said on the streams of a process. Clones share one tape.
///
/// A tape keeps its entries in memory, or writes each one to a file as soon as it is complete
/// ([`Tape::to_file`]); then it holds no more than the unfinished line of each stream.
#[derive(Clone)]
pub struct Tape {
    state: Arc<Mutex<State>>,
}

struct State {
    header: Header,
    start: Instant,
    unfinished: [Vec<u8>; 3],
    store: Store,
}

enum Store {
    Memory(Vec<Entry>),
    File { file: Box<dyn Write + Send>, failed: Option<io::Error> },
}

impl Tape {
    /// A tape in memory; its clock starts now.
    pub fn new(header: Header) -> Self {
        Self::with_store(header, Store::Memory(Vec::new()))
    }

    /// A tape that is written to `file` entry by entry; its clock starts now.
    ///
    /// # Errors
    ///
    /// When the header cannot be written.
    pub fn to_file(header: Header, mut file: impl Write + Send + 'static) -> io::Result<Self> {
        file.write_all(&header.to_line())?;
        file.flush()?;
        Ok(Self::with_store(header, Store::File { file: Box::new(file), failed: None }))
    }

    fn with_store(header: Header, store: Store) -> Self {
        let start = Instant::now();
        let state = State { header, start, unfinished: Default::default(), store };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Notes bytes of a stream, cut anywhere.
    pub fn bytes(&self, channel: Channel, bytes: &[u8]) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut line = mem::take(&mut state.unfinished[channel as usize]);
            line.extend_from_slice(&rest[..end]);
            state.note(at, channel.line(Bytes::from(line)));
            rest = &rest[end + 1..];
        }
        state.unfinished[channel as usize].extend_from_slice(rest);
    }

    /// Notes that the client closed the CLI's stdin.
    pub fn input_closed(&self) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        state.flush_unfinished(at, Channel::Sent);
        state.note(at, What::InputClosed);
    }

    /// Notes that the CLI closed its stdout.
    ///
    /// What the client says from here on cannot have had any effect, so a replay does not wait for
    /// it.
    pub fn output_closed(&self) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        state.flush_unfinished(at, Channel::Received);
        state.note(at, What::OutputClosed);
    }

    /// Notes how the process ended.
    pub fn exited(&self, exit: Exit) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        for channel in [Channel::Sent, Channel::Received, Channel::Stderr] {
            state.flush_unfinished(at, channel);
        }
        state.note(at, What::Exited(exit));
    }

    /// The recording up to now. Without entries if the tape writes to a file.
    pub fn recording(&self) -> Recording {
        let state = self.lock();
        let entries = match &state.store {
            Store::Memory(entries) => entries.clone(),
            Store::File { .. } => Vec::new(),
        };
        Recording::new(state.header.clone(), entries)
    }

    /// The first failure of the file, if there was one: recording must not disturb what is
    /// recorded, so it is told here and not where the bytes arrive.
    pub fn failure(&self) -> Option<io::Error> {
        match &mut self.lock().store {
            Store::Memory(_) => None,
            Store::File { failed, .. } => failed.take(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each note is complete before anything can panic, so a poisoned tape is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, at: Duration, what: What) {
        // Files keep microseconds; the same precision in memory makes both ways equal.
        let at = Duration::new(at.as_secs(), at.subsec_micros() * 1000);
        let entry = Entry::new(at, what);
        match &mut self.store {
            Store::Memory(entries) => entries.push(entry),
            Store::File { file, failed } => {
                let mut line = Vec::new();
                entry.write_to(&mut line);
                if let Err(error) = file.write_all(&line).and_then(|()| file.flush()) {
                    failed.get_or_insert(error);
                }
            }
        }
    }

    fn flush_unfinished(&mut self, at: Duration, channel: Channel) {
        let rest = mem::take(&mut self.unfinished[channel as usize]);
        if !rest.is_empty() {
            self.note(at, What::Unfinished(channel, Bytes::from(rest)));
        }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").finish_non_exhaustive()
    }
}
