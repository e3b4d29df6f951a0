//! A session that is brought into a state, with everything that observes it.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claude_agent_kit::{
    Error, ErrorKind, Include, Item, Limits, Options, Session, SessionState, Timeouts, Turn,
    TurnOutcome, VersionCheck, WarningCode,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::callback_gate::CallbackGate;
use super::fault::{Fault, script};
use super::outcome::{Resolution, SessionEnd};
use super::state::State;
use crate::golden::{self, Golden};
use crate::harness::Harness;
use crate::harness::processes::{eventually, exists, marked};

/// Far longer than anything here takes: a future that is still pending then hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The exit grace for a CLI that never exits on its own. Longer than a busy machine needs to report an exit.
const GRACE: Duration = Duration::from_millis(1500);

/// The same where the fault must be injected within it, and for a handshake that never completes.
const LONG_GRACE: Duration = Duration::from_secs(5);

/// A timeout that is meant to expire.
pub(super) const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

/// The environment variable that identifies the processes of a cell.
pub(super) const MARK: &str = "FAULTS_CELL";

const MAX_LINE: usize = 256 * 1024;

/// Fails with a description of what is wrong.
pub(super) type Result<T> = std::result::Result<T, String>;

/// The file in which the simulated CLI logs its stdin.
const LOG: &str = "read.log";

/// A session in a state, with everything that observes it.
pub(super) struct FaultCell {
    pub(super) state: State,
    pub(super) fault: Fault,
    pub(super) harness: Harness,
    /// The runtime of the session, if it has its own.
    pub(super) session_runtime: Option<Runtime>,
    pub(super) session: Option<Session>,
    pub(super) gate: Arc<CallbackGate>,
    /// The pending future of the state.
    pub(super) waiter: Option<JoinHandle<Resolution>>,
    /// Other pending requests.
    pub(super) requests: Vec<JoinHandle<Resolution>>,
    reader: JoinHandle<Option<ErrorKind>>,
    reads: bool,
    events: JoinHandle<(SessionEnd, String)>,
    observed: Arc<Observations>,
    pid: u32,
    mark: String,
}

/// What callbacks and streams have reported.
#[derive(Default)]
struct Observations {
    warnings: Mutex<Vec<WarningCode>>,
    stderr: watch::Sender<usize>,
    marks: watch::Sender<usize>,
    items: Mutex<Vec<String>>,
}

/// Waits for a future that must complete soon.
pub(super) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    timeout(LIMIT, future).await.map_err(|_| format!("{what}: still pending"))
}

pub(super) fn resolution<T>(result: &claude_agent_kit::Result<T>) -> Resolution {
    match result {
        Ok(_) => Resolution::Done,
        Err(error) => Resolution::Error(error.kind()),
    }
}

fn text(error: &Error) -> String {
    format!("{:?}: {error}", error.kind())
}

/// Returns how a turn resolved.
pub(super) fn turn_resolution(result: &claude_agent_kit::Result<TurnOutcome>) -> Resolution {
    match result {
        Ok(outcome) if outcome.result.is_error() => Resolution::Interrupted,
        other => resolution(other),
    }
}

