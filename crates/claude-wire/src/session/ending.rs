//! How a run ends, and who is told.

use std::time::Duration;

use super::Exit;
use super::event::{Effect, End, Event, Failure, Notice, Refusal, Settled};
use super::machine::Machine;
use super::stop::{Overdue, StopReason, refusal_after};

impl Machine {
    /// Ends everything when the process has ended and nothing more of its output can come.
    pub(super) fn end_if_over(&mut self, now: Duration) {
        if self.over.is_some() {
            return;
        }
        let Some(exit) = self.process.over(now) else { return };
        let overdue = match &self.stop_reason {
            Some(StopReason::Host) => return self.finish(exit, End::Stopped, Vec::new(), now),
            Some(StopReason::Failed(failure)) => {
                return self.finish(exit, End::Failed(failure.clone()), Vec::new(), now);
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

    /// The end of a session that nobody stopped, or that did not exit by itself.
    fn end_of_session(&self, exit: Exit, stopped: bool) -> End {
        let result_failed = self.last_result.is_some_and(|result| result.is_error);
        let silent = !self.process.any_output;
        if self.handshake.is_pending() {
            End::Failed(Failure::ExitedDuringInit(exit))
        } else if !stopped
            && self.input_ended
            && (exit.is_good() || (exit == Exit::Code(1) && result_failed))
        {
            End::Completed
        } else {
            End::Failed(Failure::Process { exit, stopped, silent })
        }
    }

    /// The end of a query that the host did not stop, and what the host should know besides.
    fn end_of_query(&self, exit: Exit, overdue: Option<Overdue>) -> (End, Vec<Notice>) {
        // A failed result before the handshake says why the CLI did not start: no prompt was sent.
        if self.handshake.is_pending() && self.last_result.is_some_and(|result| result.is_error) {
            return (End::Failed(Failure::ExitedDuringInit(exit)), Vec::new());
        }
        let mut warnings = Vec::new();
        if self.process.stdout_ended.is_none() {
            warnings.push(Notice::StdoutHeldOpen);
        }
        let stopped = overdue.is_some();
        let mut end = End::Finished;
        match self.last_result {
            Some(_) if stopped => warnings.push(Notice::StoppedAfterResult),
            Some(result) if exit.is_good() || result.is_error => {}
            Some(_) if self.is_strict() => {
                end = End::Failed(Failure::NonZeroExitAfterResult(exit));
            }
            Some(_) => warnings.push(Notice::NonZeroExitAfterResult(exit)),
            None if overdue == Some(Overdue::Silent) => {
                return (End::Failed(Failure::IdleTimeout), Vec::new());
            }
            None if exit != Exit::Code(0) || stopped => {
                let silent = !self.process.any_output;
                return (End::Failed(Failure::Process { exit, stopped, silent }), Vec::new());
            }
            None if self.process.any_output => warnings.push(Notice::ExitWithoutResult),
            None => warnings.push(Notice::EmptyOutput),
        }
        (end, warnings)
    }

    /// The end: whoever waits is told, what runs is ended.
    fn finish(&mut self, exit: Exit, end: End, warnings: Vec<Notice>, now: Duration) {
        self.callbacks.abort_all(now, &mut self.out);
        match self.half_line.take() {
            Some(line) if exit.is_good() => self.out.warn(Notice::IncompleteLastLine(line)),
            Some(line) => self.evidence.other_line(&line),
            None => {}
        }
        for warning in warnings {
            self.out.warn(warning);
        }
        let refusal = match &end {
            _ if self.handshake.is_pending() => Refusal::NotInitialized,
            End::Stopped => Refusal::Stopped,
            End::Finished | End::Completed => Refusal::Closed(described(exit)),
            End::Failed(failure) => refusal_after(failure),
        };
        self.note_cut_off();
        // The cause is published first, then new calls are refused, then those that wait.
        self.out.push(Effect::End(end));
        // Whoever asks after the host has ended its input is told that, before and after the exit.
        self.over = Some(match &refusal {
            Refusal::Closed(_) if self.input_ended => Refusal::InputEnded,
            refusal => refusal.clone(),
        });
        self.refuse_orphans();
        self.refuse_waiting(&refusal, now);
    }

    /// All is over, and the host asks all the same.
    pub(super) fn after_the_end(&mut self, event: &Event) {
        let Some(refusal) = &self.over else { return };
        match event {
            Event::Send { waiter, .. } | Event::Ask { waiter, .. } | Event::EndInput(waiter) => {
                self.out.settle(*waiter, Settled::Refused(refusal.clone()));
            }
            Event::Line(_)
            | Event::Oversized(_)
            | Event::LastLine(_)
            | Event::OutputEnded(_)
            | Event::Exited(_)
            | Event::Written(_)
            | Event::WriteFailed(_)
            | Event::Tick
            | Event::Forget(_)
            | Event::Stop
            | Event::CallbackDone { .. } => {}
        }
    }
}

/// How a process ended, in words.
pub(super) fn described(exit: Exit) -> String {
    format!("the process ended with {exit}")
}
