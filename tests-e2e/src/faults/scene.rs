//! A session that is brought into a state, and everybody who watches it.

use std::future::Future;
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

use super::fault::{Fault, script};
use super::gate::Gate;
use super::outcome::{End, Told};
use super::state::State;
use crate::golden::{self, Golden};
use crate::harness::Harness;
use crate::harness::processes::{eventually, exists, marked};

/// Far more than anything here takes: whoever waits longer waits for ever.
const LIMIT: Duration = Duration::from_secs(60);

/// How long a CLI has that is waited for in vain. Longer than a busy machine takes to tell of an end.
const GRACE: Duration = Duration::from_millis(1500);

/// The same where the fault has to strike within it, and for a handshake that is waited for in vain.
const LONG_GRACE: Duration = Duration::from_secs(5);

/// A limit that is meant to pass.
pub(super) const SOON: Duration = Duration::from_millis(300);

/// The variable by which the processes of a scene are found.
pub(super) const MARK: &str = "FAULTS_SCENE";

const MAX_LINE: usize = 256 * 1024;

/// What goes wrong with the scene itself, or holds that should not.
pub(super) type Result<T> = std::result::Result<T, String>;

/// The file in which the CLI writes what it reads.
const LOG: &str = "read.log";

/// A session in a state, and everybody who watches it.
pub(super) struct Scene {
    pub(super) state: State,
    pub(super) fault: Fault,
    pub(super) harness: Harness,
    /// The runtime that the session lives on, if it is one of its own.
    pub(super) home: Option<Runtime>,
    pub(super) session: Option<Session>,
    pub(super) gate: Arc<Gate>,
    /// Whoever waits in the state.
    pub(super) waiter: Option<JoinHandle<Told>>,
    /// Those who ask besides.
    pub(super) asking: Vec<JoinHandle<Told>>,
    reader: JoinHandle<Option<ErrorKind>>,
    reads: bool,
    events: JoinHandle<(End, String)>,
    notes: Arc<Notes>,
    pid: u32,
    mark: String,
}

/// What callbacks and streams have told.
#[derive(Default)]
struct Notes {
    warnings: Mutex<Vec<WarningCode>>,
    stderr: watch::Sender<usize>,
    marks: watch::Sender<usize>,
    items: Mutex<Vec<String>>,
}

/// What must have come by now.
pub(super) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    timeout(LIMIT, future).await.map_err(|_| format!("{what}: somebody still waits"))
}

pub(super) fn told<T>(result: &claude_agent_kit::Result<T>) -> Told {
    match result {
        Ok(_) => Told::Done,
        Err(error) => Told::Error(error.kind()),
    }
}

fn text(error: &Error) -> String {
    format!("{:?}: {error}", error.kind())
}

/// How a turn ended.
pub(super) fn turn_told(result: &claude_agent_kit::Result<TurnOutcome>) -> Told {
    match result {
        Ok(outcome) if outcome.result.is_error() => Told::Interrupted,
        other => told(other),
    }
}

