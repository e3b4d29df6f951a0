//! The reasons for a shutdown, and its steps. Stdout is read during the whole shutdown.
//!
//! After a result, stdin is closed only when the CLI is idle, so that the written lines do not depend
//! on the progress of the CLI at the time of the stop.

use std::time::Duration;

use claude_wire::control::{HostRequest, Interrupt};

use super::end::describe_exit;
use super::event::{Completion, Effect, Rejection, RunFailure, RunState, Waiter};
use super::handshake::Handshake;
use super::machine::Machine;
use super::shutdown::ShutdownStep;

/// The factor by which unwritten responses may exceed their limit while the CLI still reads stdin.
const SLOW_READER_FACTOR: usize = 4;

/// The reason why the process is being stopped.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StopReason {
    /// The host has stopped the run.
    Host,
    /// The run has failed.
    Failed(RunFailure),
    /// The process did not exit by itself. The end of the run depends on its results.
    Overdue(Overdue),
}

/// The reason why a process should have exited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Overdue {
    /// The idle timeout of a query has expired.
    Silent,
    /// Stdout is closed, stdin is broken, or background tasks took too long.
    Lingering,
}

impl Machine {
    /// Returns whether the reason of the stop determines the end of the run.
    pub(super) fn stop_determines_end(&self) -> bool {
        match &self.stop_reason {
            Some(StopReason::Host | StopReason::Failed(_)) => true,
            Some(StopReason::Overdue(_)) | None => false,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.stop_reason, Some(StopReason::Failed(_)))
    }

    /// Stops the run for the host.
    pub(super) fn stop(&mut self, now: Duration) {
        if self.stop_determines_end() {
            return;
        }
        let is_overdue = self.stop_reason.replace(StopReason::Host).is_some();
        self.out.push(Effect::State(RunState::Stopping));
        self.reject_pending(&Rejection::Stopped, now);
        self.callbacks.cancel_all(now, &mut self.out);
        let confirmed = self.abandon_handshake();
        if is_overdue {
            return;
        }
        let one_way = self.query.as_ref().is_some_and(|query| query.one_way);
        let can_interrupt =
            confirmed && !one_way && self.out.is_open() && self.process.can_respond();
        if can_interrupt && self.has_running_turn() {
            self.interrupt(now);
        } else if can_interrupt && self.turns.is_ending() {
            self.enter(ShutdownStep::Settle, now);
        } else {
            self.close_to_stop(now);
        }
    }

    /// Ends the input for the host. Earlier commands are still written.
    pub(super) fn end_input(&mut self, waiter: Waiter, now: Duration) {
        if let Some(rejection) = self.rejection().filter(|reason| *reason != Rejection::InputEnded)
        {
            return self.reject_command(waiter, rejection, now);
        }
        self.input_ended = true;
        self.out.complete(waiter, Completion::InputEnded);
        self.close_stdin_when_written(now);
    }

    /// Closes stdin if the host has ended the input and no command is queued.
    pub(super) fn close_stdin_when_written(&mut self, now: Duration) {
        if self.input_ended && !self.handshake.is_pending() && self.queue.is_empty() {
            self.close_stdin(now);
        }
    }

    /// Closes stdin, and cancels all callbacks because their responses can no longer be sent.
    pub(super) fn close_stdin(&mut self, now: Duration) {
        if self.out.close() {
            self.callbacks.cancel_all(now, &mut self.out);
        }
    }

    /// Fails the run and starts the shutdown. Pending commands are rejected at once.
    pub(super) fn fail(&mut self, failure: RunFailure, now: Duration) {
        self.abandon_handshake();
        let rejection = rejection_after(&failure);
        // After a result nothing becomes an error.
        if self.query_has_result() {
            return self.reject_pending(&rejection, now);
        }
        self.fail_at_once(failure, now);
    }

