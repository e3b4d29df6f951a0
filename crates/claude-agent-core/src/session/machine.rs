//! The machine: takes events and returns effects.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::frame::Oversized;
use claude_wire::id::RequestId;
use claude_wire::message::{Body, Malformed, Message};
use claude_wire::{Cost, Envelope, Exit, repair};
use serde::de::IgnoredAny;

use super::callbacks::Callbacks;
use super::cost::Ledger;
use super::event::{
    CallbackKey, CallbackOutcome, Effect, Event, Plan, Rejection, RunFailure, RunMode, RunWarning,
};
use super::evidence::Evidence;
use super::handshake::Handshake;
use super::mirror::Mirror;
use super::mirror_event::StorePolicy;
use super::operations::Operations;
use super::orphans::Orphans;
use super::outbox::Outbox;
use super::process::ProcessState;
use super::query::Query;
use super::queue::Queue;
use super::shutdown::Shutdown;
use super::stop::StopReason;
use super::turns::{Activity, ResultSummary, Turns};

/// The maximum number of consecutive malformed lines in a query. More mean that the program is not
/// the CLI, and end the query.
const MAX_MALFORMED_LINES: usize = 4;

/// Decides what happens in a run of one CLI process: takes events with their times, and returns the
/// effects that the driver must perform. Performs no I/O itself.
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
    /// The state of a query; `None` in a session.
    pub(super) query: Option<Query>,
    /// The mirror of the transcripts; `None` without a store.
    pub(super) mirror: Option<Mirror>,
    pub(super) process: ProcessState,
    /// The reason of the shutdown that is in progress.
    pub(super) stop_reason: Option<StopReason>,
    pub(super) shutdown: Shutdown,
    pub(super) last_result: Option<LastResult>,
    /// Whether the host has ended the input.
    pub(super) input_ended: bool,
    /// The time when a write failed while stdin was open.
    pub(super) write_failed: Option<Duration>,
    /// The time since which too many bytes of responses are unwritten without any progress.
    pub(super) stdin_unread_since: Option<Duration>,
    pub(super) evidence: Evidence,
    /// The end of stdout, if it is an incomplete line.
    pub(super) partial_line: Option<Bytes>,
    /// The number of consecutive malformed lines.
    malformed: usize,
    /// The rejection of later commands, once the run has ended.
    pub(super) rejection_after_end: Option<Rejection>,
}

/// The last result of the CLI.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastResult {
    pub(super) is_error: bool,
    pub(super) at: Duration,
}

impl Machine {
    /// Creates a machine. Its first effects are available at once.
    pub fn new(plan: Plan) -> Self {
        let query = match &plan.run {
            RunMode::Query { prompt, limits } => {
                let one_way = prompt.is_none() && plan.initialize.is_none();
                Some(Query::new(prompt.clone(), one_way, *limits))
            }
            RunMode::Session => None,
        };
        let limits = plan.limits;
        let mirror = plan.mirror.map(|policy| Mirror::new(policy, limits.mirror, plan.id_suffix));
        let mut machine = Self {
            out: Outbox::new(limits.unwritten_bytes, plan.mirror == Some(StorePolicy::Stop)),
            handshake: Handshake::Done,
            queue: Queue::default(),
            operations: Operations::new(plan.id_suffix, &limits),
            callbacks: Callbacks::new(&limits),
            turns: Turns::new(plan.resumes && query.is_none() && plan.initialize.is_some()),
            orphans: Orphans::default(),
            ledger: Ledger::new(plan.resumes),
            query,
            mirror,
            process: ProcessState::new(&limits),
            stop_reason: None,
            shutdown: Shutdown::default(),
            last_result: None,
            input_ended: false,
            write_failed: None,
            stdin_unread_since: None,
            evidence: Evidence::default(),
            partial_line: None,
            malformed: 0,
            rejection_after_end: None,
            plan,
        };
        machine.begin();
        machine
    }