impl FaultCell {
    /// Starts a session whose CLI is scripted for the state and the fault.
    pub(super) async fn open(state: State, fault: Fault, sim: &str) -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}-{}-{}", std::process::id(), state.name(), fault.name());
        let harness = Harness::faulty_process(state.model(), &script(state, fault), sim).await;
        let harness = harness.map_err(|error| error.to_string())?;
        let (observed, gate) = (Arc::<Observations>::default(), CallbackGate::new());
        let options = options(&harness, state, fault, &observed).env(MARK, &mark);
        let options = options.env("CLAUDE_SIM_LOG", harness.root().join(LOG).to_string_lossy());
        let limit = (fault == Fault::CallbackNeverReturns).then_some(SHORT_TIMEOUT);
        let options = gate.guard(options, state, limit);
        let session_runtime = match fault {
            Fault::RuntimeGone => Some(Runtime::new().map_err(|error| error.to_string())?),
            _ => None,
        };
        let opening = async move { Session::open(options).await };
        let opened = match &session_runtime {
            Some(session_runtime) => {
                session_runtime.spawn(opening).await.map_err(|error| error.to_string())?
            }
            None => opening.await,
        };
        let session = opened.map_err(|error| text(&error))?;
        let pid = session.pid().ok_or("the CLI has no process ID")?;
        Ok(Self {
            reader: tokio::spawn(read(session.messages(), Arc::clone(&observed))),
            reads: true,
            events: tokio::spawn(watch_end(session.events())),
            session: Some(session),
            waiter: None,
            requests: Vec::new(),
            state,
            fault,
            harness,
            session_runtime,
            gate,
            observed,
            pid,
            mark,
        })
    }

    pub(super) fn session(&self) -> Result<Session> {
        self.session.clone().ok_or_else(|| "the session was dropped".to_owned())
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Brings the session into its state.
    pub(super) async fn enter_state(&mut self) -> Result<()> {
        let session = self.session()?;
        if self.state.is_before_handshake() {
            self.waiter = Some(tokio::spawn(async move { resolution(&session.ready().await) }));
            return self.wait_for_stderr(1).await;
        }
        in_time("the handshake", session.ready()).await?.map_err(|error| text(&error))?;
        match self.state {
            State::Operation => {
                self.waiter =
                    Some(tokio::spawn(async move { resolution(&session.mcp().status().await) }));
                self.wait_for_stderr(1).await
            }
            State::Stopping => self.begin_to_stop(session).await,
            state if state.has_turn() => self.begin_turn(session).await,
            _ => Ok(()),
        }
    }

    async fn begin_turn(&mut self, session: Session) -> Result<()> {
        let mut turn = session.send("Go.").await.map_err(|error| text(&error))?;
        if matches!(self.state, State::Streaming | State::InputEnded) {
            in_time("the first delta", first_delta(&mut turn)).await??;
        }
        self.waiter = Some(tokio::spawn(async move { turn_resolution(&turn.finish().await) }));
        match self.state {
            State::Tool => {
                let runs = self.harness.project().join("runs");
                self.until("the tool runs", || runs.exists()).await
            }
            State::InputEnded => session.end_input().await.map_err(|error| text(&error)),
            state if state.has_callback() => in_time("the callback", self.gate.entered()).await,
            _ => Ok(()),
        }
    }

    async fn begin_to_stop(&mut self, session: Session) -> Result<()> {
        let (asking, stopping, mut events) = (session.clone(), session.clone(), session.events());
        self.requests.push(tokio::spawn(async move { resolution(&asking.set_model("m").await) }));
        self.wait_for_stderr(1).await?;
        self.waiter = Some(tokio::spawn(async move { resolution(&stopping.stop().await) }));
        in_time("the stop", async {
            while let Some(event) = events.next().await {
                if matches!(event, SessionState::Stopping) || event.is_final() {
                    return;
                }
            }
        })
        .await
    }

    /// Triggers the fault in the CLI and returns when its messages have arrived.
    pub(super) async fn inject(&mut self) -> Result<()> {
        let (before, pipes) = (*self.observed.stderr.borrow(), self.pipes());
        let struck = if self.state == State::Spawning {
            1
        } else {
            self.signal(Signal::USR1)?;
            before + 1
        };
        self.wait_for_stderr(struck).await?;
        if !self.fault.ends_the_cli() && self.fault != Fault::ClosesStdout {
            self.wait_for_stderr(struck + 1).await?;
        }
        if matches!(self.fault, Fault::ClosesStdin | Fault::BrokenPipe) {
            self.until("the CLI closes stdin", || self.pipes().len() < pipes.len()).await?;
            let open = self.pipes();
            // A process that the host started at the same time has a copy of the pipe until it executes its program. On
            // a busy machine that takes a while, and nothing fails that is written meanwhile.
            let closed = |pipe: &PathBuf| open.contains(pipe) || !is_read_by_another(pipe);
            self.until("nobody reads the pipe", || pipes.iter().all(closed)).await?;
        }
        let (mut marks, wanted) = (self.observed.marks.subscribe(), self.fault.marks());
        let arrived = in_time("the messages", marks.wait_for(|marks| *marks >= wanted)).await?;
        // Cannot fail: `self` owns the sender.
        drop(arrived);
        Ok(())
    }

    /// Returns the pipes that the CLI has open.
    fn pipes(&self) -> BTreeSet<PathBuf> {
        pipes_of(&self.pid.to_string())
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).ok_or("no such process")?;
        kill_process(pid, signal).map_err(|error| format!("cannot signal the CLI: {error}"))
    }

    /// Waits until this many lines have arrived on stderr.
    async fn wait_for_stderr(&self, lines: usize) -> Result<()> {
        let mut stderr = self.observed.stderr.subscribe();
        let came = in_time("stderr of the CLI", stderr.wait_for(|seen| *seen >= lines)).await?;
        drop(came);
        Ok(())
    }

    /// Spawns a request of the host.
    pub(super) fn spawn_request(
        &mut self,
        asking: impl Future<Output = Resolution> + Send + 'static,
    ) {
        self.requests.push(tokio::spawn(asking));
    }

    /// Waits until the latest request has resolved.
    pub(super) async fn wait_for_last_request(&self) -> Result<()> {
        let last = self.requests.last();
        self.until("the latest request", || last.is_none_or(JoinHandle::is_finished)).await
    }

    /// Waits until the pending future of the state has resolved.
    pub(super) async fn wait_for_waiter(&self) -> Result<()> {
        let waiter = self.waiter.as_ref();
        self.until("the pending future", || waiter.is_none_or(JoinHandle::is_finished)).await
    }

    /// Drops the pending future of the state.
    pub(super) async fn drop_waiter(&mut self) -> Result<()> {
        if let Some(waiter) = &self.waiter {
            waiter.abort();
        }
        // An aborted task is dropped later.
        self.wait_for_waiter().await
    }

    /// Drops every handle and every future that holds one.
    pub(super) async fn drop_all(&mut self) -> Result<()> {
        self.reads = false;
        self.session = None;
        self.reader.abort();
        self.until("the reader", || self.reader.is_finished()).await?;
        self.drop_waiter().await
    }

    /// Lets the tool's shell exit.
    pub(super) fn release_tool(&self) -> Result<()> {
        std::fs::write(self.harness.project().join("go"), "").map_err(|error| error.to_string())
    }

    /// Polls until a condition holds.
    async fn until(&self, what: &str, condition: impl FnMut() -> bool) -> Result<()> {
        in_time(what, eventually(condition)).await
    }

    /// Waits for the end of the session and returns the outcome.
    pub(super) async fn end(mut self) -> Result<super::CellOutcome> {
        let waiter = match self.waiter.take() {
            Some(waiter) => in_time("the pending future", joined(waiter)).await?,
            None => Resolution::NoWaiter,
        };
        let end = in_time("the end of the session", &mut self.events).await?;
        let (end, text) = end.map_err(|error| error.to_string())?;
        let mut outcome = super::CellOutcome::new(end, waiter);
        outcome.text = text;
        for asking in std::mem::take(&mut self.requests) {
            outcome.requests.push(in_time("a request", joined(asking)).await?);
        }
        self.nothing_is_lost(end).await?;
        self.nothing_is_left().await?;
        outcome.warnings = self.warnings();
        outcome.golden = self.golden();
        Ok(outcome)
    }

    fn golden(&self) -> Golden {
        let log = std::fs::read(self.harness.root().join(LOG)).unwrap_or_default();
        let items = std::mem::take(
            &mut *self.observed.items.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let written = String::from_utf8_lossy(&log).lines().map(str::to_owned).collect();
        let root = self.harness.root().to_string_lossy().into_owned();
        // The CLI derives directory names from the path.
        let slug = root.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        Golden::unordered(written, items, &[root, slug, self.harness.api().base_url()])
    }

    fn warnings(&self) -> Vec<WarningCode> {
        let mut warnings =
            self.observed.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        warnings.sort_by_key(|code| format!("{code:?}"));
        warnings.dedup();
        warnings
    }

    /// Checks that every message was read and that the reader saw the end of the session.
    async fn nothing_is_lost(&mut self, end: SessionEnd) -> Result<()> {
        if !self.reads {
            return Ok(());
        }
        let read = in_time("the reader", &mut self.reader).await?;
        let read = read.map_err(|error| error.to_string())?;
        let expected = match end {
            SessionEnd::Failed(kind) => Some(kind),
            _ => None,
        };
        let (marks, wanted) = (*self.observed.marks.borrow(), self.fault.marks());
        if read != expected || marks != wanted {
            return Err(format!("the reader got {marks} of {wanted} messages, then {read:?}"));
        }
        Ok(())
    }

    /// Checks that no process is left, not even a zombie. The shell of a tool has its own process session; a
    /// killed CLI leaves it running.
    async fn nothing_is_left(&self) -> Result<()> {
        self.release_tool()?;
        self.until("the exit of the CLI", || !exists(self.pid)).await?;
        self.until("the exit of its children", || marked(MARK, &self.mark).is_empty()).await
    }
}

