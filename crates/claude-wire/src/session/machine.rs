//! The machine: takes events, gives back effects.

use std::time::Duration;

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::Exit;
use super::callbacks::Callbacks;
use super::cost::{Cost, Ledger};
use super::event::{CallKey, CallOutcome, Effect, Event, Failure, Notice, Plan, Refusal, Run};
use super::evidence::Evidence;
use super::handshake::Handshake;
use super::operations::Operations;
use super::orphans::Orphans;
use super::outbox::Outbox;
use super::process::ProcessState;
use super::query::Query;
use super::queue::Queue;
use super::shutdown::Shutdown;
use super::stop::StopReason;
use super::turns::{SeenResult, Turns};
use crate::envelope::Envelope;
use crate::frame::Oversized;
use crate::id::RequestId;
use crate::message::{Body, Malformed, Message};
use crate::repair;

/// The most malformed lines in a row in a query. More end it: whatever writes them is not the CLI.
const MAX_MALFORMED_LINES: usize = 4;

/// Decides what happens in the life of one CLI process. It is told what happened and when, and
/// says what is to be done; it does nothing itself.
#[derive(Debug)]
pub struct Machine {
    pub(super) plan: Plan,
    pub(super) out: Outbox,
    pub(super) handshake: Handshake,
    pub(super) queue: Queue,
    pub(super) operations: Operations,
    pub(super) callbacks: Callbacks,
    pub(super) turns: Turns,
    pub(super) orphans: Orphans,
    ledger: Ledger,
    /// What only a query has.
    pub(super) query: Option<Query>,
    pub(super) process: ProcessState,
    /// Why the process is being stopped, if it is.
    pub(super) stop_reason: Option<StopReason>,
    pub(super) shutdown: Shutdown,
    pub(super) last_result: Option<LastResult>,
    /// Whether the host ended the input.
    pub(super) input_ended: bool,
    /// When it was seen that nothing can be written, if the input was open then.
    pub(super) write_failed: Option<Duration>,
    /// Since when too many bytes of responses wait without a byte having been written.
    pub(super) stdin_unread_since: Option<Duration>,
    pub(super) evidence: Evidence,
    /// The end of the output, if it is half a line.
    pub(super) half_line: Option<Bytes>,
    /// How many lines in a row were none of the protocol.
    malformed: usize,
    /// What later calls are told, once all is over.
    pub(super) over: Option<Refusal>,
}

/// The last result that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastResult {
    pub(super) is_error: bool,
    pub(super) at: Duration,
}

impl Machine {
    /// A machine for this plan. Its first effects wait already.
    pub fn new(plan: Plan) -> Self {
        let query = match &plan.run {
            Run::Query { prompt, limits } => {
                let one_way = prompt.is_none() && plan.initialize.is_none();
                Some(Query::new(prompt.clone(), one_way, *limits))
            }
            Run::Session => None,
        };
        let limits = plan.limits;
        let mut machine = Self {
            out: Outbox::new(limits.unwritten_bytes),
            handshake: Handshake::Done,
            queue: Queue::default(),
            operations: Operations::new(plan.id_suffix, &limits),
            callbacks: Callbacks::new(&limits),
            turns: Turns::default(),
            orphans: Orphans::default(),
            ledger: Ledger::new(plan.resumes),
            query,
            process: ProcessState::new(&limits),
            stop_reason: None,
            shutdown: Shutdown::default(),
            last_result: None,
            input_ended: false,
            write_failed: None,
            stdin_unread_since: None,
            evidence: Evidence::default(),
            half_line: None,
            malformed: 0,
            over: None,
            plan,
        };
        machine.begin();
        machine
    }

    /// Takes an event. `now` is the time since the start and never goes back.
    ///
    /// Only a tick makes timers fire: what arrived before it wins.
    pub fn handle(&mut self, event: Event, now: Duration) {
        if self.over.is_some() {
            return self.after_the_end(&event);
        }
        match event {
            Event::Line(line) => self.line(line, now),
            Event::Oversized(line) => self.oversized(&line, now),
            Event::LastLine(line) => self.last_line(line, now),
            Event::OutputEnded(error) => self.output_ended(error, now),
            Event::Exited(exit) => self.exited(exit, now),
            Event::Written(bytes) => self.written(bytes, now),
            Event::WriteFailed(reason) => self.write_failed(reason, now),
            Event::Tick => self.tick(now),
            Event::Send { waiter, message } => self.send(waiter, message, now),
            Event::Ask { waiter, request, limit } => self.ask(waiter, request, limit, now),
            Event::Forget(waiter) => self.forget(waiter, now),
            Event::EndInput(waiter) => self.end_input(waiter, now),
            Event::Stop => self.stop(now),
            Event::CallbackDone { key, outcome } => self.callback_done(key, outcome),
        }
        self.check_stdin(now);
        self.note_callbacks(now);
        self.close_if_settled(now);
        self.end_if_over(now);
    }

