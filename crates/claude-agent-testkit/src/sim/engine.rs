//! Runs a simulated CLI.
//!
//! Three futures run concurrently in one task: the *reader* reads lines from stdin and delivers
//! responses to the requests that wait for them, the *dispatcher* handles messages and requests in
//! order, and the *worker* runs one turn after another. Background work has its own tasks, which
//! end with the engine.

use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use claude_wire::{Frame, Framer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::arguments::{Launch, OutputFormat};
use super::ids::IdGenerator;
use super::json::text;
use super::model::Model;
use super::output::Output;
use super::settings::Settings;
use super::state::{SessionState, lock};
use super::transcript;
use crate::recording::Exit;

/// The minimum startup time of the real CLI.
const STARTUP_TIME: Duration = Duration::from_millis(300);

/// The number of lines of the host that are buffered while the dispatcher is busy.
const INBOX_CAPACITY: usize = 1024;

pub(super) struct Engine {
    pub(super) launch: Launch,
    pub(super) settings: Settings,
    pub(super) out: Output,
    pub(super) model: Model,
    pub(super) ids: IdGenerator,
    pub(super) started: Instant,
    /// Notified when the worker has to check the state again.
    pub(super) changed: Notify,
    /// Notified when a message leaves the queue.
    pub(super) queue_space: Notify,
    /// Held while a turn reports its end, so that no background output comes in between.
    pub(super) result_lock: Arc<tokio::sync::Mutex<()>>,
    /// The lines that are being written.
    pub(super) writing: ActivityCounter,
    /// The lines of the host that were read but not yet handled.
    pub(super) undispatched: ActivityCounter,
    /// Whether stdin may be read.
    pub(super) reading: watch::Sender<bool>,
    /// The directory for temporary files, once it has been created.
    pub(super) temp_dir: OnceLock<PathBuf>,
    state: Mutex<SessionState>,
    tasks: Mutex<JoinSet<()>>,
}

/// A line of the host that must be handled in order.
#[derive(Debug)]
pub(super) enum Inbound {
    User(Value),
    Request(Value),
    /// A line that is not JSON, with its length in characters.
    Malformed(usize),
    /// EOF on stdin.
    End,
}

/// Ends the background tasks and removes temporary files when the engine stops or is dropped.
struct Cleanup<'a>(&'a Engine);

impl Drop for Cleanup<'_> {
    fn drop(&mut self) {
        self.0.tasks().abort_all();
        if let Some(directory) = self.0.temp_dir.get() {
            // A directory that cannot be removed is left to the system.
            fs::remove_dir_all(directory).ok();
        }
    }
}

