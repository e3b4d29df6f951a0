//! Tokens and money: what a simulated CLI counts, reports and restores.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json::Object;

/// Tokens and money, by model.
#[derive(Debug, Clone, Default)]
pub(super) struct UsageTotals {
    pub(super) total: BTreeMap<String, TokenUsage>,
    pub(super) since_last_result: BTreeMap<String, TokenUsage>,
    /// The dollars of the total that an earlier process spent. Budgets leave them out.
    restored: f64,
    pub(super) agents: AgentStats,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenUsage {
    pub(super) input: u64,
    pub(super) output: u64,
}

/// How many agents were started, and what became of them.
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

    /// The dollars of the whole conversation.
    pub(super) fn cost(&self) -> f64 {
        // Not `sum`, which gives -0.0 for nothing.
        self.total.iter().fold(0.0, |cost, (model, spent)| cost + spent.cost(model))
    }

    /// The dollars that count towards the budget.
    pub(super) fn cost_of_process(&self) -> f64 {
        self.cost() - self.restored
    }

    /// Continues with the totals that stand last in a transcript, if any do.
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

    /// The entry of a transcript from which a later process restores the totals.
    pub(super) fn cost_state(&self, session: &str, duration_ms: u128) -> String {
        let mut models = Object::new();
        for (model, spent) in &self.total {
            models = models.raw(model, &spent.stored(model).done());
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
    /// The price by the list: dollars for a million tokens, in and out.
    #[expect(clippy::cast_precision_loss, reason = "nobody counts that many tokens")]
    fn cost(self, model: &str) -> f64 {
        let (input, output) = match model {
            name if name.contains("haiku") => (0.1, 0.5),
            name if name.contains("sonnet") => (2.0, 10.0),
            _ => (4.0, 20.0),
        };
        (self.input as f64 * input + self.output as f64 * output) / 1e6
    }

    /// As it stands in a transcript.
    fn stored(self, model: &str) -> Object {
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

    /// As a result reports it.
    fn reported(self, model: &str) -> Object {
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

/// What was spent, by model.
pub(super) fn model_usage(models: &BTreeMap<String, TokenUsage>) -> String {
    let mut usage = Object::new();
    for (model, spent) in models {
        usage = usage.raw(model, &spent.reported(model).done());
    }
    usage.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_costs_zero_and_not_minus_zero() {
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
