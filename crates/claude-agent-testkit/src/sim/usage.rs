//! Token usage and cost: counted, reported and restored by a simulated CLI.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json::Object;

/// Token usage by model.
#[derive(Debug, Clone, Default)]
pub(super) struct UsageTotals {
    pub(super) total: BTreeMap<String, TokenUsage>,
    pub(super) since_last_result: BTreeMap<String, TokenUsage>,
    /// The part of the cost, in US dollars, that an earlier process incurred. Not counted towards
    /// the budget.
    restored: f64,
    pub(super) agents: AgentStats,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenUsage {
    pub(super) input: u64,
    pub(super) output: u64,
}

/// The number of agents that were started, and how they ended.
#[derive(Debug, Clone, Default)]
pub(super) struct AgentStats {
    pub(super) spawned: u64,
    pub(super) background: u64,
    pub(super) foreground: u64,
    pub(super) unset: u64,
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) killed: u64,
    pub(super) by_type: BTreeMap<String, u64>,
}

impl UsageTotals {
    pub(super) fn add(&mut self, model: &str, input: u64, output: u64) {
        for account in [&mut self.total, &mut self.since_last_result] {
            let spent = account.entry(model.to_owned()).or_default();
            spent.input += input;
            spent.output += output;
        }
    }

    /// Returns the cost of the whole conversation in US dollars.
    pub(super) fn cost(&self) -> f64 {
        // `sum` would return -0.0 for an empty map.
        self.total.iter().fold(0.0, |cost, (model, spent)| cost + spent.cost(model))
    }

    /// Returns the cost of this process in US dollars, which counts towards the budget.
    pub(super) fn cost_of_process(&self) -> f64 {
        self.cost() - self.restored
    }

    /// Restores the totals from the last cost entry of a transcript, if any.
    pub(super) fn restore(&mut self, transcript: &[Value]) {
        let last = transcript.iter().rfind(|entry| entry["type"] == COST_STATE);
        let models = last.and_then(|state| state["modelUsage"].as_object());
        for (model, usage) in models.into_iter().flatten() {
            let tokens = |field: &str| usage[field].as_u64().unwrap_or_default();
            let spent = TokenUsage { input: tokens("inputTokens"), output: tokens("outputTokens") };
            self.total.insert(model.clone(), spent);
        }
        self.restored = self.cost();
    }

    /// Returns the transcript entry from which a later process restores the totals.
    pub(super) fn cost_state(&self, session: &str, duration_ms: u128) -> String {
        let mut models = Object::new();
        for (model, spent) in &self.total {
            models = models.raw(model, &spent.to_stored(model).done());
        }
        Object::typed(COST_STATE)
            .str("sessionId", session)
            .plain("totalCostUSD", self.cost())
            .plain("totalDuration", duration_ms)
            .raw("modelUsage", &models.done())
            .plain("hasUnknownModelCost", false)
            .done()
    }
}

const COST_STATE: &str = "cost-state";

impl TokenUsage {
    /// Returns the list price in US dollars; the rates are per million input and output tokens.
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
    fn cost(self, model: &str) -> f64 {
        let (input, output) = match model {
            name if name.contains("haiku") => (0.1, 0.5),
            name if name.contains("sonnet") => (2.0, 10.0),
            _ => (4.0, 20.0),
        };
        (self.input as f64 * input + self.output as f64 * output) / 1e6
    }

    /// Returns the usage in the format of a transcript.
    fn to_stored(self, model: &str) -> Object {
        Object::new()
            .plain("inputTokens", self.input)
            .plain("outputTokens", self.output)
            .plain("thinkingTokens", 0)
            .plain("cacheReadInputTokens", 0)
            .plain("cacheCreationInputTokens", 0)
            .plain("cacheCreationEphemeral5mInputTokens", 0)
            .plain("cacheCreationEphemeral1hInputTokens", 0)
            .plain("webSearchRequests", 0)
            .plain("costUSD", self.cost(model))
    }

    /// Returns the usage in the format of a result.
    fn to_reported(self, model: &str) -> Object {
        Object::new()
            .plain("inputTokens", self.input)
            .plain("outputTokens", self.output)
            .plain("cacheReadInputTokens", 0)
            .plain("cacheCreationInputTokens", 0)
            .plain("webSearchRequests", 0)
            .plain("costUSD", self.cost(model))
            .plain("contextWindow", 1_000_000)
            .plain("maxOutputTokens", 128_000)
            .plain("thinkingTokens", 0)
            .plain("cacheCreationEphemeral5mInputTokens", 0)
            .plain("cacheCreationEphemeral1hInputTokens", 0)
            .str("canonicalModel", model)
            .str("provider", "firstParty")
            .str("costBasis", "list")
    }
}

/// Returns the `modelUsage` of a result.
pub(super) fn model_usage(models: &BTreeMap<String, TokenUsage>) -> String {
    let mut usage = Object::new();
    for (model, spent) in models {
        usage = usage.raw(model, &spent.to_reported(model).done());
    }
    usage.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_total_costs_positive_zero() {
        assert!(UsageTotals::default().cost().is_sign_positive());
        assert!(UsageTotals::default().cost_of_process().is_sign_positive());
    }

    #[test]
    fn totals_are_restored_and_do_not_count_towards_the_budget() {
        let mut usage = UsageTotals::default();
        usage.add("claude-opus-5-5", 1_000, 10);
        let entry: Value = serde_json::from_str(&usage.cost_state("s", 1)).unwrap();
        let mut later = UsageTotals::default();
        later.restore(&[entry]);
        assert!((later.cost() - 0.0042).abs() < 1e-12 && later.since_last_result.is_empty());
        later.add("claude-opus-5-5", 1_000, 0);
        assert!((later.cost_of_process() - 0.004).abs() < 1e-12);
    }
}
