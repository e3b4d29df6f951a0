//! The policy of a query: sends the prompt, closes stdin when nothing is pending after a result, and
//! stops the process when it takes too long.

use std::time::Duration;

use claude_wire::Envelope;

use super::background::Background;
use super::event::OutgoingMessage;
use super::limits::QueryLimits;
use super::machine::Machine;
use super::turns::Activity;

#[derive(Debug)]
pub(super) struct Query {
    limits: QueryLimits,
    /// The prompt, until it is sent after the handshake.
    prompt: Option<OutgoingMessage>,
    /// Whether the CLI does not read stdin: the prompt is on the command line.
    pub(super) one_way: bool,
    /// Whether the prompt was written and its result is pending.
    pub(super) prompt_pending: bool,
    background: Background,
    /// The time when stdin was closed because nothing was pending.
    settled: Option<Duration>,
    /// The number of pending callbacks, and the time when it last changed.
    pending_callbacks: (usize, Duration),
}

impl Query {
    pub(super) fn new(prompt: Option<OutgoingMessage>, one_way: bool, limits: QueryLimits) -> Self {
        Self {
            background: Background::new(limits.wait_for_shells),
            limits,
            prompt,
            one_way,
            prompt_pending: false,
            settled: None,
            pending_callbacks: (0, Duration::ZERO),
        }
    }
}

impl Query {
    pub(super) fn record_line(&mut self, envelope: &Envelope<'_>) {
        match &*envelope.kind {
            "result" => self.prompt_pending = false,
            "system" => self.background.record(envelope),
            _ => {}
        }
    }
}

impl Machine {
    pub(super) fn write_prompt(&mut self) {
        let Some(query) = &mut self.query else { return };
        if let Some(prompt) = query.prompt.take() {
            query.prompt_pending = true;
            self.out.write(prompt.line);
        }
    }

    /// Returns whether a failed exit after a successful result fails the query.
    pub(super) fn is_strict(&self) -> bool {
        self.query.as_ref().is_some_and(|query| query.limits.strict_exit_status)
    }

    /// Returns whether the run is a query with a result, after which nothing becomes an error.
    pub(super) fn query_has_result(&self) -> bool {
        self.query.is_some() && self.last_result.is_some()
    }

    /// Records the number of pending callbacks. While one is pending, the idle timeout does not run.
    pub(super) fn record_pending_callbacks(&mut self, now: Duration) {
        let pending = self.callbacks.pending_count();
        if let Some(query) = &mut self.query
            && query.pending_callbacks.0 != pending
        {
            query.pending_callbacks = (pending, now);
        }
    }

    /// Closes stdin of a query when nothing is pending: there is a result, no callback is pending, and
    /// the CLI reports that it is idle, or reports no state and runs no agent.
    pub(super) fn close_stdin_if_settled(&mut self, now: Duration) {
        if self.stop_determines_end() || self.process.exited.is_some() {
            return;
        }
        let Some(query) = &mut self.query else { return };
        let is_quiet = match self.turns.activity() {
            Activity::Idle => true,
            Activity::Running | Activity::Ending => false,
            Activity::Unreported => !query.background.has_agents(),
        };
        let (pending, _) = query.pending_callbacks;
        let is_settled = self.last_result.is_some()
            && pending == 0
            && !query.background.has_shells()
            && is_quiet;
        if is_settled && query.settled.is_none() {
            query.settled = Some(now);
            self.close_stdin(now);
        }
    }

    /// Returns the time when a query with a result is stopped unless its process exits before.
    pub(super) fn settled_deadline(&self) -> Option<Duration> {
        let query = self.query.as_ref()?;
        let result = self.last_result?;
        // The CLI may start a turn after stdin was closed, when a shell has ended; it may complete.
        let is_busy = matches!(self.turns.activity(), Activity::Running | Activity::Ending);
        let settled = query.settled.filter(|_| !is_busy);
        let after_close = settled
            .map(|at| at.max(self.process.last_output).saturating_add(self.plan.limits.grace.exit));
        let ceiling = query.limits.background_ceiling.map(|limit| result.at.saturating_add(limit));
        [after_close, ceiling].into_iter().flatten().min()
    }

    /// Returns the time when the idle timeout of a query expires.
    pub(super) fn idle_deadline(&self) -> Option<Duration> {
        let query = self.query.as_ref()?;
        let limit = query.limits.idle_timeout?;
        let (pending, since) = query.pending_callbacks;
        let is_running = self.last_result.is_none() && pending == 0;
        is_running.then(|| self.process.last_output.max(since).saturating_add(limit))
    }
}
