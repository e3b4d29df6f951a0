//! Recording of runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

use claude_agent_testkit::recorder::RecordingWriter;
use claude_agent_testkit::recording::{self, Channel, Header, Recording, today};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Options;
use crate::lock::lock;
use crate::transport::{Connection, Exit, Running};

impl Options {
    /// Records every run, with any CLI: both directions, stderr and the exit status. Takes a
    /// [`Recorder`], or a directory in which each run creates a `.wire` file. Replaces an earlier
    /// recorder. Default: no recording.
    ///
    /// A recording contains prompts, results and arguments: review it before you share it.
    pub fn recorded_to(self, recorder: impl Into<Recorder>) -> Self {
        self.change(|host| host.recorder = Some(recorder.into()))
    }
}

/// Stores recordings of runs, in memory or in a directory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    directory: Option<PathBuf>,
    runs: Mutex<Vec<Run>>,
}

#[derive(Debug, Clone)]
struct Run {
    tape: RecordingWriter,
    file: Option<PathBuf>,
}

impl Recorder {
    /// Creates a recorder that keeps recordings in memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a recorder that writes one `.wire` file per run into `directory`, line by line, so that
    /// a crash of this process loses nothing. The directory is created with the first run.
    pub fn to_directory(directory: impl Into<PathBuf>) -> Self {
        let directory = Some(directory.into());
        Self { shared: Arc::new(Shared { directory, ..Shared::default() }) }
    }

    /// Returns the recordings, in the order in which the runs started. The recording of an active run
    /// contains everything up to now.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or could not be written during its run.
    pub fn recordings(&self) -> io::Result<Vec<Recording>> {
        let runs = lock(&self.shared.runs).clone();
        runs.iter().map(Run::recording).collect()
    }

    /// Records everything that passes through `connection`.
    pub(crate) fn record(
        &self,
        connection: Connection,
        arguments: Vec<String>,
        version: Option<String>,
    ) -> io::Result<Connection> {
        let mut header = Header::new("recorded");
        header.date = today();
        header.argv = arguments;
        header.cli_version = version.unwrap_or_default();
        let run = match &self.shared.directory {
            None => Run { tape: RecordingWriter::new(header), file: None },
            Some(directory) => {
                let (file, path) = new_file(directory)?;
                Run { tape: RecordingWriter::to_file(header, file)?, file: Some(path) }
            }
        };
        let tap = Tap::new(run.tape.clone());
        lock(&self.shared.runs).push(run);
        let Connection { input, output, errors, child } = connection;
        let errors = errors.map(|inner| -> Box<dyn AsyncRead + Send + Unpin> {
            Box::new(ReadTap { inner, channel: Channel::Stderr, tap: tap.clone() })
        });
        Ok(Connection {
            input: Box::new(WriteTap { inner: input, tap: tap.clone() }),
            output: Box::new(ReadTap {
                inner: output,
                channel: Channel::Received,
                tap: tap.clone(),
            }),
            errors,
            child: Running::Recorded(Box::new(child), ExitTap(tap)),
        })
    }
}

impl Run {
    fn recording(&self) -> io::Result<Recording> {
        if let Some(error) = self.tape.take_error() {
            return Err(error);
        }
        let Some(path) = &self.file else { return Ok(self.tape.recording()) };
        let named = |error: &dyn std::fmt::Display| {
            io::Error::other(format!("recording {}: {error}", path.display()))
        };
        let text = fs::read(path).map_err(|error| named(&error))?;
        Recording::parse(&text).map_err(|error| named(&error))
    }
}

/// Creates a file with a unique name.
fn new_file(directory: &Path) -> io::Result<(File, PathBuf)> {
    static RUNS: AtomicU64 = AtomicU64::new(1);
    fs::create_dir_all(directory)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("{now}-{}-{run}.wire", process::id()));
    Ok((File::create_new(&path)?, path))
}

impl From<&Self> for Recorder {
    fn from(recorder: &Self) -> Self {
        recorder.clone()
    }
}

impl From<PathBuf> for Recorder {
    fn from(directory: PathBuf) -> Self {
        Self::to_directory(directory)
    }
}

impl From<&Path> for Recorder {
    fn from(directory: &Path) -> Self {
        Self::to_directory(directory)
    }
}

impl From<&str> for Recorder {
    fn from(directory: &str) -> Self {
        Self::to_directory(directory)
    }
}

/// The state that the taps of one run share.
#[derive(Clone)]
struct Tap {
    tape: RecordingWriter,
    /// Locked from before a write until it is recorded: a response that is read by another thread is
    /// never recorded before its request.
    state: Arc<Mutex<TapState>>,
}

#[derive(Default)]
struct TapState {
    input_closed: bool,
    output_ended: bool,
    exit: Option<recording::Exit>,
}

impl Tap {
    fn new(tape: RecordingWriter) -> Self {
        Self { tape, state: Arc::default() }
    }

    fn close_input(&self) {
        let mut state = lock(&self.state);
        if !state.input_closed {
            state.input_closed = true;
            self.tape.record_stdin_closed();
        }
    }

    /// Records the end of stdout; `is_eof` is false if the host stopped reading before it.
    fn end_output(&self, is_eof: bool) {
        let mut state = lock(&self.state);
        if state.output_ended {
            return;
        }
        state.output_ended = true;
        if is_eof {
            self.tape.record_stdout_closed();
        }
        if let Some(exit) = state.exit {
            self.tape.record_exit(exit);
        }
    }

    /// Records the exit as the last entry, after stdout has been read.
    fn exit(&self, exit: recording::Exit) {
        let mut state = lock(&self.state);
        if state.exit.replace(exit).is_none() && state.output_ended {
            self.tape.record_exit(exit);
        }
    }
}

struct WriteTap<W> {
    inner: W,
    tap: Tap,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for WriteTap<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tap = self.tap.clone();
        let _until_recorded = lock(&tap.state);
        let count = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        tap.tape.record_bytes(Channel::Sent, &bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tap.close_input();
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

// Recorded before the field `inner` is dropped, so before the CLI can react to the closed stream.
impl<W> Drop for WriteTap<W> {
    fn drop(&mut self) {
        self.tap.close_input();
    }
}

struct ReadTap<R> {
    inner: R,
    channel: Channel,
    tap: Tap,
}

impl<R: AsyncRead + Unpin> AsyncRead for ReadTap<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let has_room = buffer.remaining() > 0;
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if !read.is_empty() {
            let _after_writes = lock(&self.tap.state);
            self.tap.tape.record_bytes(self.channel, read);
        } else if has_room && self.channel == Channel::Received {
            self.tap.end_output(true);
        }
        Poll::Ready(Ok(()))
    }
}

impl<R> Drop for ReadTap<R> {
    fn drop(&mut self) {
        if self.channel == Channel::Received {
            self.tap.end_output(false);
        }
    }
}

/// Records the exit status of a CLI.
pub(crate) struct ExitTap(Tap);

impl ExitTap {
    pub(crate) fn record(&self, exit: Exit) {
        match exit {
            Exit::Code(code) => self.0.exit(recording::Exit::Code(code)),
            Exit::Signal(signal) => self.0.exit(recording::Exit::Signal(signal)),
            // The format has no entry for an unknown exit status.
            Exit::Unknown => {}
        }
    }
}
