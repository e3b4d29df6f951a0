//! When a one-shot run is over, and how it ended.
//!
//! The CLI goes on after its result as long as stdin is open, a background agent may start another
//! turn, a process may die or hold its pipes open: each has its row in a table, and the tests are
//! that table.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use crate::envelope::Envelope;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// In a way that could not be found out: a host that ignores SIGCHLD is not told, and a process
    /// that the host may not signal can still be running. After a result this counts as a normal end.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an unknown status"),
        }
    }
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunEndLimits {
    /// How long the process may live after it closed stdout, or after stdin was closed.
    pub exit_grace: Duration,
    /// How long background work may hold the run after a result; none if there is no limit.
    pub background_ceiling: Option<Duration>,
    /// How long a stdout that another process holds open is read after the last byte.
    pub held_open_quiet: Duration,
    /// How long it is read at most.
    pub held_open_most: Duration,
    /// How long the CLI may be silent before its result; none if it may for ever.
    pub idle_timeout: Option<Duration>,
    /// Whether background shells hold the run too. Some of them are servers, which never end.
    pub wait_for_shells: bool,
}

impl Default for RunEndLimits {
    fn default() -> Self {
        Self {
            exit_grace: Duration::from_secs(5),
            background_ceiling: Some(Duration::from_secs(600)),
            held_open_quiet: Duration::from_millis(100),
            held_open_most: Duration::from_secs(2),
            idle_timeout: None,
            wait_for_shells: false,
        }
    }
}

/// What happened, with the time since the start of the run.
#[derive(Clone, Debug)]
pub enum RunEvent<'a> {
    /// A line came.
    Line(&'a Envelope<'a>),
    /// Bytes came that are no line of the protocol.
    OtherOutput,
    /// Stdout is at its end, or cannot be read any more.
    EndOfOutput,
    /// The process ended.
    Exited(Exit),
    /// The CLI asked the host something.
    CallbackOpened,
    /// The host answered, or the CLI withdrew its question.
    CallbackClosed,
    /// The host owes this many answers.
    Callbacks(usize),
    /// The process is being stopped for a reason that is not in the table.
    Stopping,
    /// Time passed.
    Tick,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStep {
    /// Go on; if there is a time, look again then at the latest.
    GoOn(Option<Duration>),
    /// Close stdin, and go on.
    CloseInput,
    /// Stop the process, and go on until it has ended.
    Stop,
    /// The run is over.
    End(Ending),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Without an error; what the host should know besides.
    Finished(Vec<RunWarning>),
    /// The process failed before any result.
    ProcessFailed {
        /// How it ended.
        exit: Exit,
        /// Whether it had to be stopped because it closed stdout and lived on.
        stopped: bool,
        /// Whether it had written nothing at all.
        silent: bool,
    },
    /// The CLI was silent for longer than allowed, before any result.
    IdleTimeout,
}

/// What the host should know of a run that ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunWarning {
    /// The exit was not a success although the last result was none of an error.
    NonZeroExitAfterResult(Exit),
    /// Another process held stdout open.
    StdoutHeldOpen,
    /// The process had to be stopped after its result.
    StoppedAfterResult,
    /// There was output but no result.
    ExitWithoutResult,
    /// There was no output at all.
    EmptyOutput,
}

/// The state of a run.
#[derive(Debug)]
pub struct RunEnd {
    limits: RunEndLimits,
    /// When the last byte came.
    last_output: Duration,
    any_output: bool,
    /// Whether the last result was an error; none before the first.
    last_result: Option<LastResult>,
    session: SessionReport,
    open_tasks: OpenTasks,
    /// Shells, where they are waited for: the CLI is idle while they run.
    open_shells: OpenTasks,
    open_callbacks: usize,
    /// When the host last gave an answer or was asked for one.
    last_answer: Duration,
    input_closed: Option<Duration>,
    output_ended: Option<Duration>,
    exited: Option<(Exit, Duration)>,
    stop_ordered: bool,
    timed_out: bool,
}

