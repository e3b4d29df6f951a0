//! Why a process is stopped, and what the machine does at each step of the shutdown sequence. Reading
//! goes on all the while.
//!
//! After a result stdin is closed when the CLI is idle, so that what is written does not depend on how
//! far the CLI had come when the host stopped it.

use std::time::Duration;

use super::ending::described;
use super::event::{Effect, Failure, Refusal, Settled, State, Waiter};
use super::handshake::Handshake;
use super::machine::Machine;
use super::shutdown::ShutdownStep;
use crate::control::{HostRequest, Interrupt};

/// So many times the limit of unwritten responses may wait while the CLI still reads.
const SLOW_READER_FACTOR: usize = 4;

/// Why the process is being stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StopReason {
    /// The host wants it.
    Host,
    /// The run failed.
    Failed(Failure),
    /// It should have exited by itself. How the run ended depends on what else was seen.
    Overdue(Overdue),
}

/// Why a process should have exited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Overdue {
    /// A query was silent for too long.
    Silent,
    /// Nothing more can come from it or be written to it, or background work took too long.
    Lingering,
}

impl Machine {
    /// Whether the reason of the stop says how the run ended.
    pub(super) fn stop_decides_the_end(&self) -> bool {
        match &self.stop_reason {
            Some(StopReason::Host | StopReason::Failed(_)) => true,
            Some(StopReason::Overdue(_)) | None => false,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.stop_reason, Some(StopReason::Failed(_)))
    }

    /// The host wants the session to end.
    pub(super) fn stop(&mut self, now: Duration) {
        if self.stop_decides_the_end() {
            return;
        }
        let is_overdue = self.stop_reason.replace(StopReason::Host).is_some();
        self.out.push(Effect::State(State::Stopping));
        self.refuse_waiting(&Refusal::Stopped, now);
        self.callbacks.close_all(now, &mut self.out);
        let confirmed = self.abandon_handshake();
        if is_overdue {
            return;
        }
        let one_way = self.query.as_ref().is_some_and(|query| query.one_way);
        let can_tell = confirmed && !one_way && self.out.is_open() && self.process.can_be_heard();
        if can_tell && self.turn_runs() {
            self.interrupt(now);
        } else if can_tell && self.turns.is_ending() {
            self.enter(ShutdownStep::Settle, now);
        } else {
            self.close_to_stop(now);
        }
    }

    /// The host asks nothing more. What it asked before is still written.
    pub(super) fn end_input(&mut self, waiter: Waiter, now: Duration) {
        if let Some(refusal) = self.refusal().filter(|refusal| *refusal != Refusal::InputEnded) {
            return self.refuse(waiter, refusal, now);
        }
        self.input_ended = true;
        self.out.settle(waiter, Settled::InputEnded);
        self.close_when_written(now);
    }