async fn joined(task: JoinHandle<Resolution>) -> Resolution {
    // Tasks are aborted only to drop their futures.
    task.await.unwrap_or(Resolution::Dropped)
}

async fn first_delta(turn: &mut Turn) -> Result<()> {
    while let Some(item) = turn.next().await {
        if raw(&item.map_err(|error| text(&error))?).contains("content_block_delta") {
            return Ok(());
        }
    }
    Err("the turn ended".to_owned())
}

fn raw(item: &Item) -> &str {
    item.message().and_then(|message| message.raw_str()).unwrap_or_default()
}

/// Reads all messages and returns the error that ended the stream.
async fn read(
    mut messages: claude_agent_kit::Messages,
    observed: Arc<Observations>,
) -> Option<ErrorKind> {
    while let Some(item) = messages.next().await {
        observed.items.lock().unwrap_or_else(PoisonError::into_inner).push(golden::text(&item));
        match item {
            Ok(item) if raw(&item).contains("msg_flood") => {
                observed.marks.send_modify(|marks| *marks += 1);
            }
            Ok(_) => {}
            Err(error) => return Some(error.kind()),
        }
    }
    None
}

/// Waits for the final event and returns it with its text.
async fn watch_end(mut events: claude_agent_kit::Events) -> (SessionEnd, String) {
    let (mut end, mut text) = (SessionEnd::Unobserved, String::new());
    while let Some(event) = events.next().await {
        text = format!("{event:?}");
        end = match event {
            SessionState::Stopped(_) => SessionEnd::Stopped,
            SessionState::Completed(_) => SessionEnd::Completed,
            SessionState::Failed(error) => SessionEnd::Failed(error.kind()),
            _ => continue,
        };
    }
    (end, text)
}

