use std::sync::Arc;

use claude_wire::message::{Body, Message};
use serde_json::{Value, json};

use super::*;

fn message(line: &Value) -> Message {
    Message::decode(line.to_string()).unwrap()
}

fn result(mut line: Value) -> Arc<ResultMessage> {
    line["type"] = json!("result");
    match message(&line).body {
        Body::Result(result) => result,
        other => panic!("{other:?}"),
    }
}

fn models(usd: f64, input: u64, output: u64) -> Value {
    json!({"opus": {"inputTokens": input, "outputTokens": output, "costUSD": usd}})
}

/// A result of a CLI that reports totals only.
fn totals(usd: f64, input: u64, own: u64) -> Arc<ResultMessage> {
    let usage = json!({"input_tokens": own});
    result(json!({"total_cost_usd": usd, "modelUsage": models(usd, input, 0), "usage": usage}))
}

fn is_near(cost: Cost, usd: f64) -> bool {
    (cost.usd - usd).abs() < 1e-9
}

#[test]
fn a_result_costs_what_was_counted_since_the_last_one() {
    let mut ledger = Ledger::new(true);
    let line = json!({
        "total_cost_usd": 9.5,
        "modelUsage": models(9.5, 900, 90),
        "usage": {"input_tokens": 1},
        "model_usage_since_last_result": {
            "opus": {"inputTokens": 10, "outputTokens": 5, "costUSD": 0.25},
            "haiku": {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 3,
                      "costUSD": 0.5},
        },
    });
    let cost = ledger.record(&result(line));
    let Tokens { input, output, cache_read, cache_creation, .. } = cost.tokens;
    assert_eq!((input, output, cache_read, cache_creation), (11, 5, 2, 3));
    assert!(is_near(cost, 0.75) && cost.is_complete, "{cost:?}");
    assert_eq!(ledger.run(), RunCost { sum: cost, results: 1 });
}

#[test]
fn without_that_the_difference_of_totals_is_taken() {
    let mut ledger = Ledger::new(false);
    assert!(is_near(ledger.record(&totals(0.5, 100, 100)), 0.5));
    let cost = ledger.record(&totals(0.75, 150, 50));
    assert!(is_near(cost, 0.25) && cost.tokens.input == 50 && cost.is_complete, "{cost:?}");
    // The conversation was cleared.
    assert_eq!(ledger.record(&totals(0.0, 0, 0)), Cost::default());
    assert!(is_near(ledger.record(&totals(0.125, 10, 10)), 0.125));
    assert!(is_near(ledger.run().sum, 0.875));
}

#[test]
fn the_restored_past_of_a_conversation_is_not_taken_for_a_turn() {
    let mut ledger = Ledger::new(true);
    let cost = ledger.record(&totals(0.75, 150, 50));
    assert_eq!((cost.usd, cost.tokens.input, cost.is_complete), (0.0, 50, false));
    assert!(is_near(ledger.record(&totals(1.0, 200, 50)), 0.25));
    assert!(!ledger.run().sum.is_complete);
    // A CLI that restores nothing counts no more than the turn used.
    let cost = Ledger::new(true).record(&totals(0.25, 50, 50));
    assert!(is_near(cost, 0.25) && cost.is_complete, "{cost:?}");
}

#[test]
fn an_interrupted_turn_is_not_complete() {
    for reason in ["aborted_streaming", "aborted_tools"] {
        let line = json!({
            "terminal_reason": reason,
            "model_usage_since_last_result": models(0.25, 10, 5),
        });
        let cost = Ledger::new(false).record(&result(line));
        assert!(is_near(cost, 0.25) && !cost.is_complete, "{cost:?}");
    }
}

#[test]
fn nothing_costs_zero_and_never_less() {
    let nothing = [
        json!({"model_usage_since_last_result": {}}),
        json!({"model_usage_since_last_result": models(-0.0, 0, 0), "total_cost_usd": -0.0}),
        json!({"model_usage_since_last_result": {"opus": {"costUSD": -1}}, "total_cost_usd": -1}),
        json!({"total_cost_usd": -0.0, "modelUsage": {}}),
        json!({}),
    ];
    let mut ledger = Ledger::new(false);
    for line in nothing {
        let cost = ledger.record(&result(line));
        assert!(cost.usd == 0.0 && cost.usd.is_sign_positive(), "{cost:?}");
    }
    assert!(ledger.run().sum.usd.is_sign_positive());
    assert_eq!(std::iter::empty::<Cost>().sum::<Cost>().to_string(), "$0.0000");
}
