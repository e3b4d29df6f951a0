//! The task that owns the session machine and the pipes of a run.
//!
//! The driver moves bytes and performs the machine's effects. It never waits for host code: messages go
//! to a feed, and callbacks run in their own tasks.

pub(crate) mod callback_tasks;
pub(crate) mod catch_up;
pub(crate) mod connect;
mod exit_watch;
mod limits;
pub(crate) mod mirror;
pub(crate) mod publish;
mod read_buffer;
mod run_clock;
pub(crate) mod start;
mod stderr;
mod stdin;
mod timer;
mod turns;
mod warning_sink;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use claude_agent_core::session::{Effect, Event, Machine, RunCost, RunEnd};
use claude_wire::control::HostRequest;
use claude_wire::{Exit, Frame, Framer, launch};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::Handle;

pub(crate) use start::{
    Handles, RunGuard, RunKind, incomplete_runtime, launch, require_runtime, require_timers, start,
};
pub(crate) use warning_sink::WarningSink;

use crate::approval::Gate;
use crate::commands::{Command, CommandReceiver, ReplySender};
use crate::diagnose::Evidence;
use crate::feed::{Feed, LineMarks, Piece};
use crate::id_map::IdMap;
use crate::lock::lock;
use crate::permission::PermissionOrigin;
use crate::session::events::EventLog;
use crate::session::{ReplayedTurn, SessionState};
use crate::tasks;
use crate::transport::Running;
use crate::warning::{Warning, WarningCode};
use callback_tasks::CallbackTasks;
use exit_watch::ExitWatch;
use mirror::MirrorTasks;
use run_clock::RunClock;
use stderr::StderrReader;
use stdin::Stdin;
use timer::Timer;
use turns::Turns;

/// The driver task of one run.
pub(crate) struct Driver {
    /// Distinguishes this run from all others.
    run: u32,
    machine: Machine,
    commands: CommandReceiver,
    stdin: Stdin,
    /// `None` after EOF.
    stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    framer: Framer,
    stderr: StderrReader,
    child: Running,
    exit_watch: ExitWatch,
    exit: Option<Exit>,
    clock: RunClock,
    timer: Timer,
    callbacks: CallbackTasks,
    turns: Turns,
    replies: IdMap<ReplySender>,
    /// Items that the machine delivered and the feed does not have yet.
    batch: Vec<Piece>,
    marks: LineMarks,
    feed: Arc<Feed>,
    events: Arc<EventLog>,
    warnings: WarningSink,
    /// Where the host takes the replayed turn from; gone with the handles.
    replay: Weak<ReplayedTurn>,
    cost: Arc<Mutex<RunCost>>,
    /// Whether everything before the last result is stored.
    stored: Arc<Mutex<Option<bool>>>,
    /// Appends to the store; `None` without one.
    mirror: Option<MirrorTasks>,
    /// Holds tool calls that need approval, and learns from messages which of them have ended.
    gate: Option<Arc<Gate>>,
    /// Facts for error messages that the machine does not have.
    evidence: Evidence,
}

/// An I/O event of the driver.
enum IoEvent {
    Command(Box<Command>),
    Written(usize),
    WriteFailed(String),
    /// The framer has more bytes.
    Read,
    StdoutEnded(Option<String>),
    Exited(io::Result<Exit>),
    Deadline,
}

impl Driver {
    /// Drives the run to its end.
    pub(crate) async fn run(&mut self) {
        loop {
            if let Some(end) = self.perform_effects() {
                return self.shut_down(end).await;
            }
            let event = poll_fn(|context| self.poll_io(context)).await;
            self.on_io(event);
        }
    }

