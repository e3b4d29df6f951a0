//! What each result costs: the difference of the totals that the CLI reports.

use claude_wire::message::{ModelUsageMap, ResultMessage, TerminalReason};
use claude_wire::{Cost, Tokens};

/// The sum of the usage of several models.
#[derive(Clone, Copy, Debug, Default)]
struct UsageTotals {
    usd: f64,
    tokens: Tokens,
}

impl UsageTotals {
    fn sum(models: &ModelUsageMap) -> Self {
        models.values().fold(Self::default(), |mut all, model| {
            all.usd += model.dollars();
            all.tokens += model.tokens();
            all
        })
    }

    /// Returns the totals of a result. The CLI resets them on `/clear`.
    fn totals(result: &ResultMessage) -> Self {
        let models = result.model_usage.as_ref().map(Self::sum).unwrap_or_default();
        Self { usd: result.conversation_dollars(), ..models }
    }

    /// Returns the difference to `before`, or everything if the CLI has reset its totals since.
    fn since(self, before: Self) -> Self {
        if self.usd < before.usd || self.tokens.total() < before.tokens.total() {
            return self;
        }
        let tokens = self.tokens.zip(before.tokens, u64::saturating_sub);
        Self { usd: self.usd - before.usd, tokens }
    }
}

/// The cost of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the machine passes it to the driver")]
pub struct RunCost {
    /// The sum over all results.
    pub sum: Cost,
    /// The number of results.
    pub results: u64,
}

/// The costs that the results of one run report.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The totals of the last result. `None` before the first one of a resumed conversation, whose
    /// earlier cost some versions of the CLI restore.
    before: Option<UsageTotals>,
    run: RunCost,
}

impl Ledger {
    pub(super) fn new(resumes: bool) -> Self {
        let before = (!resumes).then(UsageTotals::default);
        Self { before, run: RunCost::default() }
    }

    /// Records a result and returns its cost: everything that the CLI counted since the previous result.
    pub(super) fn record(&mut self, result: &ResultMessage) -> Cost {
        let totals = UsageTotals::totals(result);
        let known = match &result.model_usage_since_last_result {
            Some(models) => Some(UsageTotals::sum(models)),
            // This version of the CLI reports totals only.
            None => {
                self.before.or_else(|| zero_if_first(result)).map(|before| totals.since(before))
            }
        };
        self.before = Some(totals);
        let mut cost = Cost::at_least(known.map_or_else(|| result.tokens(), |known| known.tokens));
        cost.usd = known.map_or(0.0, |known| known.usd);
        cost.is_complete = known.is_some() && !was_interrupted(result);
        self.run.results += 1;
        self.run.sum += cost;
        cost
    }

    /// Marks the cost of the run as incomplete, because no result will report a part of it.
    pub(super) fn mark_incomplete(&mut self) {
        self.run.sum.is_complete = false;
    }

    /// Returns the cost of the run so far.
    pub(super) fn run(&self) -> RunCost {
        self.run
    }
}

/// Returns zero totals if the first result contains nothing but the usage of its own turn.
fn zero_if_first(result: &ResultMessage) -> Option<UsageTotals> {
    let own = result.usage.as_ref()?.tokens();
    (UsageTotals::totals(result).tokens == own).then(UsageTotals::default)
}

/// Returns whether an answer of the model may have been interrupted, which the CLI does not count.
fn was_interrupted(result: &ResultMessage) -> bool {
    let reason = result.terminal_reason.as_ref();
    matches!(reason, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools))
}

#[cfg(test)]
mod tests;
