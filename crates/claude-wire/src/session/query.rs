//! The policy of a query: it sends its prompt, closes stdin when nothing more is to come after a
//! result, and is stopped when it takes too long.

use std::time::Duration;

use super::background::Background;
use super::event::Outgoing;
use super::limits::QueryLimits;
use super::machine::Machine;
use super::turns::Activity;
use crate::envelope::Envelope;

#[derive(Debug)]
pub(super) struct Query {
    limits: QueryLimits,
    /// What is sent after the handshake.
    prompt: Option<Outgoing>,
    /// Whether the CLI reads nothing: the prompt stands on its command line.
    pub(super) one_way: bool,
    /// Whether the prompt was written and has no result yet.
    pub(super) prompt_open: bool,
    background: Background,
    /// When stdin was closed because nothing more was to come.
    settled: Option<Duration>,
    /// How many responses the host owed, and when that last changed.
    owed: (usize, Duration),
}

impl Query {
    pub(super) fn new(prompt: Option<Outgoing>, one_way: bool, limits: QueryLimits) -> Self {
        Self {
            background: Background::new(limits.wait_for_shells),
            limits,
            prompt,
            one_way,
            prompt_open: false,
            settled: None,
            owed: (0, Duration::ZERO),
        }
    }
}

impl Query {
    pub(super) fn note_line(&mut self, envelope: &Envelope<'_>) {
        match &*envelope.kind {
            "result" => self.prompt_open = false,
            "system" => self.background.note(envelope),
            _ => {}
        }
    }
}

impl Machine {
    pub(super) fn write_prompt(&mut self) {
        let Some(query) = &mut self.query else { return };
        if let Some(prompt) = query.prompt.take() {
            query.prompt_open = true;
            self.out.write(prompt.line);
        }
    }

    /// Whether an exit that is no success fails a query with a good result.
    pub(super) fn is_strict(&self) -> bool {
        self.query.as_ref().is_some_and(|query| query.limits.strict_exit_status)
    }

    /// Whether it is a query that has a result: nothing becomes an error after it.
    pub(super) fn has_its_result(&self) -> bool {
        self.query.is_some() && self.last_result.is_some()
    }

    /// Notes how many responses the host owes. While it owes one, it is not the CLI that is silent.
    pub(super) fn note_callbacks(&mut self, now: Duration) {
        let open = self.callbacks.open_requests();
        if let Some(query) = &mut self.query
            && query.owed.0 != open
        {
            query.owed = (open, now);
        }
    }

    /// Closes stdin of a query when nothing more is to come: a result was seen, the host owes no
    /// response, and the CLI says that it is idle, or says nothing and runs no agent.
    pub(super) fn close_if_settled(&mut self, now: Duration) {
        if self.stop_decides_the_end() || self.process.exited.is_some() {
            return;
        }
        let Some(query) = &mut self.query else { return };
        let is_quiet = match self.turns.activity() {
            Activity::Idle => true,
            Activity::Running | Activity::Ending => false,
            Activity::Unreported => !query.background.any_agents(),
        };
        let (owed, _) = query.owed;
        let is_settled =
            self.last_result.is_some() && owed == 0 && !query.background.any_shells() && is_quiet;
        if is_settled && query.settled.is_none() {
            query.settled = Some(now);
            self.close_input(now);
        }
    }

    /// When a query must be stopped that has a result, if its process does not exit before.
    pub(super) fn settled_deadline(&self) -> Option<Duration> {
        let query = self.query.as_ref()?;
        let result = self.last_result?;
        // A turn that the CLI began after stdin was closed, for a shell that ended, may be finished.
        let is_busy = matches!(self.turns.activity(), Activity::Running | Activity::Ending);
        let settled = query.settled.filter(|_| !is_busy);
        let after_close = settled
            .map(|at| at.max(self.process.last_output).saturating_add(self.plan.limits.grace.exit));
        let ceiling = query.limits.background_ceiling.map(|limit| result.at.saturating_add(limit));
        [after_close, ceiling].into_iter().flatten().min()
    }

    /// When a query has been silent for too long.
    pub(super) fn idle_deadline(&self) -> Option<Duration> {
        let query = self.query.as_ref()?;
        let limit = query.limits.idle_timeout?;
        let (owed, since) = query.owed;
        let waits = self.last_result.is_none() && owed == 0;
        waits.then(|| self.process.last_output.max(since).saturating_add(limit))
    }
}
