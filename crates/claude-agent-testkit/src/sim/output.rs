//! Writes the output of the simulated CLI and injects faults.
//!
//! Every line is written here, so a fault can occur before, after or instead of any line. A fault
//! that ends or hangs the process is final: all later writes wait forever, and the process is ended
//! through [`Output::ended`].

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, watch};

use super::fault::{Fault, Faults, Point};
use super::fault_output;
use crate::recording::Exit;

/// The output of a simulated CLI. Clones write to the same streams.
#[derive(Clone)]
pub(crate) struct Output {
    shared: Arc<OutputState>,
}

struct OutputState {
    streams: Mutex<Streams>,
    end: watch::Sender<Option<Exit>>,
    /// Whether reading from stdin has stopped.
    reading_stopped: watch::Sender<bool>,
    /// Whether stdin is to be closed.
    stdin_closed: watch::Sender<bool>,
    /// Whether some faults are triggered by SIGUSR1.
    awaits_signal: bool,
    ignores_terminate: AtomicBool,
}

struct Streams {
    /// `None` once stdout has been closed.
    stdout: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    stderr: Box<dyn AsyncWrite + Send + Unpin>,
    armed: Vec<ArmedFault>,
    /// A line that is written after the next one.
    held_back: Option<Vec<u8>>,
}

/// A fault that has not occurred yet.
struct ArmedFault {
    point: Point,
    fault: Fault,
    /// The number of matching lines so far.
    seen: usize,
}

/// A line with the effects of the faults at its point.
struct PendingLine {
    line: Option<Vec<u8>>,
    twice: bool,
    behind: bool,
}

/// How the process continues after a fault.
enum AfterFault {
    Continue,
    /// The process has ended or hangs.
    Final,
}

impl Output {
    pub(crate) fn new(
        faults: &Faults,
        stdout: impl AsyncWrite + Send + Unpin + 'static,
        stderr: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let armed = faults
            .rules()
            .map(|(point, fault)| ArmedFault {
                point: point.clone(),
                fault: fault.clone(),
                seen: 0,
            })
            .collect();
        let streams = Streams {
            stdout: Some(Box::new(stdout)),
            stderr: Box::new(stderr),
            armed,
            held_back: None,
        };
        Self {
            shared: Arc::new(OutputState {
                streams: Mutex::new(streams),
                end: watch::Sender::new(None),
                reading_stopped: watch::Sender::new(false),
                stdin_closed: watch::Sender::new(false),
                awaits_signal: faults.has_signal_fault(),
                ignores_terminate: AtomicBool::new(false),
            }),
        }
    }

    /// Triggers the faults at startup.
    pub(crate) async fn start(&self) {
        self.trigger(|armed| armed.point == Point::Start).await;
    }

    /// Triggers the faults for SIGUSR1 when the signal arrives. Never returns.
    pub(crate) async fn run_signal_faults(&self) {
        if self.shared.awaits_signal {
            sigusr1().await;
            self.trigger(|armed| armed.point == Point::Signal).await;
        }
        pending::<()>().await;
    }

    /// Completes when a fault closes stdin.
    pub(crate) async fn stdin_closed(&self) {
        let mut closed = self.shared.stdin_closed.subscribe();
        // The sender lives in `self`, so this does not fail.
        drop(closed.wait_for(|closed| *closed).await);
    }

    /// Triggers the faults for a line of the host.
    pub(crate) async fn on_read(&self, kind: &str) {
        self.trigger(|armed| match &armed.point {
            Point::Read(pattern, number) => is_due(&mut armed.seen, pattern, *number, kind),
            _ => false,
        })
        .await;
    }

    /// Writes one line.
    pub(crate) async fn write_line(&self, kind: &str, json: &str) {
        let mut streams = self.shared.streams.lock().await;
        if streams.armed.is_empty() && streams.held_back.is_none() {
            let line = [json.as_bytes(), b"\n"].concat();
            streams.write(&line).await;
            return;
        }
        let before = streams.take_due(|armed| match &armed.point {
            Point::Before(pattern, number) => is_due(&mut armed.seen, pattern, *number, kind),
            _ => false,
        });
        let after = streams.take_due(|armed| match &armed.point {
            Point::After(pattern, number) => is_due(&mut armed.seen, pattern, *number, kind),
            _ => false,
        });
        let line = [json.as_bytes(), b"\n"].concat();
        let mut pending = PendingLine { line: Some(line), twice: false, behind: false };
        if let AfterFault::Final = self.apply_all(&mut streams, &before, &mut pending).await {
            return hang(streams).await;
        }
        streams.write_pending(pending).await;
        let mut nothing = PendingLine { line: None, twice: false, behind: false };
        if let AfterFault::Final = self.apply_all(&mut streams, &after, &mut nothing).await {
            hang(streams).await;
        }
    }

    /// Writes a line to stderr.
    pub(crate) async fn write_stderr_line(&self, text: &str) {
        let mut streams = self.shared.streams.lock().await;
        streams.write_stderr(format!("{text}\n").as_bytes()).await;
    }

    /// Completes when stdin may be read; never completes after a fault that stops reading.
    pub(crate) async fn wait_readable(&self) {
        if *self.shared.reading_stopped.borrow() {
            pending::<()>().await;
        }
    }

