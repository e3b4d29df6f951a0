//! The cost of turns, queries and sessions.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

/// The cost of a turn, a query or a session, as the CLI counts it.
///
/// Includes subagents, compaction and other requests that the CLI makes on its own. The CLI does not
/// count an answer of the model that was interrupted.
///
/// Costs can be added up; the sum is complete if all of them are.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// The cost in US dollars, by the price list of the CLI. Never negative.
    pub usd: f64,
    /// The tokens of all models.
    pub tokens: Tokens,
    /// Whether everything is included. If not, dollars and tokens are lower bounds: the turn was
    /// interrupted, or no result has reported its cost.
    pub is_complete: bool,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// Input tokens that were neither read from the prompt cache nor written to it.
    pub input: u64,
    /// Output tokens of the model.
    pub output: u64,
    /// Input tokens that were read from the prompt cache.
    pub cache_read: u64,
    /// Input tokens that were written to the prompt cache.
    pub cache_creation: u64,
}

impl Cost {
    /// Returns an incomplete cost of which only these tokens are known.
    pub fn at_least(tokens: Tokens) -> Self {
        Self { usd: 0.0, tokens, is_complete: false }
    }
}

impl Serialize for Cost {
    /// Serializes as `{"usd":0.0042,"tokens":{"input":10,"output":5,"cache_read":0,"cache_creation":0},
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
    /// Returns a complete cost of zero.
    fn default() -> Self {
        Self { usd: 0.0, tokens: Tokens::default(), is_complete: true }
    }
}

impl fmt::Display for Cost {
    /// Formats as `$0.0042`, or as `at least $0.0042` if the cost is not complete.
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
    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        let Self { input, output, cache_read, cache_creation } = *self;
        [input, output, cache_read, cache_creation].into_iter().fold(0, u64::saturating_add)
    }

    /// Combines each count with the same count of `other`.
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

#[cfg(test)]
mod tests {
    use super::Cost;

    #[test]
    fn a_sum_is_complete_if_all_of_it_is() {
        let one = Cost { usd: 0.25, ..Cost::default() };
        let cut = Cost { usd: 0.5, is_complete: false, ..Cost::default() };
        assert_eq!([one, one].into_iter().sum::<Cost>().to_string(), "$0.5000");
        assert_eq!((one + cut).to_string(), "at least $0.7500");
    }
}
