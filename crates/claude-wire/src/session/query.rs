//! What is different when a run is a query: a table says when it is over.

use std::time::Duration;

use super::event::{End, Failure, Outgoing};
use super::machine::Machine;
use super::{Ending, RunEnd, RunEndLimits, RunEvent, RunStep};

#[derive(Debug)]
pub(super) struct QueryRun {
    end: RunEnd,
    /// When the table must be asked again.
    pub(super) wake: Option<Duration>,
    /// What is sent after the handshake.
    prompt: Option<Outgoing>,
    /// Whether the CLI reads nothing: the prompt stands on its command line.
    pub(super) one_way: bool,
    /// Whether the prompt was written and has no result yet.
    pub(super) prompt_open: bool,
    callbacks: usize,
}

impl QueryRun {
    pub(super) fn new(prompt: Option<Outgoing>, one_way: bool, limits: RunEndLimits) -> Self {
        let mut end = RunEnd::new(limits);
        let wake = match end.on(&RunEvent::Tick, Duration::ZERO) {
            RunStep::GoOn(wake) => wake,
            RunStep::CloseInput | RunStep::Stop | RunStep::End(_) => None,
        };
        Self { end, wake, prompt, one_way, prompt_open: false, callbacks: 0 }
    }
}

impl Machine {
    /// Tells the table of a query what happened, and does what it says.
    pub(super) fn tell_run(&mut self, event: &RunEvent<'_>, now: Duration) {
        if let Some(step) = self.run_step(event, now) {
            self.follow(step, now);
        }
    }

    /// Tells the table what happened; none if it does not decide.
    pub(super) fn run_step(&mut self, event: &RunEvent<'_>, now: Duration) -> Option<RunStep> {
        let run = self.run.as_mut()?;
        if let RunEvent::Line(envelope) = event {
            run.prompt_open &= envelope.kind != "result";
        }
        let step = run.end.on(event, now);
        (!self.stop.decides_the_end() && self.over.is_none()).then_some(step)
    }

    pub(super) fn follow(&mut self, mut step: RunStep, now: Duration) {
        loop {
            match step {
                RunStep::GoOn(wake) => {
                    if let Some(run) = &mut self.run {
                        run.wake = wake;
                    }
                    return;
                }
                RunStep::CloseInput => self.close_input(now),
                RunStep::Stop => self.end_lingering(now),
                RunStep::End(ending) => return self.run_ended(ending, now),
            }
            match self.run_step(&RunEvent::Tick, now) {
                Some(next) => step = next,
                None => return,
            }
        }
    }

    /// Tells the table how many answers the host owes, if that changed.
    pub(super) fn tell_run_of_callbacks(&mut self, now: Duration) {
        let open = self.callbacks.open_requests();
        let Some(run) = &mut self.run else { return };
        if run.callbacks != open {
            run.callbacks = open;
            self.tell_run(&RunEvent::Callbacks(open), now);
        }
    }

    pub(super) fn write_prompt(&mut self) {
        let Some(run) = &mut self.run else { return };
        if let Some(prompt) = run.prompt.take() {
            run.prompt_open = true;
            self.out.write(prompt.line);
        }
    }

    /// Whether it is a query that has a result: nothing becomes an error after it.
    pub(super) fn has_its_result(&self) -> bool {
        self.run.is_some() && self.evidence.last_result_is_error.is_some()
    }

    fn run_ended(&mut self, ending: Ending, now: Duration) {
        let Some((exit, _)) = self.life.exited else { return };
        let (warnings, end) = match ending {
            Ending::Finished(warnings) => (warnings, End::Finished),
            Ending::ProcessFailed { exit, stopped, silent } => {
                (Vec::new(), End::Failed(Failure::Process { exit, stopped, silent }))
            }
            Ending::IdleTimeout => (Vec::new(), End::Failed(Failure::IdleTimeout)),
        };
        self.finish(exit, end, &warnings, now);
    }
}