#[derive(Clone, Copy, Debug)]
struct LastResult {
    is_error: bool,
    at: Duration,
}

/// Tasks that run. The CLI chooses their ids and their number, so both are bounded here.
#[derive(Debug, Default)]
struct OpenTasks {
    /// Hashes of the ids.
    known: BTreeSet<u64>,
    /// How many more there are.
    others: usize,
}

/// The most tasks that are told apart; more are only counted.
const MAX_KNOWN_TASKS: usize = 4096;

impl OpenTasks {
    fn insert(&mut self, id: &str) {
        let id = hash(id);
        if self.known.len() < MAX_KNOWN_TASKS {
            self.known.insert(id);
        } else if !self.known.contains(&id) {
            self.others += 1;
        }
    }

    fn remove(&mut self, id: &str) {
        if !self.known.remove(&hash(id)) {
            self.others = self.others.saturating_sub(1);
        }
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.others == 0
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// What the CLI says of its own state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SessionReport {
    /// It says nothing.
    None,
    Busy,
    Idle,
}

impl RunEnd {
    /// A run that begins.
    pub fn new(limits: RunEndLimits) -> Self {
        Self {
            limits,
            last_output: Duration::ZERO,
            any_output: false,
            last_result: None,
            session: SessionReport::None,
            open_tasks: OpenTasks::default(),
            open_shells: OpenTasks::default(),
            open_callbacks: 0,
            last_answer: Duration::ZERO,
            input_closed: None,
            output_ended: None,
            exited: None,
            stop_ordered: false,
            timed_out: false,
        }
    }

    /// Takes an event at `now` and says what to do. After `End` it says `End` for ever.
    pub fn on(&mut self, event: &RunEvent<'_>, now: Duration) -> RunStep {
        match event {
            RunEvent::Line(envelope) => self.line(envelope, now),
            RunEvent::OtherOutput => self.output(now),
            RunEvent::EndOfOutput => drop(self.output_ended.get_or_insert(now)),
            RunEvent::Exited(exit) => drop(self.exited.get_or_insert((*exit, now))),
            RunEvent::CallbackOpened => self.callbacks(self.open_callbacks + 1, now),
            RunEvent::CallbackClosed => {
                self.callbacks(self.open_callbacks.saturating_sub(1), now);
            }
            RunEvent::Callbacks(open) => self.callbacks(*open, now),
            RunEvent::Stopping => self.stop_ordered = true,
            RunEvent::Tick => {}
        }
        self.step(now)
    }

    fn output(&mut self, now: Duration) {
        self.any_output = true;
        self.last_output = now;
    }

    fn callbacks(&mut self, open: usize, now: Duration) {
        self.open_callbacks = open;
        self.last_answer = now;
    }

    fn line(&mut self, line: &Envelope<'_>, now: Duration) {
        self.output(now);
        match (&*line.kind, line.subtype.as_deref()) {
            ("result", _) => {
                self.last_result = Some(LastResult { is_error: line.is_error, at: now });
            }
            ("system", Some("session_state_changed")) => {
                let idle = line.state.as_deref() == Some("idle");
                self.session = if idle { SessionReport::Idle } else { SessionReport::Busy };
            }
            ("system", Some("task_started")) => {
                let Some(task) = line.task_id.as_deref() else { return };
                match line.task_type.as_deref() {
                    Some("local_agent" | "local_workflow") => {
                        self.open_tasks.insert(task);
                    }
                    Some(_) if self.limits.wait_for_shells => {
                        self.open_shells.insert(task);
                    }
                    _ => {}
                }
            }
            ("system", Some("task_notification" | "task_updated")) => {
                let over = line.status.as_deref().is_some_and(|status| {
                    matches!(status, "completed" | "failed" | "killed" | "stopped")
                });
                if let Some(task) = line.task_id.as_deref().filter(|_| over) {
                    self.open_tasks.remove(task);
                    self.open_shells.remove(task);
                }
            }
            _ => {}
        }
    }

