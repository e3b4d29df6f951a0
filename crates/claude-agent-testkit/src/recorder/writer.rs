//! Collects the entries of a recording.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use bytes::Bytes;

use crate::recording::{Channel, Entry, EntryKind, Exit, Header, Recording};

/// Records the standard streams of a process. Clones share one recording.
///
/// The entries are kept in memory ([`RecordingWriter::new`]) or written to a file as soon as each is
/// complete ([`RecordingWriter::to_file`]). With a file, only the unfinished line of each stream is
/// buffered.
#[derive(Clone)]
pub struct RecordingWriter {
    state: Arc<Mutex<WriterState>>,
}

struct WriterState {
    header: Header,
    start: Instant,
    unfinished: [Vec<u8>; 3],
    sink: EntrySink,
}

enum EntrySink {
    Memory(Vec<Entry>),
    File { file: Box<dyn Write + Send>, error: Option<io::Error> },
}

impl RecordingWriter {
    /// Creates a writer that keeps its entries in memory. Times are measured from this call.
    pub fn new(header: Header) -> Self {
        Self::with_sink(header, EntrySink::Memory(Vec::new()))
    }

    /// Creates a writer that appends each entry to `file`. Times are measured from this call.
    ///
    /// # Errors
    ///
    /// Returns an error if the header cannot be written. Later write errors are returned by
    /// [`take_error`](Self::take_error).
    pub fn to_file(header: Header, mut file: impl Write + Send + 'static) -> io::Result<Self> {
        file.write_all(&header.to_line())?;
        file.flush()?;
        Ok(Self::with_sink(header, EntrySink::File { file: Box::new(file), error: None }))
    }

    fn with_sink(header: Header, sink: EntrySink) -> Self {
        let start = Instant::now();
        let state = WriterState { header, start, unfinished: Default::default(), sink };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Records bytes of a stream. The bytes need not end at a line boundary.
    pub fn record_bytes(&self, channel: Channel, bytes: &[u8]) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut line = mem::take(&mut state.unfinished[channel as usize]);
            line.extend_from_slice(&rest[..end]);
            state.record(at, channel.line(Bytes::from(line)));
            rest = &rest[end + 1..];
        }
        state.unfinished[channel as usize].extend_from_slice(rest);
    }

    /// Records that the client closed the CLI's stdin.
    pub fn record_stdin_closed(&self) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        state.flush_unfinished(at, Channel::Sent);
        state.record(at, EntryKind::StdinClosed);
    }

    /// Records that the CLI closed its stdout.
    ///
    /// Lines that the client sends afterwards cannot have any effect, so a replay does not wait for
    /// them.
    pub fn record_stdout_closed(&self) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        state.flush_unfinished(at, Channel::Received);
        state.record(at, EntryKind::StdoutClosed);
    }

    /// Records how the process ended.
    pub fn record_exit(&self, exit: Exit) {
        let mut state = self.lock();
        let at = state.start.elapsed();
        for channel in [Channel::Sent, Channel::Received, Channel::Stderr] {
            state.flush_unfinished(at, channel);
        }
        state.record(at, EntryKind::Exited(exit));
    }

    /// Returns the recording so far. It has no entries if this writer writes to a file.
    pub fn recording(&self) -> Recording {
        let state = self.lock();
        let entries = match &state.sink {
            EntrySink::Memory(entries) => entries.clone(),
            EntrySink::File { .. } => Vec::new(),
        };
        Recording::new(state.header.clone(), entries)
    }

    /// Takes the first error that occurred while writing to the file.
    ///
    /// The `record_*` methods do not return it, because a failing recording must not disturb the
    /// recorded program.
    pub fn take_error(&self) -> Option<io::Error> {
        match &mut self.lock().sink {
            EntrySink::Memory(_) => None,
            EntrySink::File { error, .. } => error.take(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        // An entry is complete before anything can panic, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriterState {
    fn record(&mut self, at: Duration, kind: EntryKind) {
        // A file has microsecond precision; entries in memory have the same.
        let at = Duration::new(at.as_secs(), at.subsec_micros() * 1000);
        let entry = Entry::new(at, kind);
        match &mut self.sink {
            EntrySink::Memory(entries) => entries.push(entry),
            EntrySink::File { file, error } => {
                let mut line = Vec::new();
                entry.write_to(&mut line);
                if let Err(failure) = file.write_all(&line).and_then(|()| file.flush()) {
                    error.get_or_insert(failure);
                }
            }
        }
    }

    fn flush_unfinished(&mut self, at: Duration, channel: Channel) {
        let rest = mem::take(&mut self.unfinished[channel as usize]);
        if !rest.is_empty() {
            self.record(at, EntryKind::Unfinished(channel, Bytes::from(rest)));
        }
    }
}

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter").finish_non_exhaustive()
    }
}