    /// The next thing to do.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.out.pop()
    }

    /// When a tick is due at the latest.
    pub fn wake_at(&self) -> Option<Duration> {
        if self.over.is_some() {
            return None;
        }
        let ends = match self.process.exited {
            Some(_) => self.process.held_open_until(),
            None => earliest([self.shutdown.deadline(), self.overdue_deadline()]),
        };
        earliest([
            ends,
            self.handshake.deadline(),
            self.stdin_deadline(),
            self.operations.next_deadline(),
            self.callbacks.next_deadline(),
            self.orphans.deadline(),
        ])
    }

    /// Whether the output must be read although nobody takes the messages: an operation or a stop
    /// is pending, or the CLI may ask a callback. The CLI begins turns by itself, and not every
    /// version says so, hence callbacks count for as long as the CLI can be answered.
    pub fn has_waiters(&self) -> bool {
        let plan = &self.plan;
        let has_callbacks = !plan.hooks.is_empty()
            || !plan.mcp_servers.is_empty()
            || plan.permissions
            || plan.elicitation
            || plan.dialogs;
        let can_be_answered = self.out.is_open() && self.process.exited.is_none();
        self.over.is_none()
            && (self.handshake.is_pending()
                || !self.operations.is_empty()
                || !self.queue.is_empty()
                || !self.orphans.is_empty()
                || self.stop_reason.is_some()
                || self.input_ended
                || self.callbacks.next_deadline().is_some()
                || self.callbacks.open_requests() > 0
                || (has_callbacks && can_be_answered))
    }

    /// What is known about the run, for a diagnostic.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// A whole line. Most are only passed on, so that costs nearly nothing.
    fn line(&mut self, line: Bytes, now: Duration) {
        self.output(&line, now);
        let Ok(envelope) = Envelope::read(&line) else { return self.troubled_line(line, now) };
        self.malformed = 0;
        if !envelope.is_passed_on() {
            return self.act(&envelope, &line, now);
        }
        self.deliver(line);
    }

    /// A line of the protocol that may mean something.
    fn act(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        self.note_line(envelope, now);
        match &*envelope.kind {
            "control_request" => self.control_request(line, now),
            "control_response" => self.control_response(envelope, line, now),
            "control_cancel_request" => self.control_cancel(envelope, line, now),
            "keep_alive" | "transcript_mirror" => {}
            _ => self.message(envelope, line, now),
        }
    }

    /// Notes what is needed later of a line.
    fn note_line(&mut self, envelope: &Envelope<'_>, now: Duration) {
        self.evidence.envelope(envelope);
        if envelope.kind == "result" {
            self.last_result = Some(LastResult { is_error: envelope.is_error, at: now });
        }
        if let Some(query) = &mut self.query {
            query.note_line(envelope);
        }
    }

    fn message(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        let is_result = envelope.kind == "result";
        let cost = if is_result { self.enter_cost(line) } else { None };
        let seen = SeenResult { oversized: false, cost };
        self.turns.before(envelope, false, &mut self.out);
        if !envelope.sdk_host_only {
            self.deliver(line.clone());
        }
        self.turns.after(envelope, seen, &mut self.out);
        self.continue_stop(is_result, now);
    }

    /// Enters the cost that a result reports, if it can be read.
    fn enter_cost(&mut self, line: &Bytes) -> Option<Cost> {
        let body = Message::decode(line.clone()).map(|message| message.body);
        let cost = if let Ok(Body::Result(result)) = body {
            Some(self.ledger.enter(&result))
        } else {
            self.ledger.miss();
            None
        };
        self.out.push(Effect::Cost(self.ledger.run()));
        cost
    }

    /// Notes that no result will report the cost of a turn that runs.
    pub(super) fn note_cut_off(&mut self) {
        if self.turns.any_started() {
            self.ledger.miss();
            self.out.push(Effect::Cost(self.ledger.run()));
        }
    }

    /// A line that cannot be read as it is: with broken characters mended it may mean something.
    fn troubled_line(&mut self, line: Bytes, now: Duration) {
        let mended = repair::repaired(&line);
        let envelope = mended.as_deref().and_then(|mended| Envelope::read(mended).ok());
        if let Some(envelope) = envelope {
            self.malformed = 0;
            return self.act(&envelope, &line, now);
        }
        self.evidence.other_line(&line);
        let Err(malformed) = Message::decode(line.clone()) else { return self.deliver(line) };
        self.malformed += 1;
        let ends_it = self.query.is_some() && self.malformed > MAX_MALFORMED_LINES;
        if ends_it && !self.has_its_result() && self.stop_reason.is_none() {
            self.fail(Failure::TooManyMalformed(self.malformed, malformed), now);
        } else if !self.has_failed() {
            self.out.warn(Notice::Malformed(malformed));
        }
    }

    fn oversized(&mut self, line: &Oversized, now: Duration) {
        self.output(&line.tail, now);
        self.malformed = 0;
        let envelope = Envelope::of_oversized(line);
        if self.query.is_some() && !self.has_its_result() && self.stop_reason.is_none() {
            return self.fail(Failure::LineTooLong(line.size), now);
        }
        self.note_line(&envelope, now);
        let kind = Some(&*envelope.kind).filter(|kind| !kind.is_empty()).map(str::to_owned);
        self.out.warn(Notice::OversizedLine { size: line.size, kind });
        match &*envelope.kind {
            "control_request" => self.oversized_request(&envelope, line.size),
            "control_response" => self.oversized_response(&envelope, line.size, now),
            "result" => {
                self.ledger.miss();
                self.out.push(Effect::Cost(self.ledger.run()));
                let seen = SeenResult { oversized: true, cost: None };
                self.turns.before(&envelope, true, &mut self.out);
                self.turns.after(&envelope, seen, &mut self.out);
                self.continue_stop(true, now);
            }
            _ => {}
        }
    }

    fn control_response(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else {
            let reason = "a control response without `request_id`";
            return self.out.warn(Notice::Malformed(Malformed::new(line.clone(), reason)));
        };
        if self.handshake.is_its_answer(&id) {
            self.handshake_answered(line, now);
        } else {
            self.operations.answered(&id, line, &mut self.out);
        }
    }

    fn oversized_response(&mut self, envelope: &Envelope<'_>, size: u64, now: Duration) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else { return };
        if self.handshake.is_its_answer(&id) {
            self.handshake_answered_too_long(envelope.subtype.as_deref(), now);
        } else {
            self.operations.answered_too_long(&id, size, &mut self.out);
        }
    }

    /// The end of the output, without a line break: half a line, unless it is whole JSON.
    fn last_line(&mut self, line: Bytes, now: Duration) {
        let is_whole = serde_json::from_slice::<IgnoredAny>(&line).is_ok()
            && line.trim_ascii_start().starts_with(b"{");
        if is_whole {
            return self.line(line, now);
        }
        self.output(&line, now);
        self.half_line = Some(line);
    }

    fn output(&mut self, line: &[u8], now: Duration) {
        self.process.output(now);
        if self.handshake.is_pending() {
            self.evidence.before_handshake(line);
        }
    }

    fn output_ended(&mut self, error: Option<String>, now: Duration) {
        self.process.stdout_ended.get_or_insert(now);
        if error.is_some() {
            self.evidence.read_error = error;
        }
        // No answer can come any more.
        let refusal = if self.handshake.is_pending() {
            Refusal::NotInitialized
        } else {
            Refusal::Closed("the CLI closed its output".to_owned())
        };
        self.refuse_waiting(&refusal, now);
        self.continue_stop(false, now);
    }

    fn exited(&mut self, exit: Exit, now: Duration) {
        self.process.exited.get_or_insert((exit, now));
    }

    fn written(&mut self, bytes: usize, now: Duration) {
        self.out.written(bytes);
        self.stdin_unread_since = None;
        self.write_messages();
        self.close_when_written(now);
    }

    /// Not an error by itself: the end of the process follows, and says more.
    fn write_failed(&mut self, reason: String, now: Duration) {
        if !self.out.break_input() {
            return;
        }
        self.write_failed = Some(now);
        let refusal = Refusal::Closed(reason.clone());
        self.evidence.write_error = Some(reason);
        self.refuse_queued(&refusal, now);
        self.callbacks.close_all(now, &mut self.out);
    }

    fn tick(&mut self, now: Duration) {
        self.handshake_tick(now);
        self.operations.tick(now, self.evidence.write_error.as_deref(), &mut self.out);
        self.callbacks.tick(now, &mut self.out);
        self.orphans_tick(now);
        self.stop_tick(now);
    }

    fn callback_done(&mut self, key: CallKey, outcome: CallOutcome) {
        self.callbacks.done(key, outcome, &mut self.out);
    }

    /// A message for whoever reads messages. After a failure there is nothing more to read.
    fn deliver(&mut self, line: Bytes) {
        if !self.has_failed() {
            self.out.push(Effect::Deliver(line));
        }
    }
}

fn earliest<const N: usize>(times: [Option<Duration>; N]) -> Option<Duration> {
    times.into_iter().flatten().min()
}