    /// Fails the run like [`fail`](Self::fail), also after the result of a query.
    pub(super) fn fail_at_once(&mut self, failure: RunFailure, now: Duration) {
        self.abandon_handshake();
        let rejection = rejection_after(&failure);
        let is_store_lost = is_store_lost(&failure);
        // The host must learn that its last turns may be in no conversation, even if it has stopped the run.
        let is_ended = self.has_failed() || (self.stop_determines_end() && !is_store_lost);
        if is_ended {
            self.reject_pending(&rejection, now);
            if is_store_lost {
                self.terminate_at_once(now);
            }
            return;
        }
        self.out.fail_held(is_store_lost);
        self.out.end_turns();
        let is_first = self.stop_reason.replace(StopReason::Failed(failure.clone())).is_none();
        // A CLI that does not read stdin does not notice that it is closed.
        let must_terminate =
            matches!(failure, RunFailure::LineTooLong(_) | RunFailure::StdinNotRead(_));
        self.mark_cost_incomplete();
        self.out.push(Effect::State(RunState::Failed(failure)));
        self.reject_pending(&rejection, now);
        self.callbacks.cancel_all(now, &mut self.out);
        match (is_first, must_terminate) {
            _ if is_store_lost => self.terminate_at_once(now),
            (true, false) => self.close_to_stop(now),
            (true, true) => self.terminate(now),
            (false, _) => {}
        }
    }

    /// Ends the CLI of a query that has its result, because another host owns the session or the store failed.
    pub(super) fn stop_after_result(&mut self, now: Duration) {
        if self.stop_reason.is_none() {
            self.stop_reason = Some(StopReason::Overdue(Overdue::Lingering));
            self.callbacks.cancel_all(now, &mut self.out);
        }
        self.terminate_at_once(now);
    }

