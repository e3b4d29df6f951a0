//! What turns, queries and sessions cost.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::message::{ModelUsageMap, ResultMessage, TerminalReason};

/// The cost of a turn, a query or a session, as the CLI counts it.
///
/// Subagents, compaction and other requests that the CLI makes on its own are included. The CLI does
/// not count a response of the model that was interrupted.
///
/// Costs can be added up; the sum is complete if all of them are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// US dollars, by the price list of the CLI. Never negative.
    pub usd: f64,
    /// Tokens of all models.
    pub tokens: Tokens,
    /// Whether this is all. If not, dollars and tokens are at least this much: the turn was
    /// interrupted, or no result has reported its cost.
    pub is_complete: bool,
}

/// Numbers of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// Tokens of requests that were neither read from the prompt cache nor written to it.
    pub input: u64,
    /// Tokens that the model wrote.
    pub output: u64,
    /// Tokens of requests that were read from the prompt cache.
    pub cache_read: u64,
    /// Tokens of requests that were written to the prompt cache.
    pub cache_creation: u64,
}

impl Cost {
    /// Returns a cost of which only these tokens are known: it is not complete.
    pub fn at_least(tokens: Tokens) -> Self {
        Self { usd: 0.0, tokens, is_complete: false }
    }
}

impl Serialize for Cost {
    /// `{"usd":0.0042,"tokens":{"input":10,"output":5,"cache_read":0,"cache_creation":0},
    /// "is_complete":true}`
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cost = serializer.serialize_struct("Cost", 3)?;
        cost.serialize_field("usd", &self.usd)?;
        cost.serialize_field("tokens", &self.tokens)?;
        cost.serialize_field("is_complete", &self.is_complete)?;
        cost.end()
    }
}

impl Serialize for Tokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tokens = serializer.serialize_struct("Tokens", 4)?;
        tokens.serialize_field("input", &self.input)?;
        tokens.serialize_field("output", &self.output)?;
        tokens.serialize_field("cache_read", &self.cache_read)?;
        tokens.serialize_field("cache_creation", &self.cache_creation)?;
        tokens.end()
    }
}

impl Default for Cost {
    /// Nothing, and that is all.
    fn default() -> Self {
        Self { usd: 0.0, tokens: Tokens::default(), is_complete: true }
    }
}

impl fmt::Display for Cost {
    /// `$0.0042`, or `at least $0.0042` if it is not complete.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_least = if self.is_complete { "" } else { "at least " };
        write!(f, "{at_least}${:.4}", self.usd)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.usd += other.usd;
        self.tokens += other.tokens;
        self.is_complete &= other.is_complete;
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Add::add)
    }
}

impl Tokens {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { input, output, cache_read, cache_creation } = *self;
        [input, output, cache_read, cache_creation].into_iter().fold(0, u64::saturating_add)
    }

    /// Combines each number with the same number of `other`.
    #[must_use]
    pub fn zip(self, other: Self, each: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: each(self.input, other.input),
            output: each(self.output, other.output),
            cache_read: each(self.cache_read, other.cache_read),
            cache_creation: each(self.cache_creation, other.cache_creation),
        }
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = self.zip(other, u64::saturating_add);
    }
}

/// What the CLI has counted for some models.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    usd: f64,
    tokens: Tokens,
}

impl Counted {
    fn of(models: &ModelUsageMap) -> Self {
        models.values().fold(Self::default(), |mut all, model| {
            all.usd += model.dollars();
            all.tokens += model.tokens();
            all
        })
    }

    /// Returns the totals of a result. The CLI resets them on `/clear`.
    fn totals(result: &ResultMessage) -> Self {
        let models = result.model_usage.as_ref().map(Self::of).unwrap_or_default();
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

/// What a run has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "it passes from the machine to the driver")]
pub struct RunCost {
    /// The sum over all results.
    pub sum: Cost,
    /// How many results there were.
    pub results: u64,
}

/// The costs that the results of one run report.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The totals of the last result. `None` before the first one of a resumed conversation, whose
    /// earlier cost some versions of the CLI restore.
    before: Option<Counted>,
    run: RunCost,
}

impl Ledger {
    pub(super) fn new(resumes: bool) -> Self {
        let before = (!resumes).then(Counted::default);
        Self { before, run: RunCost::default() }
    }

    /// Enters a result and returns its cost: everything that the CLI counted since the result before.
    pub(super) fn enter(&mut self, result: &ResultMessage) -> Cost {
        let totals = Counted::totals(result);
        let known = match &result.model_usage_since_last_result {
            Some(models) => Some(Counted::of(models)),
            // A CLI that reports its totals only.
            None => {
                self.before.or_else(|| nothing_before(result)).map(|before| totals.since(before))
            }
        };
        self.before = Some(totals);
        let cost = Cost {
            usd: known.map_or(0.0, |counted| counted.usd),
            tokens: known.map_or_else(|| result.tokens(), |counted| counted.tokens),
            is_complete: known.is_some() && !was_interrupted(result),
        };
        self.run.results += 1;
        self.run.sum += cost;
        cost
    }

    /// Notes that something was used whose cost will not be reported.
    pub(super) fn miss(&mut self) {
        self.run.sum.is_complete = false;
    }

    /// The cost of everything so far.
    pub(super) fn run(&self) -> RunCost {
        self.run
    }
}

/// The totals before the first result, if it shows that there were none: it counts no more than its
/// own turn used.
fn nothing_before(result: &ResultMessage) -> Option<Counted> {
    let own = result.usage.as_ref()?.tokens();
    (Counted::totals(result).tokens == own).then(Counted::default)
}

/// Whether responses of the model may have been cut off, which the CLI does not count.
fn was_interrupted(result: &ResultMessage) -> bool {
    let reason = result.terminal_reason.as_ref();
    matches!(reason, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools))
}

#[cfg(test)]
mod tests;