fn options(harness: &Harness, state: State, fault: Fault, observed: &Arc<Observations>) -> Options {
    let (warnings, stderr) = (Arc::clone(observed), Arc::clone(observed));
    let options = harness
        .options()
        .version_check(VersionCheck::Skip)
        .include(Include::PARTIAL_MESSAGES)
        .limits(Limits::new().max_line_bytes(MAX_LINE))
        .timeouts(Timeouts::new().exit_grace(grace(state, fault)))
        .on_warning(move |warning| {
            warnings.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning.code());
        })
        .on_stderr(move |_| stderr.stderr.send_modify(|lines| *lines += 1));
    let times_out = matches!(fault, Fault::Hangs | Fault::EndInput) && state.is_before_handshake();
    let options =
        if times_out { options.timeouts(Timeouts::new().initialize(LONG_GRACE)) } else { options };
    match fault {
        Fault::SlowReader => options.limits(Limits::new().max_unwritten_bytes(64 * 1024)),
        _ => options,
    }
}

/// Returns how long the CLI has to exit.
fn grace(state: State, fault: Fault) -> Duration {
    match fault {
        _ if state == State::Stopping => LONG_GRACE,
        // The CLI exits on its own after the result of the interrupted turn.
        Fault::Stop | Fault::StopTwice | Fault::ShutdownAll
            if state.has_turn() && state.can_send() =>
        {
            LIMIT
        }
        _ => GRACE,
    }
}

/// Returns the pipes that a process has open.
fn pipes_of(pid: &str) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let targets = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("pipe:")).collect()
}

/// Returns whether a process other than the host, which has the other end, has a pipe open.
fn is_read_by_another(pipe: &PathBuf) -> bool {
    let host = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|pid| {
        pid != host
            && pid.starts_with(|c: char| c.is_ascii_digit())
            && pipes_of(&pid).contains(pipe)
    })
}
