//! The one task that owns the machine and the pipes.
//!
//! It moves bytes and does what the machine says. It never waits for code of the host: messages go
//! to a feed, callbacks run in tasks of their own.

mod calls;
mod clock;
mod end;
mod input;
mod limits;
mod sink;
mod spare;
mod start;
mod stderr;
mod timer;
mod turns;

use std::collections::HashMap;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use claude_wire::control::HostRequest;
use claude_wire::id::RequestId;
use claude_wire::launch;
use claude_wire::session::{
    Effect, End, Event, Exit, Failure, Machine, Notice, Refusal, Settled, State, Waiter,
};
use claude_wire::{Frame, Framer, Message};
use tokio::io::{AsyncRead, AsyncReadExt as _};

pub(crate) use sink::WarningSink;
pub(crate) use start::{Handles, Task, launch, require_runtime, start};

use stderr::StderrReader;

use crate::cost::Ledger;
use crate::diagnose::{self, Evidence};
use crate::drift;
use crate::feed::{Feed, LineMarks, Piece};
use crate::mailbox::{Done, Mailbox, Note, Reply};
use crate::session::events::{EventLog, SessionEvent};
use crate::transport::Running;
use crate::warning::{Warning, WarningCode};
use calls::Calls;
use clock::Clock;
use input::Input;
use timer::Timer;
use turns::Turns;

/// What a driver is made of.
pub(crate) struct Parts {
    pub(crate) machine: Machine,
    pub(crate) max_line_bytes: usize,
    pub(crate) connection: crate::transport::Connection,
    pub(crate) feed: Arc<Feed>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) warnings: WarningSink,
    pub(crate) events: Arc<EventLog>,
    pub(crate) calls: Calls,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    pub(crate) stderr: StderrReader,
    /// What is known before anything went wrong.
    pub(crate) evidence: Evidence,
}

/// The task.
pub(crate) struct Driver {
    machine: Machine,
    framer: Framer,
    input: Input,
    /// None when it is at its end.
    output: Option<Box<dyn AsyncRead + Send + Unpin>>,
    child: Running,
    exit: Option<Exit>,
    stderr: StderrReader,
    feed: Arc<Feed>,
    mailbox: Arc<Mailbox>,
    warnings: WarningSink,
    events: Arc<EventLog>,
    calls: Calls,
    turns: Turns,
    waiters: HashMap<Waiter, Reply>,
    /// Those whom the dying CLI left without an answer. They are told when it is known how it died.
    bereft: Vec<(Reply, Refusal)>,
    /// Until when they wait for that.
    bereft_until: Option<Duration>,
    /// What was read and not handed over yet.
    batch: Vec<Piece>,
    marks: LineMarks,
    clock: Clock,
    timer: Timer,
    evidence: Evidence,
    /// Whether the cause of the failure was told while the process still lived.
    failed_early: bool,
}

/// What happened, for the machine to hear.
enum Happening {
    Note(Note),
    Written(usize),
    WriteFailed(String),
    Read,
    OutputEnded(Option<String>),
    Exited(Exit),
    TimeIsUp,
}

