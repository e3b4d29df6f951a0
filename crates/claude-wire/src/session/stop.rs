//! How a session is stopped: the turn is interrupted, the input closed, the process asked to end
//! and at last killed. Reading goes on all the while.
//!
//! After a result the input is closed when the CLI is idle, so that what is written does not depend
//! on how far the CLI had come when the host stopped it.

use std::time::Duration;

use super::event::{Effect, Failure, State, Waiter};
use super::handshake::Handshake;
use super::machine::Machine;
use super::{Refusal, RunEvent, Settled};
use crate::control::{HostRequest, Interrupt};

/// So many times the limit of unwritten responses may wait while the CLI still reads.
const SLOW_READER_FACTOR: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Stop {
    pub(super) why: Option<Why>,
    phase: Phase,
    waiters: Vec<Waiter>,
}

/// Why the process is being stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Why {
    /// The host wants it.
    Host,
    /// The run failed.
    Failed(Failure),
    /// It does not end by itself. How the run ended is decided elsewhere.
    Lingers,
}

/// How far the stop has come, and when it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    #[default]
    NotBegun,
    /// The turn has its result; the CLI becomes idle or begins another turn.
    Settling(Duration),
    Interrupted(Duration),
    InputClosed(Duration),
    Terminated(Duration),
    Killed,
}

impl Stop {
    pub(super) fn is_under_way(&self) -> bool {
        self.why.is_some()
    }

    /// Whether the stop itself says how the run ended.
    pub(super) fn decides_the_end(&self) -> bool {
        matches!(self.why, Some(Why::Host | Why::Failed(_)))
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        match self.phase {
            Phase::Settling(until)
            | Phase::Interrupted(until)
            | Phase::InputClosed(until)
            | Phase::Terminated(until) => Some(until),
            Phase::NotBegun | Phase::Killed => None,
        }
    }

    pub(super) fn take_waiters(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.waiters)
    }

    pub(super) fn forget(&mut self, waiter: Waiter) {
        self.waiters.retain(|waiting| *waiting != waiter);
    }
}

impl Machine {
    /// The host wants the session to end.
    pub(super) fn stop(&mut self, waiter: Option<Waiter>, now: Duration) {
        self.stop.waiters.extend(waiter);
        if self.stop.decides_the_end() {
            return;
        }
        let lingered = self.stop.why.replace(Why::Host).is_some();
        self.out.push(Effect::State(State::Stopping));
        self.refuse_waiting(&Refusal::Stopped);
        self.callbacks.close_all(now, &mut self.out);
        let confirmed = self.abandon_handshake();
        if lingered {
            return;
        }
        let one_way = self.run.as_ref().is_some_and(|run| run.one_way);
        let can_tell = confirmed && !one_way && self.out.is_open() && self.life.can_be_heard();
        if can_tell && self.turn_runs() {
            self.interrupt(now);
        } else if can_tell && self.turns.is_ending() {
            let until = now.saturating_add(self.plan.limits.interrupt_grace);
            self.stop.phase = Phase::Settling(until);
        } else {
            self.close_to_stop(now);
        }
    }

    /// The host asks nothing more. What it asked before is still written.
    pub(super) fn end_input(&mut self, waiter: Waiter, now: Duration) {
        if let Some(refusal) = self.refusal().filter(|refusal| *refusal != Refusal::InputEnded) {
            return self.out.settle(waiter, Settled::Refused(refusal));
        }
        self.evidence.input_ended = true;
        self.out.settle(waiter, Settled::InputEnded);
        self.close_when_written(now);
    }

    /// Closes the input that the host ended, when nothing waits to be written before.
    pub(super) fn close_when_written(&mut self, now: Duration) {
        let ended = self.evidence.input_ended;
        if ended && !self.handshake.is_pending() && self.queue.is_empty() {
            self.close_input(now);
        }
    }

    /// From here on no request can be answered, so nobody should work on one.
    pub(super) fn close_input(&mut self, now: Duration) {
        if self.out.close_input() {
            self.callbacks.close_all(now, &mut self.out);
        }
    }

    /// The run is over for a reason of its own. Whoever waits is told at once; the process may
    /// take its time to end.
    pub(super) fn fail(&mut self, failure: Failure, now: Duration) {
        self.abandon_handshake();
        let refusal = refusal_after(&failure);
        // After a result nothing becomes an error.
        if self.stop.decides_the_end() || self.has_its_result() {
            return self.refuse_waiting(&refusal);
        }
        let began = self.stop.why.replace(Why::Failed(failure.clone())).is_none();
        // Of a CLI that does not read stdin, its end will not be noticed.
        let at_once = matches!(failure, Failure::LineTooLong(_) | Failure::StdinNotRead(_));
        self.out.push(Effect::State(State::Failed(failure)));
        self.refuse_waiting(&refusal);
        self.callbacks.close_all(now, &mut self.out);
        match (began, at_once) {
            (true, false) => self.close_to_stop(now),
            (true, true) => self.terminate(now),
            (false, _) => {}
        }
    }