impl Engine {
    pub(super) fn new(launch: Launch, out: Output, model: Model) -> Arc<Self> {
        let ids = IdGenerator::new();
        let settings = Settings::load(&launch);
        let state = SessionState {
            session_id: launch.session_id.clone().unwrap_or_else(|| ids.uuid()),
            model: super::catalog::resolve_model(launch.model.as_deref()),
            mode: launch
                .mode
                .clone()
                .or(settings.default_mode.clone())
                .unwrap_or_else(|| launch.cli_version.default_mode().to_owned()),
            allow: [launch.allowed.clone(), settings.allow.clone()].concat(),
            deny: [launch.disallowed.clone(), settings.deny.clone()].concat(),
            directories: launch.add_dirs.clone(),
            hooks: super::hooks::Hooks::new(settings.hooks.clone()),
            prompt_id: ids.uuid(),
            ..SessionState::default()
        };
        Arc::new(Self {
            launch,
            settings,
            out,
            model,
            ids,
            started: Instant::now(),
            changed: Notify::new(),
            queue_space: Notify::new(),
            result_lock: Arc::default(),
            writing: ActivityCounter::default(),
            undispatched: ActivityCounter::default(),
            reading: watch::Sender::new(true),
            temp_dir: OnceLock::new(),
            state: Mutex::new(state),
            tasks: Mutex::default(),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        lock(&self.state)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        lock(&self.tasks)
    }

    /// Runs a future in the background until it completes or the CLI ends.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Removes finished tasks.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Runs the CLI until it exits.
    pub(super) async fn run(
        self: &Arc<Self>,
        stdin: impl AsyncRead + Send + Unpin,
        terminate: watch::Receiver<bool>,
    ) -> Exit {
        let cleanup = Cleanup(self);
        let exit = tokio::select! {
            biased;
            exit = self.out.wait_for_end() => exit,
            exit = self.wait_for_sigterm(terminate) => exit,
            () = self.out.run_signal_faults() => Exit::Code(1),
            exit = Box::pin(self.run_session(stdin)) => {
                self.out.close().await;
                exit
            }
        };
        drop(cleanup);
        // Shells are killed with their tasks; the CLI must not exit before that.
        let mut tasks = std::mem::take(&mut *self.tasks());
        tasks.shutdown().await;
        exit
    }

    async fn wait_for_sigterm(&self, mut terminate: watch::Receiver<bool>) -> Exit {
        loop {
            if terminate.wait_for(|terminate| *terminate).await.is_err() {
                std::future::pending::<()>().await;
            }
            if !self.out.ignores_terminate() {
                return Exit::Code(143);
            }
            if terminate.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn run_session(self: &Arc<Self>, mut stdin: impl AsyncRead + Send + Unpin) -> Exit {
        self.out.start().await;
        if let Err(reason) = transcript::resume(self) {
            // The real CLI takes this long to detect it, and the host may write meanwhile.
            drop(timeout(STARTUP_TIME, stdin.read_u8()).await);
            return self.fail_resume(&reason).await;
        }
        self.emit_startup_marks().await;
        if let Err(reason) = self.load_servers() {
            self.out.write_stderr_line(&reason).await;
            return Exit::Code(1);
        }
        if !self.launch.session {
            return self.run_once(stdin).await;
        }
        if !self.launch.await_initialize {
            // The call is decided before stdin is read, so no hook of the host is registered yet.
            let decides = self.state().replay.is_some() && !self.has_tools_to_list();
            self.reading.send_replace(!decides);
            self.announce_replay().await;
            self.start_replay();
        }
        let (inbox_in, inbox) = mpsc::channel(INBOX_CAPACITY);
        tokio::select! {
            biased;
            exit = self.dispatch(inbox) => exit,
            () = self.read(stdin, inbox_in) => Exit::Code(1),
            exit = self.run_turns() => exit,
        }
    }

    /// Runs a single prompt, from the command line or stdin.
    async fn run_once(self: &Arc<Self>, mut stdin: impl AsyncRead + Send + Unpin) -> Exit {
        let mut prompt = self.launch.prompt.clone().unwrap_or_default();
        if prompt.is_empty() {
            // A read error counts as an empty prompt.
            drop(stdin.read_to_string(&mut prompt).await);
        }
        if prompt.trim().is_empty() {
            self.out.write_stderr_line("Error: no prompt on the command line or on stdin").await;
            return Exit::Code(1);
        }
        self.state().stdin_closed = true;
        self.accept_prompt(prompt.into()).await;
        self.state().input_ended = true;
        self.run_turns().await
    }

    /// Reads stdin until EOF, then waits forever: the process ends when the worker is done.
    async fn read(&self, mut stdin: impl AsyncRead + Send + Unpin, inbox: mpsc::Sender<Inbound>) {
        // The sender lives as long as the engine, so this does not fail.
        drop(self.reading.subscribe().wait_for(|reading| *reading).await);
        let mut framer = Framer::default();
        let mut open = true;
        while open {
            self.out.wait_readable().await;
            // A read error is treated as EOF.
            let read = tokio::select! {
                biased;
                () = self.out.stdin_closed() => break,
                read = stdin.read_buf(framer.space()) => read,
            };
            // The read may have started before the fault occurred.
            self.out.wait_readable().await;
            open = matches!(read, Ok(1..));
            let mut frame = framer.next_frame();
            if !open && frame.is_none() {
                frame = framer.finish();
            }
            while let Some(next) = frame {
                match next {
                    Frame::Line(line) => self.handle_line(&line, &inbox).await,
                    // No valid line of a host is this long.
                    Frame::Oversized(_) => drop(inbox.send(Inbound::Malformed(usize::MAX)).await),
                }
                frame = framer.next_frame();
            }
        }
        if open {
            // After this fault, not even EOF is reported.
            drop(stdin);
            return std::future::pending().await;
        }
        self.close_stdin();
        // The receiver lives as long as the engine, so this does not fail.
        drop(inbox.send(Inbound::End).await);
        std::future::pending::<()>().await;
    }

    async fn handle_line(&self, line: &[u8], inbox: &mpsc::Sender<Inbound>) {
        let Ok(frame) = serde_json::from_slice::<Value>(line) else {
            let length = String::from_utf8_lossy(line).chars().count();
            drop(inbox.send(Inbound::Malformed(length)).await);
            return;
        };
        let kind = text(&frame["type"]).to_owned();
        let subtype = frame["request"]["subtype"].as_str();
        let full = subtype.map_or_else(|| kind.clone(), |subtype| format!("{kind}/{subtype}"));
        self.out.on_read(&full).await;
        self.out.wait_readable().await;
        let inbound = match kind.as_str() {
            "control_response" => return self.handle_response(&frame["response"]),
            "user" => Inbound::User(frame),
            "control_request" => Inbound::Request(frame),
            // The real CLI ignores unknown types too.
            _ => return,
        };
        self.undispatched.count.fetch_add(1, Relaxed);
        drop(inbox.send(inbound).await);
    }

    /// Handles the lines of the host in order; returns if the host violates the protocol.
    async fn dispatch(self: &Arc<Self>, mut inbox: mpsc::Receiver<Inbound>) -> Exit {
        while let Some(inbound) = inbox.recv().await {
            let refusal = match inbound {
                Inbound::User(frame) => {
                    let _dealt = self.undispatched.guard();
                    self.accept_message(&frame).await.err()
                }
                Inbound::Request(frame) => {
                    let _dealt = self.undispatched.guard();
                    Box::pin(self.handle_request(&frame)).await;
                    None
                }
                Inbound::Malformed(length) => Some(format!(
                    "Error parsing streaming input line (type=unknown, {length} chars): SyntaxError"
                )),
                Inbound::End => {
                    self.state().input_ended = true;
                    self.changed.notify_one();
                    None
                }
            };
            if let Some(reason) = refusal {
                self.out.write_stderr_line(&reason).await;
                return Exit::Code(1);
            }
        }
        std::future::pending().await
    }

    /// Writes a line to stdout.
    pub(super) async fn write(&self, kind: &str, json: &str) {
        let _writing = self.writing.start();
        let cli_version = self.launch.cli_version;
        if cli_version.is_newest() {
            self.out.write_line(kind, json).await;
        } else if let Some(json) = cli_version.render_line(kind, json) {
            self.out.write_line(kind, &json).await;
        }
    }

    /// Writes a line to stderr.
    pub(super) async fn write_stderr(&self, text: &str) {
        let _writing = self.writing.start();
        self.out.write_stderr_line(text).await;
    }

    /// Returns whether the output format is `stream-json`.
    pub(super) fn writes_stream_json(&self) -> bool {
        self.launch.output == OutputFormat::StreamJson
    }
}

/// Counts running activities.
#[derive(Debug, Default)]
pub(super) struct ActivityCounter {
    count: AtomicUsize,
    decreased: Notify,
}

/// A running activity, which ends when this guard is dropped.
pub(super) struct ActivityGuard<'a>(&'a ActivityCounter);

impl ActivityCounter {
    fn start(&self) -> ActivityGuard<'_> {
        self.count.fetch_add(1, Relaxed);
        self.guard()
    }

    /// Returns a guard for an activity that has already been counted.
    fn guard(&self) -> ActivityGuard<'_> {
        ActivityGuard(self)
    }

    pub(super) fn is_active(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Completes when an activity ends. Must be created before the count is checked.
    pub(super) fn decreased(&self) -> tokio::sync::futures::Notified<'_> {
        self.decreased.notified()
    }

    pub(super) async fn wait_idle(&self) {
        loop {
            let decreased = self.decreased();
            if !self.is_active() {
                return;
            }
            decreased.await;
        }
    }
}

impl Drop for ActivityGuard<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Relaxed);
        self.0.decreased.notify_waiters();
    }
}