    /// Fails the run if the CLI does not read the responses to its requests. The limit is higher for a
    /// CLI that reads slowly than for one that does not read at all.
    pub(super) fn check_stdin(&mut self, now: Duration) {
        let limit = self.plan.limits.unwritten_response_bytes;
        let unread = self.out.unwritten_responses();
        if unread <= limit || !self.out.is_open() || self.stop_reason.is_some() {
            self.stdin_unread_since = None;
            return;
        }
        let since = *self.stdin_unread_since.get_or_insert(now);
        let is_stalled = since.saturating_add(self.plan.limits.stdin_stall) <= now;
        let max = limit.saturating_mul(SLOW_READER_FACTOR);
        if !is_stalled && self.out.older_responses() <= max {
            return;
        }
        self.stdin_unread_since = None;
        if self.query_has_result() {
            // After a result nothing becomes an error.
            self.stop_overdue(Overdue::Lingering, now);
        } else {
            self.fail(RunFailure::StdinNotRead(unread), now);
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
            self.callbacks.cancel_all(now, &mut self.out);
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
            // After the end of stdout there is no output, so the idle timeout is not the reason.
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

    /// Returns the time when the process is stopped unless it exits before.
    pub(super) fn overdue_deadline(&self) -> Option<Duration> {
        if self.stop_reason.is_some() {
            return None;
        }
        [self.lingering_deadline(), self.idle_deadline()].into_iter().flatten().min()
    }

    /// Returns the time when the process counts as lingering: a grace period after stdout was closed or
    /// stdin broke, or after the result of a query.
    fn lingering_deadline(&self) -> Option<Duration> {
        let since = [self.process.stdout_ended, self.write_failed].into_iter().flatten().min();
        let closed = since.map(|since| since.saturating_add(self.plan.limits.grace.exit));
        [closed, self.settled_deadline()].into_iter().flatten().min()
    }

    /// Continues a stop that waits for the end of a turn, if the turn has ended or its end can no
    /// longer be observed.
    pub(super) fn continue_stop(&mut self, result: bool, now: Duration) {
        let (is_running, can_respond) = (self.has_running_turn(), self.process.can_respond());
        match self.shutdown.step() {
            Some(ShutdownStep::Settle) if is_running && can_respond => self.interrupt(now),
            Some(ShutdownStep::Settle) if !self.turns.is_ending() || !can_respond => {
                self.close_to_stop(now);
            }
            Some(ShutdownStep::Interrupt) if result || !is_running || !can_respond => {
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

    fn has_running_turn(&self) -> bool {
        self.turns.has_running() || self.query.as_ref().is_some_and(|query| query.prompt_pending)
    }

    /// Interrupts the turn, and cancels messages that are queued in the CLI, which would otherwise start
    /// further turns.
    fn interrupt(&mut self, now: Duration) {
        let mut interrupt = Interrupt::default();
        interrupt.cancel_queued = Some(true);
        if let Ok((_, line)) = self.operations.encode(HostRequest::Interrupt(interrupt)) {
            self.out.write(line);
        }
        self.enter(ShutdownStep::Interrupt, now);
    }

    fn close_to_stop(&mut self, now: Duration) {
        self.close_stdin(now);
        self.enter(ShutdownStep::CloseStdin, now);
    }

    fn terminate(&mut self, now: Duration) {
        self.close_stdin(now);
        if self.process.exited.is_none() {
            self.out.push(Effect::Terminate);
        }
        self.enter(ShutdownStep::Terminate, now);
    }

    /// Sends SIGTERM now and SIGKILL soon, also if a slower shutdown is in progress: every further tool call of the
    /// CLI would be one that the conversation does not contain.
    fn terminate_at_once(&mut self, now: Duration) {
        self.close_stdin(now);
        if self.process.exited.is_none() && self.shutdown.end_at_once(now, &self.plan.limits.grace)
        {
            self.out.push(Effect::TerminateAtOnce);
        }
    }

    fn enter(&mut self, step: ShutdownStep, now: Duration) {
        self.shutdown.enter(step, now, &self.plan.limits.grace);
    }

    /// Fails a pending handshake, and returns whether the handshake was completed before.
    fn abandon_handshake(&mut self) -> bool {
        if self.handshake.is_pending() {
            self.handshake = Handshake::Failed;
            self.turns.handshake_ended(false, &mut self.out);
        }
        matches!(self.handshake, Handshake::Done)
    }
}

/// Returns whether the run may not continue because of its store: another host owns the session, or the host chose
/// to stop when its store fails.
fn is_store_lost(failure: &RunFailure) -> bool {
    matches!(failure, RunFailure::Superseded(_) | RunFailure::StoreFailed(_))
}

/// Returns the rejection of pending commands after a failure.
pub(super) fn rejection_after(failure: &RunFailure) -> Rejection {
    match failure {
        RunFailure::InitializeRejected(_)
        | RunFailure::McpServersNotApplied
        | RunFailure::InitializeTimeout(_)
        | RunFailure::ExitedDuringInit(_) => Rejection::NotInitialized,
        RunFailure::LineTooLong(size) => {
            Rejection::Closed(format!("the CLI wrote a line of {size} bytes"))
        }
        RunFailure::TooManyMalformedLines(count, _) => {
            Rejection::Closed(format!("the CLI wrote {count} consecutive malformed lines"))
        }
        RunFailure::StdinNotRead(bytes) => Rejection::Closed(format!(
            "the CLI does not read stdin: {bytes} bytes of responses are unwritten"
        )),
        RunFailure::Superseded(reason) | RunFailure::StoreFailed(reason) => {
            Rejection::Closed(format!("the run was stopped because of its store: {reason}"))
        }
        RunFailure::IdleTimeout => {
            Rejection::Closed("the CLI exceeded the idle timeout".to_owned())
        }
        RunFailure::Process { exit, .. } | RunFailure::NonZeroExitAfterResult(exit) => {
            Rejection::Closed(describe_exit(*exit))
        }
    }
}