    /// Handles an event. `now` is the time since the start and must not decrease.
    ///
    /// Timers fire only on [`Event::Tick`], so that events that arrived before it take precedence.
    pub fn handle(&mut self, event: Event, now: Duration) {
        if self.rejection_after_end.is_some() {
            return self.handle_after_end(&event);
        }
        match event {
            Event::Line(line) => self.on_line(line, now),
            Event::Oversized(line) => self.on_oversized(&line, now),
            Event::LastLine(line) => self.on_last_line(line, now),
            Event::StdoutEnded(error) => self.on_stdout_end(error, now),
            Event::Exited(exit) => self.on_exit(exit, now),
            Event::Written(bytes) => self.on_written(bytes, now),
            Event::WriteFailed(reason) => self.on_write_failure(reason, now),
            Event::Tick => self.tick(now),
            Event::Send { waiter, message } => self.send(waiter, message, now),
            Event::Request { waiter, request, timeout } => {
                self.request(waiter, request, timeout, now);
            }
            Event::Forget(waiter) => self.forget(waiter, now),
            Event::EndInput(waiter) => self.end_input(waiter, now),
            Event::Stop => self.stop(now),
            Event::CallbackDone { key, outcome } => self.on_callback_done(key, outcome),
            Event::Appended(batch) => self.on_appended(batch, now),
            Event::AppendFailed { batch, failure, reason } => {
                self.on_append_failed(batch, failure, reason, now);
            }
            Event::Superseded(reason) => self.on_superseded(reason, now),
        }
        self.check_held_messages(now);
        self.check_stdin(now);
        self.record_pending_callbacks(now);
        self.close_stdin_if_settled(now);
        self.end_if_finished(now);
    }

    /// Returns the next effect to perform.
    pub fn next_effect(&mut self) -> Option<Effect> {
        self.out.pop()
    }

