//! Compares token counts and costs.

use std::collections::BTreeMap;

use claude_agent_testkit::recording::{EntryKind, Recording};
use serde_json::Value;

use super::Difference;

/// Costs that differ by less are equal: they are sums of products.
const TOLERANCE: f64 = 1e-9;

/// The fields of `usage`, and those of one model in `modelUsage`.
const USAGE: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
const MODEL: [&str; 5] =
    ["inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "costUSD"];

/// Returns the figures that differ or are missing on one side. Results are compared in order, and assistant messages by
/// their total usage.
pub(super) fn differences(real: &Recording, other: &Recording) -> Vec<Difference> {
    let (real, other) = (figures_of(real), figures_of(other));
    let names = real.keys().chain(other.keys().filter(|name| !real.contains_key(*name)));
    names
        .filter_map(|name| {
            let (real, other) = (real.get(name).copied(), other.get(name).copied());
            let same = match (real, other) {
                (Some(real), Some(other)) => (real - other).abs() < TOLERANCE,
                _ => false,
            };
            let shown = |figure: Option<f64>| figure.map_or("none".to_owned(), |it| it.to_string());
            (!same)
                .then(|| Difference::Counts(format!("{name} {} for {}", shown(other), shown(real))))
        })
        .collect()
}

fn figures_of(recording: &Recording) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let mut results = 0;
    for entry in &recording.entries {
        let EntryKind::Received(line) = &entry.kind else { continue };
        let Ok(frame) = serde_json::from_slice::<Value>(line) else { continue };
        match frame["type"].as_str() {
            Some("result") => {
                add_result(&mut figures, &format!("result {results}"), &frame);
                results += 1;
            }
            Some("assistant") => add_usage(&mut figures, "assistant", &frame["message"]["usage"]),
            _ => {}
        }
    }
    figures
}

fn add_result(figures: &mut BTreeMap<String, f64>, name: &str, result: &Value) {
    if let Some(total) = result["total_cost_usd"].as_f64() {
        figures.insert(format!("{name} total_cost_usd"), total);
    }
    add_usage(figures, name, &result["usage"]);
    for field in ["modelUsage", "model_usage_since_last_result"] {
        for (model, usage) in result[field].as_object().into_iter().flatten() {
            for (key, figure) in MODEL.iter().filter_map(|key| Some((key, usage[key].as_f64()?))) {
                figures.insert(format!("{name} {field} {model} {key}"), figure);
            }
        }
    }
}

fn add_usage(figures: &mut BTreeMap<String, f64>, name: &str, usage: &Value) {
    for (key, figure) in USAGE.iter().filter_map(|key| Some((key, usage[key].as_f64()?))) {
        *figures.entry(format!("{name} {key}")).or_default() += figure;
    }
}

#[cfg(test)]
mod tests {
    use claude_agent_testkit::recording::Recording;

    use super::*;

    fn recording(total: &str, output: u64) -> Recording {
        let file = format!(
            r#"## {{"format":1,"cli_version":"2.1.325","date":"2026-11-15","scenario":"s"}}
<< 0.1 {{"type":"assistant","message":{{"usage":{{"input_tokens":10}}}}}}
<< 0.2 {{"type":"result","total_cost_usd":{total},"usage":{{"output_tokens":{output}}},"modelUsage":{{"m":{{"costUSD":{total}}}}}}}
"#
        );
        Recording::parse(file.as_bytes()).unwrap()
    }

    #[test]
    fn differing_figures_are_reported() {
        let real = recording("0.00014", 5);
        assert_eq!(differences(&real, &recording("0.00014000000000000001", 5)), []);
        let differences: Vec<String> =
            differences(&real, &recording("-0.5", 6)).iter().map(ToString::to_string).collect();
        assert_eq!(
            differences,
            [
                "counts result 0 modelUsage m costUSD -0.5 for 0.00014",
                "counts result 0 output_tokens 6 for 5",
                "counts result 0 total_cost_usd -0.5 for 0.00014",
            ]
        );
    }
}
