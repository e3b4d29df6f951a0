//! How everything ends.

use std::time::Duration;

use super::event::{Effect, End, Event, Failure, Notice, Refusal, Settled};
use super::life::described;
use super::machine::Machine;
use super::stop::{Why, refusal_after};
use super::{Exit, RunWarning};

impl Machine {
    /// Ends everything when the process has ended and its output too. The table of a query decides
    /// that itself.
    pub(super) fn end_if_over(&mut self, now: Duration) {
        let decides = self.run.is_none() || self.stop.decides_the_end();
        if self.life.exited.is_none() || !decides || self.over.is_some() {
            return;
        }
        let Some(exit) = self.life.over(now) else { return };
        let end = match &self.stop.why {
            Some(Why::Host) => End::Stopped(exit),
            Some(Why::Failed(failure)) => End::Failed(failure.clone()),
            None | Some(Why::Lingers) if self.handshake.is_pending() => {
                End::Failed(Failure::ExitedDuringInit(exit))
            }
            None if self.evidence.input_ended => End::Stopped(exit),
            why => {
                let (stopped, silent) = (why.is_some(), !self.evidence.any_output);
                End::Failed(Failure::Process { exit, stopped, silent })
            }
        };
        self.finish(exit, end, &[], now);
    }

    /// The end: whoever waits is told, what runs is ended.
    pub(super) fn finish(&mut self, exit: Exit, end: End, warnings: &[RunWarning], now: Duration) {
        self.callbacks.abort_all(now, &mut self.out);
        match self.half_line.take() {
            Some(line) if matches!(exit, Exit::Code(0) | Exit::Unknown) => {
                self.out.warn(Notice::IncompleteLastLine(line));
            }
            Some(line) => self.evidence.other_line(&line),
            None => {}
        }
        for warning in warnings {
            self.out.warn(Notice::Run(*warning));
        }
        let refusal = match &end {
            _ if self.handshake.is_pending() => Refusal::NotInitialized,
            End::Stopped(_) if self.stop.is_under_way() => Refusal::Stopped,
            End::Finished | End::Stopped(_) => Refusal::Closed(described(exit)),
            End::Failed(failure) => refusal_after(failure),
        };
        self.refuse_waiting(&refusal);
        for waiter in self.stop.take_waiters() {
            self.out.settle(waiter, Settled::Ended(exit));
        }
        self.out.push(Effect::End(end));
        // Whoever asks after the host has ended its input is told that, before and after the exit.
        let later = match refusal {
            Refusal::Closed(_) if self.evidence.input_ended => Refusal::InputEnded,
            refusal => refusal,
        };
        self.over = Some((exit, later));
    }

    /// All is over, and somebody asks all the same.
    pub(super) fn after_the_end(&mut self, event: &Event) {
        let Some((exit, refusal)) = &self.over else { return };
        match event {
            Event::Send { waiter, .. } | Event::Ask { waiter, .. } | Event::EndInput(waiter) => {
                self.out.settle(*waiter, Settled::Refused(refusal.clone()));
            }
            Event::Stop(Some(waiter)) => self.out.settle(*waiter, Settled::Ended(*exit)),
            _ => {}
        }
    }
}