    /// Polls for the next event. Commands and writes never wait behind a flood of output; the process's own
    /// events are ordered: bytes, EOF, exit, deadlines.
    fn poll_io(&mut self, context: &mut Context<'_>) -> Poll<IoEvent> {
        if let Poll::Ready(command) = self.commands.poll_next(context) {
            return Poll::Ready(IoEvent::Command(command));
        }
        if let Poll::Ready(written) = self.stdin.poll_write(context) {
            return Poll::Ready(match written {
                Ok(bytes) => IoEvent::Written(bytes),
                Err(error) => IoEvent::WriteFailed(error.to_string()),
            });
        }
        if !self.feed.poll_may_read(context, self.machine.has_waiters()) {
            self.clock.pause();
            return Poll::Pending;
        }
        self.clock.resume();
        self.exit_watch.look(&mut self.child, context);
        if !self.exit_watch.is_overdue()
            && let Poll::Ready(event) = self.poll_stdout(context)
        {
            return Poll::Ready(event);
        }
        if let Poll::Ready(exit) = self.exit_watch.poll_report() {
            return Poll::Ready(IoEvent::Exited(exit));
        }
        let deadline = self.machine.wake_at().map(|at| self.clock.instant(at));
        self.timer.poll(deadline, context).map(|()| IoEvent::Deadline)
    }

    fn poll_stdout(&mut self, context: &mut Context<'_>) -> Poll<IoEvent> {
        let Some(stdout) = &mut self.stdout else { return Poll::Pending };
        read_buffer::acquire(&mut self.framer);
        // Bytes go to the framer, not to this future: dropping the future loses nothing.
        let read = pin!(stdout.read_buf(self.framer.space())).poll(context);
        if read.is_pending() {
            read_buffer::release(&mut self.framer);
        }
        read.map(|read| match read {
            Ok(0) => IoEvent::StdoutEnded(None),
            Ok(bytes) => {
                self.exit_watch.add_read(bytes);
                IoEvent::Read
            }
            Err(error) => IoEvent::StdoutEnded(Some(error.to_string())),
        })
    }

    fn on_io(&mut self, event: IoEvent) {
        match event {
            IoEvent::Command(command) => self.on_command(*command),
            IoEvent::Written(bytes) => self.handle(Event::Written(bytes)),
            IoEvent::WriteFailed(reason) => self.handle(Event::WriteFailed(reason)),
            IoEvent::Read => self.process_lines(),
            IoEvent::StdoutEnded(error) => self.end_stdout(error),
            IoEvent::Exited(exit) => self.on_exit(exit),
            IoEvent::Deadline => self.handle(Event::Tick),
        }
    }

    fn handle(&mut self, event: Event) {
        self.machine.handle(event, self.clock.now());
    }

    /// Stores the reply and turn slots of a command, and passes its event to the machine.
    fn on_command(&mut self, command: Command) {
        let Command { event, reply, turn } = command;
        if let Some(slot) = turn {
            self.turns.add(slot);
        }
        if let Some(mut reply) = reply {
            if let Event::Request { request: HostRequest::Interrupt(_), .. } = &event {
                reply.interrupts = Some(self.turns.open_ids());
            }
            self.replies.insert(reply.waiter.0, reply);
        }
        if let Event::Request { request: HostRequest::McpSetServers(new), .. } = &event {
            self.evidence.mask.learn(launch::secrets_in(&new.servers));
        }
        if let Event::Forget(waiter) = &event
            && let Some(reply) = self.replies.remove(waiter.0)
            && let Some(turn) = &reply.turn
        {
            // The future of `send` was dropped, so the message is not sent and has no turn.
            self.turns.forget(turn);
        }
        if let Event::CallbackDone { key, .. } = &event {
            self.callbacks.forget(*key);
        }
        self.handle(event);
    }

    fn on_exit(&mut self, exit: io::Result<Exit>) {
        let exit = exit.unwrap_or_else(|error| {
            self.warn(Warning::new(WarningCode::ExitUnknown, error.to_string()));
            Exit::Unknown
        });
        self.exit = Some(exit);
        self.handle(Event::Exited(exit));
    }

    fn process_lines(&mut self) {
        let now = self.clock.now();
        while let Some(frame) = self.framer.next_frame() {
            if let Frame::Line(line) = &frame {
                self.observe_calls(line);
            }
            self.machine.handle(line_event(frame), now);
        }
        // Endless output must not delay deadlines.
        if self.machine.wake_at().is_some_and(|deadline| deadline <= now) {
            self.machine.handle(Event::Tick, now);
        }
    }