    /// Returns the time when the next [`Event::Tick`] is due.
    pub fn wake_at(&self) -> Option<Duration> {
        if self.rejection_after_end.is_some() {
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
            self.mirror.as_ref().and_then(Mirror::deadline),
        ])
    }

    /// Returns whether stdout must be read although no reader takes the messages: an operation or a
    /// stop is pending, or the CLI may send a request for a callback. The CLI starts turns by itself,
    /// and not every version reports that, so registered callbacks count while stdin is open.
    pub fn has_waiters(&self) -> bool {
        let plan = &self.plan;
        let has_callbacks = !plan.hooks.is_empty()
            || !plan.mcp_servers.is_empty()
            || plan.permissions
            || plan.elicitation
            || plan.dialogs;
        let accepts_responses = self.out.is_open() && self.process.exited.is_none();
        self.rejection_after_end.is_none()
            && (self.handshake.is_pending()
                || !self.operations.is_empty()
                || !self.queue.is_empty()
                || !self.orphans.is_empty()
                || self.stop_reason.is_some()
                || self.mirror.as_ref().is_some_and(Mirror::is_catching_up)
                || self.input_ended
                || self.callbacks.next_deadline().is_some()
                || self.callbacks.pending_count() > 0
                || (has_callbacks && accepts_responses))
    }

    /// Returns whether everything that the CLI reported is stored; true without a store.
    pub fn is_stored(&self) -> bool {
        self.mirror.as_ref().is_none_or(Mirror::is_stored)
    }

    /// Returns whether the CLI waits for a message: no turn is running, no callback is pending, and no agent works
    /// in the background. A CLI that reports no states counts as idle.
    pub fn is_idle(&self) -> bool {
        matches!(self.turns.activity(), Activity::Idle | Activity::Unreported)
            && self.callbacks.pending_count() == 0
    }

    /// Returns the facts about the run that a diagnosis needs.
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// Handles a complete line. Most lines are delivered unchanged, which must be cheap.
    fn on_line(&mut self, line: Bytes, now: Duration) {
        self.record_output(&line, now);
        let Ok(envelope) = Envelope::read(&line) else { return self.malformed_line(line, now) };
        self.malformed = 0;
        if !envelope.is_passed_on() {
            return self.dispatch(&envelope, &line, now);
        }
        self.deliver(line);
    }

    /// Handles a protocol line that may change the state.
    fn dispatch(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        self.record_line(envelope, now);
        match &*envelope.kind {
            "control_request" => self.on_control_request(line, now),
            "control_response" => self.on_control_response(envelope, line, now),
            "control_cancel_request" => self.on_cancel_request(envelope, line, now),
            "keep_alive" => {}
            "transcript_mirror" => self.on_mirror_frame(line, now),
            _ => self.on_message(envelope, line, now),
        }
    }

    /// Records what is needed later from a line.
    fn record_line(&mut self, envelope: &Envelope<'_>, now: Duration) {
        self.evidence.record_envelope(envelope);
        if envelope.kind == "result" {
            self.last_result = Some(LastResult { is_error: envelope.is_error, at: now });
        }
        if let Some(query) = &mut self.query {
            query.record_line(envelope);
        }
    }

    fn on_message(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        let is_result = envelope.kind == "result";
        let cost = if is_result { self.record_cost(line) } else { None };
        let summary = ResultSummary { oversized: false, cost };
        self.turns.before_delivery(envelope, false, &mut self.out);
        if is_result {
            self.before_result();
        }
        if !envelope.sdk_host_only {
            self.deliver(line.clone());
        }
        self.turns.after_delivery(envelope, summary, &mut self.out);
        self.continue_stop(is_result, now);
    }

    /// Records the cost in a result, and returns it if the result can be decoded.
    fn record_cost(&mut self, line: &Bytes) -> Option<Cost> {
        let body = Message::decode(line.clone()).map(|message| message.body);
        let cost = if let Ok(Body::Result(result)) = body {
            Some(self.ledger.record(&result))
        } else {
            self.ledger.mark_incomplete();
            None
        };
        self.out.push(Effect::Cost(self.ledger.run()));
        cost
    }

    /// Marks the cost as incomplete if a turn is running, because no result will report its cost.
    pub(super) fn mark_cost_incomplete(&mut self) {
        if self.turns.has_started() {
            self.ledger.mark_incomplete();
            self.out.push(Effect::Cost(self.ledger.run()));
        }
    }

    /// Handles a line that is not valid JSON: repairs it if its characters are damaged in a known way.
    fn malformed_line(&mut self, line: Bytes, now: Duration) {
        let repaired = repair::repaired(&line);
        let envelope = repaired.as_deref().and_then(|text| Envelope::read(text.as_bytes()).ok());
        if let Some(envelope) = envelope {
            self.malformed = 0;
            return self.dispatch(&envelope, &line, now);
        }
        self.evidence.record_malformed_line(&line);
        let Err(malformed) = Message::decode(line.clone()) else { return self.deliver(line) };
        self.malformed += 1;
        let is_too_many = self.query.is_some() && self.malformed > MAX_MALFORMED_LINES;
        if is_too_many && !self.query_has_result() && self.stop_reason.is_none() {
            self.fail(RunFailure::TooManyMalformedLines(self.malformed, malformed), now);
        } else if !self.has_failed() {
            self.out.warn(RunWarning::Malformed(malformed));
        }
    }

    fn on_oversized(&mut self, line: &Oversized, now: Duration) {
        self.record_output(&line.tail, now);
        self.malformed = 0;
        let envelope = Envelope::of_oversized(line);
        if self.query.is_some() && !self.query_has_result() && self.stop_reason.is_none() {
            return self.fail(RunFailure::LineTooLong(line.size), now);
        }
        self.record_line(&envelope, now);
        let kind = Some(&*envelope.kind).filter(|kind| !kind.is_empty()).map(str::to_owned);
        self.out.warn(RunWarning::OversizedLine { size: line.size, kind });
        match &*envelope.kind {
            "control_request" => self.on_oversized_request(&envelope, line.size),
            "control_response" => self.on_oversized_response(&envelope, line.size, now),
            "result" => {
                self.ledger.mark_incomplete();
                self.out.push(Effect::Cost(self.ledger.run()));
                let summary = ResultSummary { oversized: true, cost: None };
                self.turns.before_delivery(&envelope, true, &mut self.out);
                self.before_result();
                self.turns.after_delivery(&envelope, summary, &mut self.out);
                self.continue_stop(true, now);
            }
            "transcript_mirror" => self.on_oversized_mirror_frame(line.size, now),
            _ => {}
        }
    }

    fn on_control_response(&mut self, envelope: &Envelope<'_>, line: &Bytes, now: Duration) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else {
            let reason = "control response without `request_id`";
            return self.out.warn(RunWarning::Malformed(Malformed::new(line.clone(), reason)));
        };
        if self.handshake.is_response_to(&id) {
            self.on_handshake_response(line, now);
        } else {
            self.operations.on_response(&id, line, &mut self.out);
        }
    }

    fn on_oversized_response(&mut self, envelope: &Envelope<'_>, size: u64, now: Duration) {
        let Some(id) = envelope.request_id.as_deref().map(RequestId::from) else { return };
        if self.handshake.is_response_to(&id) {
            self.on_oversized_handshake_response(envelope.subtype.as_deref(), now);
        } else {
            self.operations.on_oversized_response(&id, size, &mut self.out);
        }
    }

    /// Handles the end of stdout without a line break: an incomplete line, unless it is a complete
    /// JSON object.
    fn on_last_line(&mut self, line: Bytes, now: Duration) {
        if line.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<IgnoredAny>(&line).is_ok()
        {
            return self.on_line(line, now);
        }
        self.record_output(&line, now);
        self.partial_line = Some(line);
    }

    fn record_output(&mut self, line: &[u8], now: Duration) {
        self.process.record_output(now);
        if self.handshake.is_pending() {
            self.evidence.record_before_handshake(line);
        }
    }

    fn on_stdout_end(&mut self, error: Option<String>, now: Duration) {
        self.process.stdout_ended.get_or_insert(now);
        if error.is_some() {
            self.evidence.read_error = error;
        }
        // No response can arrive any more.
        let rejection = if self.handshake.is_pending() {
            Rejection::NotInitialized
        } else {
            Rejection::Closed("the CLI closed stdout".to_owned())
        };
        self.reject_pending(&rejection, now);
        self.continue_stop(false, now);
    }

    fn on_exit(&mut self, exit: Exit, now: Duration) {
        self.process.exited.get_or_insert((exit, now));
    }

    fn on_written(&mut self, bytes: usize, now: Duration) {
        self.out.written(bytes);
        self.stdin_unread_since = None;
        self.write_messages();
        self.close_stdin_when_written(now);
    }

    /// Not an error by itself: the exit of the process follows, and explains more.
    fn on_write_failure(&mut self, reason: String, now: Duration) {
        if !self.out.mark_broken() {
            return;
        }
        self.write_failed = Some(now);
        let rejection = Rejection::Closed(reason.clone());
        self.evidence.write_error = Some(reason);
        self.reject_queued(&rejection, now);
        self.callbacks.cancel_all(now, &mut self.out);
    }

    fn tick(&mut self, now: Duration) {
        self.handshake_tick(now);
        self.operations.tick(now, self.evidence.write_error.as_deref(), &mut self.out);
        self.callbacks.tick(now, &mut self.out);
        self.orphans_tick(now);
        self.mirror_tick(now);
        self.stop_tick(now);
    }

    fn on_callback_done(&mut self, key: CallbackKey, outcome: CallbackOutcome) {
        self.callbacks.on_done(key, outcome, &mut self.out);
    }

    /// Delivers a message to the readers, unless the run has failed.
    fn deliver(&mut self, line: Bytes) {
        if !self.has_failed() {
            self.out.push(Effect::Deliver(line));
        }
    }
}

fn earliest<const N: usize>(times: [Option<Duration>; N]) -> Option<Duration> {
    times.into_iter().flatten().min()
}