    /// Closes the input that the host ended, when nothing waits to be written before.
    pub(super) fn close_when_written(&mut self, now: Duration) {
        if self.input_ended && !self.handshake.is_pending() && self.queue.is_empty() {
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
        if self.stop_decides_the_end() || self.has_its_result() {
            return self.refuse_waiting(&refusal, now);
        }
        let began = self.stop_reason.replace(StopReason::Failed(failure.clone())).is_none();
        // Of a CLI that does not read stdin, its end will not be noticed.
        let at_once = matches!(failure, Failure::LineTooLong(_) | Failure::StdinNotRead(_));
        self.note_cut_off();
        self.out.push(Effect::State(State::Failed(failure)));
        self.refuse_waiting(&refusal, now);
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
        if unread <= limit || !self.out.is_open() || self.stop_reason.is_some() {
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
            self.stop_overdue(Overdue::Lingering, now);
        } else {
            self.fail(Failure::StdinNotRead(unread), now);
        }
    }

    pub(super) fn stdin_deadline(&self) -> Option<Duration> {
        let since = self.stdin_unread_since.filter(|_| self.process.exited.is_none())?;
        Some(since.saturating_add(self.plan.limits.stdin_stall))
    }

    /// Stops a process that should have exited by itself.
    fn stop_overdue(&mut self, overdue: Overdue, now: Duration) {
        if self.stop_reason.is_none() {
            self.stop_reason = Some(StopReason::Overdue(overdue));
            self.callbacks.close_all(now, &mut self.out);
            self.terminate(now);
        }
    }

    pub(super) fn stop_tick(&mut self, now: Duration) {
        if self.process.exited.is_some() {
            return;
        }
        let is_due = |deadline: Option<Duration>| deadline.is_some_and(|at| at <= now);
        if is_due(self.lingering_deadline()) {
            self.stop_overdue(Overdue::Lingering, now);
        } else if is_due(self.idle_deadline()) {
            // After the end of stdout silence says nothing.
            let is_open = self.process.stdout_ended.is_none();
            let overdue = if is_open { Overdue::Silent } else { Overdue::Lingering };
            self.stop_overdue(overdue, now);
        }
        match self.shutdown.due(now) {
            Some(ShutdownStep::CloseStdin) => self.close_to_stop(now),
            Some(ShutdownStep::Terminate) => self.terminate(now),
            Some(ShutdownStep::Kill) => {
                self.enter(ShutdownStep::Kill, now);
                self.out.push(Effect::Kill);
            }
            Some(ShutdownStep::Settle | ShutdownStep::Interrupt) | None => {}
        }
    }

    /// When the process is stopped if it has not exited before.
    pub(super) fn overdue_deadline(&self) -> Option<Duration> {
        if self.stop_reason.is_some() {
            return None;
        }
        [self.lingering_deadline(), self.idle_deadline()].into_iter().flatten().min()
    }

    /// When the process lingers: its stdout is at its end, its stdin cannot be written, or it is a
    /// query after whose result nothing more is to come.
    fn lingering_deadline(&self) -> Option<Duration> {
        let since = [self.process.stdout_ended, self.write_failed].into_iter().flatten().min();
        let closed = since.map(|since| since.saturating_add(self.plan.limits.grace.exit));
        [closed, self.settled_deadline()].into_iter().flatten().min()
    }

    /// The turn that a stop waits for may have ended, or can no longer be seen to end.
    pub(super) fn continue_stop(&mut self, result: bool, now: Duration) {
        let (runs, is_heard) = (self.turn_runs(), self.process.can_be_heard());
        match self.shutdown.step() {
            Some(ShutdownStep::Settle) if runs && is_heard => self.interrupt(now),
            Some(ShutdownStep::Settle) if !self.turns.is_ending() || !is_heard => {
                self.close_to_stop(now);
            }
            Some(ShutdownStep::Interrupt) if result || !runs || !is_heard => {
                self.close_to_stop(now);
            }
            Some(
                ShutdownStep::Settle
                | ShutdownStep::Interrupt
                | ShutdownStep::CloseStdin
                | ShutdownStep::Terminate
                | ShutdownStep::Kill,
            )
            | None => {}
        }
    }

    fn turn_runs(&self) -> bool {
        self.turns.any_runs() || self.query.as_ref().is_some_and(|query| query.prompt_open)
    }

    /// Messages that wait inside the CLI must not start turns of their own now.
    fn interrupt(&mut self, now: Duration) {
        let interrupt = Interrupt { cancel_queued: Some(true), ..Interrupt::default() };
        if let Ok((_, line)) = self.operations.encode(HostRequest::Interrupt(interrupt)) {
            self.out.write(line);
        }
        self.enter(ShutdownStep::Interrupt, now);
    }

    fn close_to_stop(&mut self, now: Duration) {
        self.close_input(now);
        self.enter(ShutdownStep::CloseStdin, now);
    }

    fn terminate(&mut self, now: Duration) {
        self.close_input(now);
        if self.process.exited.is_none() {
            self.out.push(Effect::Terminate);
        }
        self.enter(ShutdownStep::Terminate, now);
    }

    fn enter(&mut self, step: ShutdownStep, now: Duration) {
        self.shutdown.enter(step, now, &self.plan.limits.grace);
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
        Failure::TooManyMalformed(count, _) => {
            Refusal::Closed(format!("{count} lines in a row were no messages"))
        }
        Failure::StdinNotRead(bytes) => Refusal::Closed(format!(
            "the CLI does not read stdin: {bytes} bytes of responses wait to be written"
        )),
        Failure::IdleTimeout => Refusal::Closed("the CLI was silent for too long".to_owned()),
        Failure::Process { exit, .. } | Failure::NonZeroExitAfterResult(exit) => {
            Refusal::Closed(described(*exit))
        }
    }
}