impl Scene {
    /// Starts a session whose CLI will come into this state.
    #[expect(clippy::similar_names, reason = "a harness is no state")]
    pub(super) async fn open(state: State, fault: Fault, sim: &str) -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}-{}-{}", std::process::id(), state.name(), fault.name());
        let harness = Harness::faulty_process(state.model(), &script(state, fault), sim).await;
        let harness = harness.map_err(|error| error.to_string())?;
        let (notes, gate) = (Arc::<Notes>::default(), Gate::new());
        let options = options(&harness, state, fault, &notes).env(MARK, &mark);
        let options = options.env("CLAUDE_SIM_LOG", harness.root().join(LOG).to_string_lossy());
        let limit = (fault == Fault::CallbackNeverReturns).then_some(SOON);
        let options = gate.guard(options, state, limit);
        let home = match fault {
            Fault::RuntimeGone => Some(Runtime::new().map_err(|error| error.to_string())?),
            _ => None,
        };
        let opening = async move { Session::open(options).await };
        let opened = match &home {
            Some(home) => home.spawn(opening).await.map_err(|error| error.to_string())?,
            None => opening.await,
        };
        let session = opened.map_err(|error| text(&error))?;
        let pid = session.pid().ok_or("the CLI is no process")?;
        Ok(Self {
            reader: tokio::spawn(read(session.messages(), Arc::clone(&notes))),
            reads: true,
            events: tokio::spawn(watch_end(session.events())),
            session: Some(session),
            waiter: None,
            asking: Vec::new(),
            state,
            fault,
            harness,
            home,
            gate,
            notes,
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

    /// Brings it into its state.
    pub(super) async fn reach(&mut self) -> Result<()> {
        let session = self.session()?;
        if self.state.is_before_handshake() {
            self.waiter = Some(tokio::spawn(async move { told(&session.ready().await) }));
            return self.complained(1).await;
        }
        in_time("the handshake", session.ready()).await?.map_err(|error| text(&error))?;
        match self.state {
            State::Operation => {
                self.waiter =
                    Some(tokio::spawn(async move { told(&session.mcp().status().await) }));
                self.complained(1).await
            }
            State::Stopping => self.begin_to_stop(session).await,
            state if state.has_turn() => self.begin_turn(session).await,
            _ => Ok(()),
        }
    }

    async fn begin_turn(&mut self, session: Session) -> Result<()> {
        let mut turn = session.send("Go.").await.map_err(|error| text(&error))?;
        if matches!(self.state, State::Streaming | State::InputEnded) {
            in_time("the first piece", first_piece(&mut turn)).await??;
        }
        self.waiter = Some(tokio::spawn(async move { turn_told(&turn.finish().await) }));
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
        self.asking.push(tokio::spawn(async move { told(&asking.set_model("m").await) }));
        self.complained(1).await?;
        self.waiter = Some(tokio::spawn(async move { told(&stopping.stop().await) }));
        in_time("the stop", async {
            while let Some(event) = events.next().await {
                if matches!(event, SessionState::Stopping) || event.is_final() {
                    return;
                }
            }
        })
        .await
    }

    /// Lets the CLI write something and strike; returns when what it wrote has arrived.
    pub(super) async fn strike(&mut self) -> Result<()> {
        let (before, pipes) = (*self.notes.stderr.borrow(), self.pipes());
        let struck = if self.state == State::Spawning {
            1
        } else {
            self.signal(Signal::USR1)?;
            before + 1
        };
        self.complained(struck).await?;
        if !self.fault.ends_the_cli() && self.fault != Fault::ClosesStdout {
            self.complained(struck + 1).await?;
        }
        if matches!(self.fault, Fault::ClosesStdin | Fault::BrokenPipe) {
            self.until("the CLI closes stdin", || self.pipes() < pipes).await?;
        }
        let (mut marks, wanted) = (self.notes.marks.subscribe(), self.fault.marks());
        let arrived = in_time("what had arrived", marks.wait_for(|marks| *marks >= wanted)).await?;
        // The sender is in `self`, so that this does not fail.
        drop(arrived);
        Ok(())
    }

    /// How many ends of pipes the CLI holds.
    fn pipes(&self) -> usize {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten();
        let targets = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("pipe:")).count()
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).ok_or("no such process")?;
        kill_process(pid, signal).map_err(|error| format!("it cannot be signalled: {error}"))
    }

    /// Waits until so many lines came on stderr.
    async fn complained(&self, lines: usize) -> Result<()> {
        let mut stderr = self.notes.stderr.subscribe();
        let came = in_time("the CLI at its point", stderr.wait_for(|seen| *seen >= lines)).await?;
        drop(came);
        Ok(())
    }

    /// Somebody asks something.
    pub(super) fn ask(&mut self, asking: impl Future<Output = Told> + Send + 'static) {
        self.asking.push(tokio::spawn(asking));
    }

    /// Whoever asked last has been told.
    pub(super) async fn last_is_told(&self) -> Result<()> {
        let last = self.asking.last();
        self.until("whoever asked", || last.is_none_or(JoinHandle::is_finished)).await
    }

    /// Whoever waits has been told.
    pub(super) async fn waiter_is_told(&self) -> Result<()> {
        let waiter = self.waiter.as_ref();
        self.until("whoever waits", || waiter.is_none_or(JoinHandle::is_finished)).await
    }

    /// Drops the future of whoever waits.
    pub(super) async fn drop_waiter(&mut self) -> Result<()> {
        if let Some(waiter) = &self.waiter {
            waiter.abort();
        }
        // Aborted is not yet dropped.
        self.waiter_is_told().await
    }

    /// Drops every handle and every future that holds one.
    pub(super) async fn drop_all(&mut self) -> Result<()> {
        self.reads = false;
        self.session = None;
        self.reader.abort();
        self.until("the reader", || self.reader.is_finished()).await?;
        self.drop_waiter().await
    }

    /// Lets the shell of the CLI end.
    pub(super) fn let_tool_go(&self) -> Result<()> {
        std::fs::write(self.harness.project().join("go"), "").map_err(|error| error.to_string())
    }

    /// Waits until something is so, and looks again from time to time.
    async fn until(&self, what: &str, condition: impl FnMut() -> bool) -> Result<()> {
        in_time(what, eventually(condition)).await
    }

    /// What was told to everybody, once all is over and nothing is left.
    pub(super) async fn end(mut self) -> Result<super::Outcome> {
        let waited = match self.waiter.take() {
            Some(waiter) => in_time("whoever waited", joined(waiter)).await?,
            None => Told::Nobody,
        };
        let end = in_time("the end of the session", &mut self.events).await?;
        let (end, text) = end.map_err(|error| error.to_string())?;
        let mut outcome = super::Outcome::new(end, waited);
        outcome.text = text;
        for asking in std::mem::take(&mut self.asking) {
            outcome.asked.push(in_time("whoever asked", joined(asking)).await?);
        }
        self.nothing_is_lost(end).await?;
        self.nothing_is_left().await?;
        outcome.warnings = self.warnings();
        outcome.golden = self.golden();
        Ok(outcome)
    }

    fn golden(&self) -> Golden {
        let log = std::fs::read(self.harness.root().join(LOG)).unwrap_or_default();
        let items =
            std::mem::take(&mut *self.notes.items.lock().unwrap_or_else(PoisonError::into_inner));
        let written = String::from_utf8_lossy(&log).lines().map(str::to_owned).collect();
        let root = self.harness.root().to_string_lossy().into_owned();
        // The CLI makes a name for its own files of the directory.
        let slug = root.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        Golden::unordered(written, items, &[root, slug, self.harness.api().base_url()])
    }

    fn warnings(&self) -> Vec<WarningCode> {
        let mut warnings =
            self.notes.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        warnings.sort_by_key(|code| format!("{code:?}"));
        warnings.dedup();
        warnings
    }

    /// Everything that had arrived was read, and the reader was told how it ended.
    async fn nothing_is_lost(&mut self, end: End) -> Result<()> {
        if !self.reads {
            return Ok(());
        }
        let read = in_time("the reader", &mut self.reader).await?;
        let read = read.map_err(|error| error.to_string())?;
        let expected = match end {
            End::Failed(kind) => Some(kind),
            _ => None,
        };
        let (marks, wanted) = (*self.notes.marks.borrow(), self.fault.marks());
        if read != expected || marks != wanted {
            return Err(format!("{marks} of {wanted} messages were read, then {read:?}"));
        }
        Ok(())
    }

    /// No process is left, not even a zombie. A shell of the CLI has a session of its own and is
    /// the CLI's: one that was killed leaves it.
    async fn nothing_is_left(&self) -> Result<()> {
        self.let_tool_go()?;
        self.until("the process is gone", || !exists(self.pid)).await?;
        self.until("its children are gone", || marked(MARK, &self.mark).is_empty()).await
    }
}