    /// Ends the run if the CLI does not read the responses to its own requests. A CLI that reads
    /// slowly may leave more unread than one that does not read at all.
    pub(super) fn check_stdin(&mut self, now: Duration) {
        let limit = self.plan.limits.unwritten_response_bytes;
        let unread = self.out.unwritten_responses();
        if unread <= limit || !self.out.is_open() || self.stop.is_under_way() {
            self.stdin_unread_since = None;
            return;
        }
        let since = *self.stdin_unread_since.get_or_insert(now);
        let is_stalled = since.saturating_add(self.plan.limits.stdin_stall) <= now;
        let most = limit.saturating_mul(SLOW_READER_FACTOR);
        if !is_stalled && self.out.older_responses() <= most {
            return;
        }
        self.stdin_unread_since = None;
        if self.has_its_result() {
            // After a result nothing becomes an error.
            self.end_lingering(now);
        } else {
            self.fail(Failure::StdinNotRead(unread), now);
        }
    }

    pub(super) fn stdin_deadline(&self) -> Option<Duration> {
        let since = self.stdin_unread_since.filter(|_| self.life.exited.is_none())?;
        Some(since.saturating_add(self.plan.limits.stdin_stall))
    }

    /// Stops a process that should have ended by itself.
    pub(super) fn end_lingering(&mut self, now: Duration) {
        if self.stop.why.is_none() {
            self.stop.why = Some(Why::Lingers);
            self.callbacks.close_all(now, &mut self.out);
            self.terminate(now);
            self.tell_run(&RunEvent::Stopping, now);
        }
    }

    pub(super) fn stop_tick(&mut self, now: Duration) {
        if self.life.exited.is_some() {
            return;
        }
        if self.lingers_from().is_some_and(|at| at <= now) {
            self.end_lingering(now);
        }
        match self.stop.phase {
            Phase::Settling(until) | Phase::Interrupted(until) if until <= now => {
                self.close_to_stop(now);
            }
            Phase::InputClosed(until) if until <= now => self.terminate(now),
            Phase::Terminated(until) if until <= now => {
                self.stop.phase = Phase::Killed;
                self.out.push(Effect::Kill);
            }
            _ => {}
        }
    }

    /// From when on the process should have ended: a session whose output is at its end, or whose
    /// input cannot be written.
    pub(super) fn lingers_from(&self) -> Option<Duration> {
        if self.stop.is_under_way() {
            return None;
        }
        // When the output of a query is at its end, its own table decides.
        let deaf = self.life.output_ended.filter(|_| self.run.is_none());
        let since = [deaf, self.write_failed].into_iter().flatten().min()?;
        Some(since.saturating_add(self.plan.limits.exit_grace))
    }

    /// The turn that a stop waits for may have ended, or can no longer be seen to end.
    pub(super) fn continue_stop(&mut self, result: bool, now: Duration) {
        let (runs, is_heard) = (self.turn_runs(), self.life.can_be_heard());
        match self.stop.phase {
            Phase::Settling(_) if runs && is_heard => self.interrupt(now),
            Phase::Settling(_) if !self.turns.is_ending() || !is_heard => self.close_to_stop(now),
            Phase::Interrupted(_) if result || !runs || !is_heard => self.close_to_stop(now),
            _ => {}
        }
    }

    fn turn_runs(&self) -> bool {
        self.turns.any_runs() || self.run.as_ref().is_some_and(|run| run.prompt_open)
    }

    /// Messages that wait inside the CLI must not start turns of their own now.
    fn interrupt(&mut self, now: Duration) {
        let interrupt = Interrupt { cancel_queued: Some(true), ..Interrupt::default() };
        if let Ok((_, line)) = self.operations.encode(HostRequest::Interrupt(interrupt)) {
            self.out.write(line);
        }
        let until = now.saturating_add(self.plan.limits.interrupt_grace);
        self.stop.phase = Phase::Interrupted(until);
    }

    fn close_to_stop(&mut self, now: Duration) {
        self.close_input(now);
        let until = now.saturating_add(self.plan.limits.exit_grace);
        self.stop.phase = Phase::InputClosed(until);
    }

    pub(super) fn terminate(&mut self, now: Duration) {
        self.close_input(now);
        if self.life.exited.is_none() {
            self.out.push(Effect::Terminate);
        }
        let until = now.saturating_add(self.plan.limits.terminate_grace);
        self.stop.phase = Phase::Terminated(until);
    }

    /// Whether the handshake was confirmed. If not, it will not be any more.
    fn abandon_handshake(&mut self) -> bool {
        if self.handshake.is_pending() {
            self.handshake = Handshake::Failed;
        }
        matches!(self.handshake, Handshake::Done)
    }
}

/// What those are told that wait when a run fails.
pub(super) fn refusal_after(failure: &Failure) -> Refusal {
    match failure {
        Failure::InitializeRejected(_)
        | Failure::InitializeTimeout(_)
        | Failure::ExitedDuringInit(_) => Refusal::NotInitialized,
        Failure::LineTooLong(size) => Refusal::Closed(format!("a line of {size} bytes came")),
        Failure::StdinNotRead(bytes) => Refusal::Closed(format!(
            "the CLI does not read stdin: {bytes} bytes of responses wait to be written"
        )),
        Failure::IdleTimeout => Refusal::Closed("the CLI was silent for too long".to_owned()),
        Failure::Process { exit, .. } => Refusal::Closed(super::life::described(*exit)),
    }
}
