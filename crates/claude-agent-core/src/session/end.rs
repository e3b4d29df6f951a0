//! The end of a run.

use std::time::Duration;

use claude_wire::Exit;

use super::event::{Completion, Effect, Event, Rejection, RunEnd, RunFailure, RunWarning};
use super::machine::Machine;
use super::stop::{Overdue, StopReason, rejection_after};

impl Machine {
    /// Ends the run when the process has exited and its stdout has been read to the end.
    pub(super) fn end_if_finished(&mut self, now: Duration) {
        if self.rejection_after_end.is_some() {
            return;
        }
        let Some(exit) = self.process.final_exit(now) else { return };
        if self.is_flushing(now) {
            return;
        }
        let overdue = match &self.stop_reason {
            Some(StopReason::Host) => return self.finish(exit, RunEnd::Stopped, Vec::new(), now),
            Some(StopReason::Failed(failure)) => {
                return self.finish(exit, RunEnd::Failed(failure.clone()), Vec::new(), now);
            }
            Some(StopReason::Overdue(overdue)) => Some(*overdue),
            None => None,
        };
        let (end, warnings) = match self.query {
            Some(_) => self.end_of_query(exit, overdue),
            None => (self.end_of_session(exit, overdue.is_some()), Vec::new()),
        };
        self.finish(exit, end, warnings, now);
    }

    /// Determines the end of a session that the host did not stop.
    fn end_of_session(&self, exit: Exit, stopped: bool) -> RunEnd {
        let result_failed = self.last_result.is_some_and(|result| result.is_error);
        let silent = !self.process.any_output;
        if self.handshake.is_pending() {
            RunEnd::Failed(RunFailure::ExitedDuringInit(exit))
        } else if !stopped
            && self.input_ended
            && (exit.is_success_or_unknown() || (exit == Exit::Code(1) && result_failed))
        {
            RunEnd::Completed
        } else {
            RunEnd::Failed(RunFailure::Process { exit, stopped, silent })
        }
    }

    /// Determines the end of a query that the host did not stop, and its warnings.
    fn end_of_query(&self, exit: Exit, overdue: Option<Overdue>) -> (RunEnd, Vec<RunWarning>) {
        // No prompt was sent, so a failed result during the handshake explains why the CLI did not start.
        if self.handshake.is_pending() && self.last_result.is_some_and(|result| result.is_error) {
            return (RunEnd::Failed(RunFailure::ExitedDuringInit(exit)), Vec::new());
        }
        let mut warnings = Vec::new();
        if self.process.stdout_ended.is_none() {
            warnings.push(RunWarning::StdoutHeldOpen);
        }
        let stopped = overdue.is_some();
        let mut end = RunEnd::Finished;
        match self.last_result {
            Some(_) if stopped => warnings.push(RunWarning::StoppedAfterResult),
            Some(result) if exit.is_success_or_unknown() || result.is_error => {}
            Some(_) if self.is_strict() => {
                end = RunEnd::Failed(RunFailure::NonZeroExitAfterResult(exit));
            }
            Some(_) => warnings.push(RunWarning::NonZeroExitAfterResult(exit)),
            None if overdue == Some(Overdue::Silent) => {
                return (RunEnd::Failed(RunFailure::IdleTimeout), Vec::new());
            }
            None if exit != Exit::Code(0) || stopped => {
                let silent = !self.process.any_output;
                return (RunEnd::Failed(RunFailure::Process { exit, stopped, silent }), Vec::new());
            }
            None if self.process.any_output => warnings.push(RunWarning::ExitWithoutResult),
            None => warnings.push(RunWarning::EmptyOutput),
        }
        (end, warnings)
    }

    /// Ends the run: aborts callbacks, publishes the end and rejects pending commands.
    fn finish(&mut self, exit: Exit, end: RunEnd, warnings: Vec<RunWarning>, now: Duration) {
        self.callbacks.abort_all(now, &mut self.out);
        match self.partial_line.take() {
            Some(line) if exit.is_success_or_unknown() => {
                self.out.warn(RunWarning::IncompleteLastLine(line));
            }
            Some(line) => self.evidence.record_malformed_line(&line),
            None => {}
        }
        for warning in warnings {
            self.out.warn(warning);
        }
        let rejection = match &end {
            _ if self.handshake.is_pending() => Rejection::NotInitialized,
            RunEnd::Stopped => Rejection::Stopped,
            RunEnd::Finished | RunEnd::Completed => Rejection::Closed(describe_exit(exit)),
            RunEnd::Failed(failure) => rejection_after(failure),
        };
        self.mark_cost_incomplete();
        // The cause is published first, then new commands are rejected, then pending ones.
        self.out.push(Effect::End(end));
        // After the host has ended the input, commands are rejected for that reason, also after the exit.
        self.rejection_after_end = Some(match &rejection {
            Rejection::Closed(_) if self.input_ended => Rejection::InputEnded,
            rejection => rejection.clone(),
        });
        self.reject_orphans();
        self.reject_pending(&rejection, now);
    }

    /// Rejects commands after the end of the run; ignores all other events.
    pub(super) fn handle_after_end(&mut self, event: &Event) {
        let Some(rejection) = &self.rejection_after_end else { return };
        match event {
            Event::Send { waiter, .. }
            | Event::Request { waiter, .. }
            | Event::EndInput(waiter) => {
                self.out.complete(*waiter, Completion::Rejected(rejection.clone()));
            }
            Event::Line(_)
            | Event::Oversized(_)
            | Event::LastLine(_)
            | Event::StdoutEnded(_)
            | Event::Exited(_)
            | Event::Written(_)
            | Event::WriteFailed(_)
            | Event::Tick
            | Event::Forget(_)
            | Event::Stop
            | Event::CallbackDone { .. }
            | Event::Appended(_)
            | Event::AppendFailed { .. }
            | Event::Superseded(_) => {}
        }
    }
}

/// Describes the exit of the process.
pub(super) fn describe_exit(exit: Exit) -> String {
    format!("the CLI exited with {exit}")
}
