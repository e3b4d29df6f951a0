//! What turns, queries and sessions cost.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use claude_wire::message::{
    ApiMessage, ModelUsage, ModelUsageMap, ResultMessage, StreamEvent, TerminalReason, Usage,
};
use claude_wire::{Body, Number};

/// The number of recent responses that are distinguished by their IDs.
const RECENT: usize = 64;

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

    fn of_usage(usage: &Usage) -> Self {
        Self {
            input: count(usage.input_tokens.as_ref()),
            output: count(usage.output_tokens.as_ref()),
            cache_read: count(usage.cache_read_input_tokens.as_ref()),
            cache_creation: count(usage.cache_creation_input_tokens.as_ref()),
        }
    }

    fn of_model(usage: &ModelUsage) -> Self {
        Self {
            input: count(usage.input_tokens.as_ref()),
            output: count(usage.output_tokens.as_ref()),
            cache_read: count(usage.cache_read_input_tokens.as_ref()),
            cache_creation: count(usage.cache_creation_input_tokens.as_ref()),
        }
    }

    fn zip(self, other: Self, each: impl Fn(u64, u64) -> u64) -> Self {
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

fn count(number: Option<&Number>) -> u64 {
    number.and_then(Number::as_u64).unwrap_or_default()
}

/// Returns a cost in dollars; a missing, negative or non-finite number is zero.
fn dollars(number: Option<&Number>) -> f64 {
    number.map(Number::as_f64).filter(|usd| usd.is_finite() && *usd > 0.0).unwrap_or(0.0)
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
            all.usd += dollars(model.cost_usd.as_ref());
            all.tokens += Tokens::of_model(model);
            all
        })
    }

    /// Returns the totals of a result. The CLI resets them on `/clear`.
    fn totals(result: &ResultMessage) -> Self {
        let models = result.model_usage.as_ref().map(Self::of).unwrap_or_default();
        Self { usd: dollars(result.total_cost_usd.as_ref()), ..models }
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

/// The costs that the results of one run report.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The totals of the last result. `None` before the first one of a resumed conversation, whose
    /// earlier cost some versions of the CLI restore.
    before: Option<Counted>,
    sum: Cost,
    results: u64,
}

impl Ledger {
    pub(crate) fn new(resumes: bool) -> Self {
        let before = (!resumes).then(Counted::default);
        Self { before, sum: Cost::default(), results: 0 }
    }

    /// Enters a result and returns its cost: everything that the CLI counted since the result before.
    pub(crate) fn enter(&mut self, result: &ResultMessage) -> Cost {
        let totals = Counted::totals(result);
        let known = match &result.model_usage_since_last_result {
            Some(models) => Some(Counted::of(models)),
            // A CLI that reports its totals only.
            None => {
                self.before.or_else(|| nothing_before(result)).map(|before| totals.since(before))
            }
        };
        self.before = Some(totals);
        let own = || result.usage.as_ref().map(Tokens::of_usage).unwrap_or_default();
        let cost = Cost {
            usd: known.map_or(0.0, |counted| counted.usd),
            tokens: known.map_or_else(own, |counted| counted.tokens),
            is_complete: known.is_some() && !was_interrupted(result),
        };
        self.results += 1;
        self.sum += cost;
        cost
    }

    /// Notes that something was used whose cost will not be reported.
    pub(crate) fn miss(&mut self) {
        self.sum.is_complete = false;
    }

    /// The cost of everything so far.
    pub(crate) fn sum(&self) -> Cost {
        self.sum
    }

    /// How many results there were.
    pub(crate) fn results(&self) -> u64 {
        self.results
    }
}

/// The totals before the first result, if it shows that there were none: it counts no more than its
/// own turn used.
fn nothing_before(result: &ResultMessage) -> Option<Counted> {
    let own = Tokens::of_usage(result.usage.as_ref()?);
    (Counted::totals(result).tokens == own).then(Counted::default)
}

/// Whether responses of the model may have been cut off, which the CLI does not count.
fn was_interrupted(result: &ResultMessage) -> bool {
    let reason = result.terminal_reason.as_ref();
    matches!(reason, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools))
}

/// The tokens of responses that no result has counted yet.
#[derive(Debug, Default)]
pub(crate) struct Uncounted {
    /// The latest responses. Several messages tell of the same one.
    recent: VecDeque<(Response, Tokens)>,
    older: Tokens,
    /// The response that is being streamed.
    streaming: Option<Response>,
}

/// The hash of a response's ID, which may have any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Response(u64);

impl Response {
    fn of(message: &ApiMessage) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        message.id.as_ref()?.hash(&mut hasher);
        Some(Self(hasher.finish()))
    }
}

impl Uncounted {
    pub(crate) fn look_at(&mut self, body: &Body) {
        match body {
            Body::Result(_) => *self = Self::default(),
            Body::Assistant(answer) => {
                if let Some(message) = &answer.message {
                    self.note(Response::of(message), message.usage.as_ref());
                }
            }
            Body::StreamEvent(event) => match &event.event {
                Some(StreamEvent::MessageStart(start)) => {
                    let Some(message) = &start.message else { return };
                    self.streaming = Response::of(message);
                    self.note(self.streaming, message.usage.as_ref());
                }
                Some(StreamEvent::MessageDelta(delta)) => {
                    self.note(self.streaming, delta.usage.as_ref());
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Later reports of a response have more of its tokens, not other ones.
    fn note(&mut self, response: Option<Response>, usage: Option<&Usage>) {
        let (Some(response), Some(usage)) = (response, usage) else { return };
        let tokens = Tokens::of_usage(usage);
        if let Some((_, known)) = self.recent.iter_mut().find(|(known, _)| *known == response) {
            *known = known.zip(tokens, u64::max);
            return;
        }
        if self.recent.len() == RECENT
            && let Some((_, tokens)) = self.recent.pop_front()
        {
            self.older += tokens;
        }
        self.recent.push_back((response, tokens));
    }

    pub(crate) fn tokens(&self) -> Tokens {
        let recent = self.recent.iter().map(|(_, tokens)| *tokens);
        recent.fold(self.older, |mut all, tokens| {
            all += tokens;
            all
        })
    }
}

#[cfg(test)]
mod tests;