    /// Completes when a fault has ended the process.
    pub(crate) async fn wait_for_end(&self) -> Exit {
        let mut end = self.shared.end.subscribe();
        loop {
            if let Some(exit) = *end.borrow_and_update() {
                return exit;
            }
            // The sender lives in `self`, so this does not fail.
            if end.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    pub(crate) fn ignores_terminate(&self) -> bool {
        self.shared.ignores_terminate.load(Ordering::Relaxed)
    }

    /// Writes the held line at the end of the process.
    pub(crate) async fn close(&self) {
        let mut streams = self.shared.streams.lock().await;
        if let Some(line) = streams.held_back.take() {
            streams.write(&line).await;
        }
    }

    async fn trigger(&self, mut is_due: impl FnMut(&mut ArmedFault) -> bool) {
        let mut streams = self.shared.streams.lock().await;
        let due = streams.take_due(&mut is_due);
        let mut nothing = PendingLine { line: None, twice: false, behind: false };
        if let AfterFault::Final = self.apply_all(&mut streams, &due, &mut nothing).await {
            hang(streams).await;
        }
    }

    async fn apply_all(
        &self,
        streams: &mut Streams,
        faults: &[Fault],
        pending: &mut PendingLine,
    ) -> AfterFault {
        for fault in faults {
            if let AfterFault::Final = self.apply(streams, fault, pending).await {
                return AfterFault::Final;
            }
        }
        AfterFault::Continue
    }

    async fn apply(
        &self,
        streams: &mut Streams,
        fault: &Fault,
        pending: &mut PendingLine,
    ) -> AfterFault {
        match fault {
            Fault::Exit(code) => return self.end(Exit::Code(*code)),
            Fault::Signal(signal) => return self.end(Exit::Signal(*signal)),
            Fault::LeaveGrandchild(time) => {
                fault_output::leave_grandchild(*time);
                return self.end(Exit::Code(0));
            }
            Fault::Hang => {
                self.shared.reading_stopped.send_replace(true);
                return AfterFault::Final;
            }
            Fault::StopReading => drop(self.shared.reading_stopped.send_replace(true)),
            Fault::IgnoreTerminate => {
                self.shared.ignores_terminate.store(true, Ordering::Relaxed);
            }
            Fault::Bytes(bytes) => streams.write(bytes).await,
            Fault::LongLine(size) => streams.write_all(fault_output::long_line(*size)).await,
            Fault::Messages(count) => streams.write_all(fault_output::messages(*count)).await,
            Fault::Deltas(count) => streams.write_all(fault_output::deltas(*count)).await,
            Fault::Stderr(size) => {
                for piece in fault_output::stderr(*size) {
                    streams.write_stderr(&piece).await;
                }
            }
            Fault::Pause(time) => tokio::time::sleep(*time).await,
            Fault::CloseStdout => streams.close_stdout().await,
            Fault::CloseStdin => drop(self.shared.stdin_closed.send_replace(true)),
            Fault::Swallow => pending.line = None,
            Fault::Twice => pending.twice = true,
            Fault::Behind => pending.behind = true,
            Fault::WrongId => pending.modify(fault_output::with_wrong_id),
            Fault::WrongShape => pending.modify(fault_output::with_wrong_shape),
        }
        AfterFault::Continue
    }

    fn end(&self, exit: Exit) -> AfterFault {
        self.shared.reading_stopped.send_replace(true);
        self.shared.end.send_replace(Some(exit));
        AfterFault::Final
    }
}

/// Completes when SIGUSR1 arrives. Until this is first polled, the signal has its default action.
#[cfg(unix)]
async fn sigusr1() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::user_defined1()) {
        Ok(mut signal) => drop(signal.recv().await),
        // Without a signal handler the fault does not occur, which the test detects.
        Err(_) => pending().await,
    }
}

#[cfg(not(unix))]
async fn sigusr1() {
    pending().await
}

/// Keeps the streams locked forever, so that nothing more is written or closed.
async fn hang(streams: tokio::sync::MutexGuard<'_, Streams>) {
    pending::<()>().await;
    drop(streams);
}

/// Counts a line and returns whether it is the one at which the fault occurs.
fn is_due(seen: &mut usize, pattern: &str, number: usize, kind: &str) -> bool {
    let first_word = kind.split('/').next();
    let fits = pattern == "*" || pattern == kind || first_word == Some(pattern);
    if fits {
        *seen += 1;
    }
    fits && *seen == number
}

impl PendingLine {
    fn modify(&mut self, how: fn(&[u8]) -> Vec<u8>) {
        self.line = self.line.take().map(|line| how(&line));
    }
}

impl Streams {
    /// Removes and returns the faults that are due.
    fn take_due(&mut self, mut is_due: impl FnMut(&mut ArmedFault) -> bool) -> Vec<Fault> {
        self.armed.extract_if(.., |armed| is_due(armed)).map(|armed| armed.fault).collect()
    }

    async fn write_pending(&mut self, pending: PendingLine) {
        let Some(line) = pending.line else { return };
        if pending.behind {
            self.held_back = Some(line);
            return;
        }
        self.write(&line).await;
        if pending.twice {
            self.write(&line).await;
        }
        if let Some(late) = self.held_back.take() {
            self.write(&late).await;
        }
    }

    async fn write_all(&mut self, pieces: impl Iterator<Item = Vec<u8>>) {
        for piece in pieces {
            self.write(&piece).await;
        }
    }

    async fn write(&mut self, bytes: &[u8]) {
        let Some(stdout) = &mut self.stdout else { return };
        // The real CLI continues too when its stdout is closed.
        if stdout.write_all(bytes).await.is_err() || stdout.flush().await.is_err() {
            self.stdout = None;
        }
    }

    async fn write_stderr(&mut self, bytes: &[u8]) {
        // As for stdout, errors are ignored.
        if self.stderr.write_all(bytes).await.is_ok() {
            drop(self.stderr.flush().await);
        }
    }

    async fn close_stdout(&mut self) {
        if let Some(mut stdout) = self.stdout.take() {
            // Dropping the stream closes it even if this fails.
            drop(stdout.shutdown().await);
        }
    }
}