impl Driver {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            machine: parts.machine,
            framer: Framer::new(parts.max_line_bytes),
            input: Input::new(parts.connection.input),
            output: Some(parts.connection.output),
            child: parts.connection.child,
            exit: None,
            stderr: parts.stderr,
            feed: parts.feed,
            mailbox: parts.mailbox,
            warnings: parts.warnings,
            events: parts.events,
            calls: parts.calls,
            turns: Turns::new(parts.ledger),
            waiters: HashMap::new(),
            bereft: Vec::new(),
            bereft_until: None,
            batch: Vec::new(),
            marks: LineMarks::default(),
            clock: Clock::start(),
            timer: Timer::default(),
            evidence: parts.evidence,
            failed_early: false,
        }
    }

    pub(crate) async fn run(&mut self) {
        let end = poll_fn(|context| self.poll_end(context)).await;
        self.conclude(end).await;
    }

    /// Does all that there is to do, until the end.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.clock.look_again();
        let mut may_begin = true;
        loop {
            if let Some(end) = self.act() {
                return Poll::Ready(end);
            }
            if self.calls.any_fresh() {
                // It may take its time: what is ready to be written does not wait for it.
                if let Poll::Ready(happening) = self.poll_input(context) {
                    self.hear(happening);
                    continue;
                }
                self.begin_calls(std::mem::take(&mut may_begin), context);
                continue;
            }
            let happening = ready!(self.poll_happening(context));
            self.hear(happening);
        }
    }

    /// Begins with the callbacks that have not begun. One of them may end here at once; for more
    /// than one in a row the rest of the work does not wait.
    fn begin_calls(&mut self, may_begin: bool, context: &mut Context<'_>) {
        let done = if may_begin { self.calls.begin(context) } else { None };
        self.calls.spawn_fresh();
        self.clock.look_again();
        if let Some((key, outcome)) = done {
            self.tell(Event::CallbackDone { key, outcome });
        }
    }

    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Happening> {
        self.input.poll_write(context).map(|written| match written {
            Ok(bytes) => Happening::Written(bytes),
            Err(error) => Happening::WriteFailed(error.to_string()),
        })
    }

    /// The next thing that happens. Notes and writes never wait behind a flood of output; of the
    /// process itself the order is bytes, end of output, exit, time.
    fn poll_happening(&mut self, context: &mut Context<'_>) -> Poll<Happening> {
        if let Poll::Ready(note) = self.mailbox.poll_note(context) {
            return Poll::Ready(Happening::Note(note));
        }
        if let Poll::Ready(happening) = self.poll_input(context) {
            return Poll::Ready(happening);
        }
        if !self.feed.poll_may_read(context, self.somebody_waits()) {
            // What is not read yet came before the exit and before any limit: time stands still.
            self.clock.pause();
            return Poll::Pending;
        }
        self.clock.go_on();
        if let Poll::Ready(happening) = self.poll_output(context) {
            return Poll::Ready(happening);
        }
        if let Poll::Ready(exit) = self.poll_exit(context) {
            return Poll::Ready(Happening::Exited(exit));
        }
        self.poll_timer(context).map(|()| Happening::TimeIsUp)
    }

    fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<Happening> {
        let Some(output) = &mut self.output else { return Poll::Pending };
        spare::lend(&mut self.framer);
        // What was read is in the framer, not in this future: dropping it loses nothing.
        let read = pin!(output.read_buf(self.framer.space())).poll(context);
        if read.is_pending() {
            spare::take_back(&mut self.framer);
        }
        read.map(|read| match read {
            Ok(0) => Happening::OutputEnded(None),
            Ok(_) => Happening::Read,
            Err(error) => Happening::OutputEnded(Some(error.to_string())),
        })
    }

    fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<Exit> {
        if self.exit.is_some() {
            return Poll::Pending;
        }
        self.child.poll_exit(context).map(|exit| {
            exit.unwrap_or_else(|error| {
                let warning = Warning::new(WarningCode::ExitUnknown, error.to_string());
                self.tell_warning(warning.masked(&self.evidence.mask));
                Exit::Unknown
            })
        })
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let bereft = self.bereft_until.filter(|_| !self.bereft.is_empty());
        let due = self.machine.wake_at().into_iter().chain(bereft).min();
        let due = due.map(|due| self.clock.instant(due));
        self.timer.poll(due, context)
    }

    fn hear(&mut self, happening: Happening) {
        match happening {
            Happening::Note(note) => self.take_note(note),
            Happening::Written(bytes) => self.tell(Event::Written(bytes)),
            Happening::WriteFailed(reason) => self.tell(Event::WriteFailed(reason)),
            Happening::Read => self.cut_lines(),
            Happening::OutputEnded(error) => self.end_output(error),
            Happening::Exited(exit) => {
                self.exit = Some(exit);
                self.tell(Event::Exited(exit));
            }
            Happening::TimeIsUp => {
                // It was not up yet at the last look.
                self.clock.look_again();
                self.tell(Event::Tick);
                self.console();
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.machine.handle(event, self.clock.now());
    }

    fn take_note(&mut self, note: Note) {
        if let Some(mut reply) = note.reply {
            if matches!(note.event, Event::Ask { request: HostRequest::Interrupt(_), .. }) {
                reply.interrupts = Some(self.turns.open_ids());
            }
            self.waiters.insert(reply.waiter, reply);
        }
        if let Some(slot) = note.turn {
            self.turns.add(*slot);
        }
        match &note.event {
            Event::Forget(waiter) => self.forget(*waiter),
            Event::CallbackDone { key, .. } => self.calls.forget(*key),
            Event::Ask { request: HostRequest::McpSetServers(new), .. } => {
                self.evidence.mask.learn(launch::secrets_in(&new.servers));
            }
            _ => {}
        }
        self.tell(note.event);
    }

    fn forget(&mut self, waiter: Waiter) {
        self.bereft.retain(|(reply, _)| reply.waiter != waiter);
        // A message that nobody waits for any more is not sent and has no turn.
        if let Some(Reply { turn: Some(turn), .. }) = self.waiters.remove(&waiter) {
            self.turns.forget(&turn);
        }
    }

    fn cut_lines(&mut self) {
        // There may be no end of them before the task rests.
        self.clock.look_again();
        let now = self.clock.now();
        while let Some(frame) = self.framer.next_frame() {
            self.machine.handle(event_of(frame), now);
        }
        // Output that never ends must not hold up what is due.
        if self.machine.wake_at().is_some_and(|due| due <= now) {
            self.machine.handle(Event::Tick, now);
        }
    }

    fn end_output(&mut self, error: Option<String>) {
        self.output = None;
        match self.framer.finish() {
            Some(Frame::Line(line)) => self.tell(Event::LastLine(line)),
            Some(frame) => self.tell(event_of(frame)),
            None => {}
        }
        self.tell(Event::OutputEnded(error));
    }

    /// Does what the machine says, until it has nothing more to say.
    fn act(&mut self) -> Option<End> {
        let mut end = None;
        let mut effects = 0_usize;
        while let Some(effect) = self.machine.next_effect() {
            effects += 1;
            match effect {
                Effect::Deliver(line) => self.deliver(line),
                Effect::DeliverMalformed(line, in_a_row) => self.deliver_malformed(line, in_a_row),
                Effect::DeliverResult(line) => {
                    self.turns.note_cost(&line);
                    self.deliver(line);
                }
                Effect::Write(bytes) => self.input.write(bytes),
                Effect::CloseInput => self.input.close(),
                Effect::Terminate => self.child.terminate(),
                Effect::Kill => self.child.kill(),
                Effect::Warn(notice) => self.warn(notice),
                Effect::Settle(waiter, settled) => self.settle(waiter, settled),
                Effect::State(state) => self.change_state(state),
                Effect::Run { key, request, line } => {
                    let session = self.machine.evidence().session_id.clone();
                    self.calls.run(key, request, line, session);
                }
                Effect::Unclaimed { request_id, late } => note_unclaimed(&request_id, late),
                Effect::Cancel(key) => self.calls.cancel(key),
                Effect::Abort(key) => self.calls.abort(key),
                Effect::TurnStarted(id) => {
                    self.hand_over();
                    self.turns.begin(&id, &self.feed);
                }
                Effect::TurnEnded(id, how) => {
                    self.hand_over();
                    self.turns.finish(&id, how, &self.feed);
                }
                Effect::End(how) => end = Some(how),
            }
        }
        if effects > 0 {
            self.hand_over();
            if let Some(id) = &self.machine.evidence().session_id {
                self.events.name(id);
            }
        }
        end
    }

    fn deliver(&mut self, line: Bytes) {
        let mark = self.marks.next();
        self.batch.push(Piece::Line(line, mark));
    }

    fn deliver_malformed(&mut self, line: Bytes, in_a_row: usize) {
        match Message::decode(line.clone()) {
            Ok(_) => self.deliver(line),
            Err(malformed) => {
                let warning = Warning::of(Notice::Malformed(malformed));
                let warning = warning.masked(&self.evidence.mask);
                self.warnings.tell(&warning);
                self.batch.push(Piece::Malformed(warning, in_a_row));
            }
        }
    }

    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            let somebody_waits = self.somebody_waits();
            self.feed.push(&mut self.batch, somebody_waits);
        }
    }

    /// Whether somebody waits for more than messages, so that reading must go on.
    fn somebody_waits(&self) -> bool {
        self.machine.somebody_waits() || !self.bereft.is_empty()
    }

    fn change_state(&mut self, state: State) {
        match state {
            State::Initializing => self.events.add(SessionEvent::Initializing),
            State::Running(info) => self.events.run(info),
            State::Stopping => self.events.add(SessionEvent::Stopping),
            State::Failed(failure) => self.fail_early(&failure),
        }
    }

    /// Whoever waits is told the cause at once, while the process is still being ended.
    fn fail_early(&mut self, failure: &Failure) {
        self.failed_early = true;
        self.complete_evidence();
        let error = diagnose::failure(failure, &self.evidence);
        self.hand_over();
        self.turns.note_cut_off();
        self.feed.fail(error.clone());
        self.events.fail(error);
    }

    fn warn(&mut self, notice: Notice) {
        // The host's own words stand in it, and what the CLI said.
        self.tell_warning(Warning::of(notice).masked(&self.evidence.mask));
    }

    fn tell_warning(&mut self, warning: Warning) {
        self.warnings.tell(&warning);
        self.batch.push(Piece::Warning(warning));
    }

    fn settle(&mut self, waiter: Waiter, settled: Settled) {
        let Some(mut reply) = self.waiters.remove(&waiter) else { return };
        match settled {
            Settled::Answered(answer) => {
                let done = match reply.interrupts.take() {
                    // Here and not where it is waited for: their results may follow at once.
                    Some(turns) => Done::Interrupted(answer, self.turns.running_of(turns)),
                    None => Done::Answered(answer),
                };
                reply.send(Ok(done));
            }
            Settled::Refused(refusal) => {
                if let Some(turn) = &reply.turn
                    && refusal != Refusal::DuplicateMessage
                {
                    self.turns.forget(turn);
                }
                if matches!(refusal, Refusal::Closed(_)) && self.is_dying() {
                    self.bereft.push((reply, refusal));
                    let now = self.clock.now();
                    self.bereft_until.get_or_insert(now + end::LAST_WORDS);
                    self.console();
                } else {
                    self.complete_evidence_for(&refusal);
                    self.refuse(reply, &refusal);
                }
            }
            Settled::Sent | Settled::InputEnded => reply.send(Ok(Done::Accepted)),
        }
    }
}

/// Logs a response that no operation waits for.
fn note_unclaimed(request_id: &RequestId, late: bool) {
    let request_id = drift::shown(request_id.as_str());
    if late {
        tracing::debug!(request_id, "a response came too late");
    } else {
        tracing::warn!(request_id, "a response came that no operation waits for");
    }
}

fn event_of(frame: Frame) -> Event {
    match frame {
        Frame::Line(line) => Event::Line(line),
        Frame::Oversized(oversized) => Event::Oversized(oversized),
    }
}