    fn step(&mut self, now: Duration) -> RunStep {
        if let Some((exit, at)) = self.exited {
            return match (self.output_ended, self.held_open_until(at)) {
                (Some(_), _) => RunStep::End(self.ending(exit, false)),
                (None, until) if until <= now => RunStep::End(self.ending(exit, true)),
                (None, until) => RunStep::GoOn(Some(until)),
            };
        }
        if !self.stop_ordered && self.deadline().is_some_and(|deadline| deadline <= now) {
            self.stop_ordered = true;
            self.timed_out = self.last_result.is_none() && self.output_ended.is_none();
            return RunStep::Stop;
        }
        if self.is_settled() && self.input_closed.is_none() {
            self.input_closed = Some(now);
            return RunStep::CloseInput;
        }
        let deadline = if self.stop_ordered { None } else { self.deadline() };
        RunStep::GoOn(deadline)
    }

    /// Whether nothing more is to come: a result was seen, the host owes no answer, and the CLI
    /// says that it is idle, or says nothing and runs no agent.
    fn is_settled(&self) -> bool {
        let quiet = match self.session {
            SessionReport::Idle => true,
            SessionReport::Busy => false,
            SessionReport::None => self.open_tasks.is_empty(),
        };
        self.last_result.is_some()
            && self.open_callbacks == 0
            && self.open_shells.is_empty()
            && quiet
    }

    /// When the process must be stopped, if it does not end before.
    fn deadline(&self) -> Option<Duration> {
        let grace = self.limits.exit_grace;
        let after_output = self.output_ended.map(|at| at.saturating_add(grace));
        // A turn that the CLI began after that, for a shell that ended, may be finished.
        let waits_for_nothing = self.session != SessionReport::Busy;
        let after_input = self
            .input_closed
            .filter(|_| waits_for_nothing)
            .map(|at| at.max(self.last_output).saturating_add(grace));
        let ceiling = match (self.last_result, self.limits.background_ceiling) {
            (Some(result), Some(ceiling)) => Some(result.at.saturating_add(ceiling)),
            _ => None,
        };
        // While the host owes an answer it is not the CLI that is silent.
        let idle = match (self.last_result, self.limits.idle_timeout) {
            (None, Some(limit)) if self.open_callbacks == 0 => {
                Some(self.last_output.max(self.last_answer).saturating_add(limit))
            }
            _ => None,
        };
        [after_output, after_input, ceiling, idle].into_iter().flatten().min()
    }

    /// Until when a stdout is read that outlived its process.
    fn held_open_until(&self, exited: Duration) -> Duration {
        let quiet = self.last_output.max(exited) + self.limits.held_open_quiet;
        quiet.min(exited + self.limits.held_open_most)
    }

    fn ending(&self, exit: Exit, held_open: bool) -> Ending {
        let mut warnings = Vec::new();
        if held_open {
            warnings.push(RunWarning::StdoutHeldOpen);
        }
        match self.last_result {
            Some(_) if self.stop_ordered => warnings.push(RunWarning::StoppedAfterResult),
            Some(result) if !matches!(exit, Exit::Code(0) | Exit::Unknown) && !result.is_error => {
                warnings.push(RunWarning::NonZeroExitAfterResult(exit));
            }
            Some(_) => {}
            None if self.timed_out => return Ending::IdleTimeout,
            None if exit != Exit::Code(0) || self.stop_ordered => {
                let (stopped, silent) = (self.stop_ordered, !self.any_output);
                return Ending::ProcessFailed { exit, stopped, silent };
            }
            None if self.any_output => warnings.push(RunWarning::ExitWithoutResult),
            None => warnings.push(RunWarning::EmptyOutput),
        }
        Ending::Finished(warnings)
    }
}