    fn end_stdout(&mut self, error: Option<String>) {
        self.stdout = None;
        match self.framer.finish() {
            Some(Frame::Line(line)) => self.handle(Event::LastLine(line)),
            Some(frame @ Frame::Oversized(_)) => self.handle(line_event(frame)),
            None => {}
        }
        self.handle(Event::StdoutEnded(error));
    }

    /// Performs the machine's effects until none are left or the run ends; effects after the end are
    /// performed once the end is published.
    fn perform_effects(&mut self) -> Option<RunEnd> {
        let mut any = false;
        while let Some(effect) = self.machine.next_effect() {
            any = true;
            match effect {
                Effect::Deliver(line) => self.batch.push(Piece::Line(line, self.marks.next())),
                Effect::DeliverPermission(line) => self.deliver_permission(line),
                Effect::Warn(notice) => self.warn(Warning::of(notice)),
                Effect::Write(bytes) => self.stdin.write(bytes),
                Effect::CloseStdin => self.stdin.close(),
                Effect::Terminate => self.child.terminate(),
                Effect::TerminateAtOnce => self.child.end_at_once(),
                Effect::Kill => self.child.kill(),
                Effect::Complete(waiter, settled) => self.settle(waiter, settled),
                Effect::State(state) => self.publish_state(state),
                Effect::Cost(cost) => self.publish_cost(cost),
                Effect::RunCallback { key, request, line } => {
                    let session_id = self.session_id();
                    let origin = PermissionOrigin { run: self.run, session_id };
                    self.callbacks.run(key, request, line, origin);
                }
                Effect::Stored(stored) => *lock(&self.stored) = Some(stored),
                Effect::Append(batch) => self.with_mirror(|mirror| mirror.append(&batch)),
                Effect::RetryAppend(number) => self.with_mirror(|mirror| mirror.retry(number)),
                Effect::CatchUp(request) => self.with_mirror(|mirror| mirror.catch_up(request)),
                Effect::AbandonAppend => self.with_mirror(MirrorTasks::abandon),
                Effect::CancelCallback(key) => self.callbacks.cancel(key),
                Effect::AbortCallback(key) => self.callbacks.abort(key),
                Effect::TurnStarted(id) => {
                    self.flush_batch();
                    self.turns.begin(&id, &self.feed);
                }
                Effect::ReplayStarted(id) => self.start_replay(id),
                Effect::NoReplay => self.rule_out_replay(),
                Effect::TurnEnded(id, how) => {
                    self.flush_batch();
                    self.turns.finish(&id, how, &self.feed);
                }
                Effect::UnmatchedResponse { request_id, late } => {
                    publish::log_unclaimed(&request_id, late);
                }
                Effect::End(end) => return Some(end),
            }
        }
        if any {
            self.flush_batch();
        }
        self.events.set_idle(self.machine.is_idle());
        None
    }
}

impl Driver {
    /// Passes a line to the gate. The approvals of agents are settled here, because no turn may end after them.
    fn observe_calls(&self, line: &Bytes) {
        let Some(gate) = &self.gate else { return };
        let Some(session) = gate.observe(line) else { return };
        // The results of a run that is being stopped do not say whether the tools ran.
        if !matches!(self.events.state(), SessionState::Running) {
            return;
        }
        let gate = gate.clone();
        let settle = Box::pin(async move { gate.settle_agents(&session).await });
        drop(tasks::spawn(&Handle::current(), tracing::Span::current(), settle));
    }

    fn with_mirror(&mut self, act: impl FnOnce(&mut MirrorTasks)) {
        if let Some(mirror) = &mut self.mirror {
            act(mirror);
        }
    }
}

fn line_event(frame: Frame) -> Event {
    match frame {
        Frame::Line(line) => Event::Line(line),
        Frame::Oversized(oversized) => Event::Oversized(oversized),
    }
}