async fn joined(task: JoinHandle<Told>) -> Told {
    // Only those are aborted whose futures are to be dropped.
    task.await.unwrap_or(Told::Dropped)
}

async fn first_piece(turn: &mut Turn) -> Result<()> {
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

/// Reads everything; says why it ended.
async fn read(mut messages: claude_agent_kit::Messages, notes: Arc<Notes>) -> Option<ErrorKind> {
    while let Some(item) = messages.next().await {
        notes.items.lock().unwrap_or_else(PoisonError::into_inner).push(golden::text(&item));
        match item {
            Ok(item) if raw(&item).contains("msg_flood") => {
                notes.marks.send_modify(|marks| *marks += 1);
            }
            Ok(_) => {}
            Err(error) => return Some(error.kind()),
        }
    }
    None
}

/// How it ended, and what is told of that.
async fn watch_end(mut events: claude_agent_kit::Events) -> (End, String) {
    let (mut end, mut text) = (End::Untold, String::new());
    while let Some(event) = events.next().await {
        text = format!("{event:?}");
        end = match event {
            SessionState::Stopped(_) => End::Stopped,
            SessionState::Completed(_) => End::Completed,
            SessionState::Failed(error) => End::Failed(error.kind()),
            _ => continue,
        };
    }
    (end, text)
}

#[expect(clippy::similar_names, reason = "a harness is no state")]
fn options(harness: &Harness, state: State, fault: Fault, notes: &Arc<Notes>) -> Options {
    let (warnings, stderr) = (Arc::clone(notes), Arc::clone(notes));
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

/// How long the CLI has to end.
fn grace(state: State, fault: Fault) -> Duration {
    match fault {
        _ if state == State::Stopping => LONG_GRACE,
        // It ends by itself, after the result of the turn that was interrupted.
        Fault::Stop | Fault::StopTwice | Fault::ShutdownAll
            if state.has_turn() && state.can_ask() =>
        {
            LIMIT
        }
        _ => GRACE,
    }
}
