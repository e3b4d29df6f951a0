//! Recognizes missing or rejected credentials.

use claude_wire::message::{ResultMessage, TerminalReason};

/// Returns whether a turn failed because the CLI is not logged in, or its key or login was rejected.
///
/// The CLI does not exit then: the turn has an error result.
pub(super) fn is_login_missing(result: &ResultMessage) -> bool {
    if !result.is_error() {
        return false;
    }
    let status = result.api_error_status.as_ref().and_then(claude_wire::Number::as_u64);
    if status == Some(401) || result.api_error_type.as_deref() == Some("authentication_error") {
        return true;
    }
    // Without a login the CLI sends no request, and only the text shows the reason. Older CLIs do not
    // report what ended the turn.
    let by_api = result.terminal_reason.as_ref().is_none_or(|why| *why == TerminalReason::ApiError);
    by_api && result.result.iter().chain(result.errors.iter()).any(|text| is_login_error(text))
}

/// Returns whether a text of the CLI, from a result or from stderr, reports a missing or rejected login.
pub(super) fn is_login_error(text: &str) -> bool {
    ["Not logged in", "Please run /login", "Invalid API key"].iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    /// Returns the results of a recorded conversation.
    fn results(recording: &Path) -> Vec<ResultMessage> {
        let text = fs::read_to_string(recording).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("<< ")?.split_once(' '));
        let values = lines.filter_map(|(_, line)| serde_json::from_str::<Value>(line).ok());
        let results = values.filter(|value| value["type"] == "result");
        results.map(|value| serde_json::from_value(value).unwrap()).collect()
    }

    #[test]
    fn recordings_without_a_login_are_recognized() {
        let corpus =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus/2.1.326");
        let mut missing = Vec::new();
        let mut all = 0;
        for entry in fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            let results = results(&path);
            all += results.len();
            if results.iter().any(is_login_missing) {
                missing.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
        }
        missing.sort();
        assert!(all > 50, "{all}");
        assert_eq!(missing, ["api_error_401", "missing_key"]);
    }

    #[test]
    fn only_api_errors_count_as_a_missing_login() {
        for (value, expected) in [
            (json!({"is_error": true, "result": "Not logged in · Please run /login"}), true),
            (json!({"is_error": true, "errors": ["Login expired · Please run /login"]}), true),
            (json!({"is_error": true, "result": "Invalid API key · Fix external API key"}), true),
            (json!({"is_error": true, "api_error_status": 401}), true),
            (json!({"is_error": true, "api_error_type": "authentication_error"}), true),
            // The model may write the same text.
            (json!({"is_error": false, "result": "Please run /login"}), false),
            (json!({"result": "Please run /login"}), false),
            (
                json!({"is_error": true, "terminal_reason": "max_turns", "result": "Please run /login"}),
                false,
            ),
            (json!({"is_error": true, "api_error_status": 429}), false),
            (json!({"is_error": true}), false),
            (json!({}), false),
        ] {
            let mut value = value;
            value["type"] = "result".into();
            let result: ResultMessage = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(is_login_missing(&result), expected, "{value}");
        }
    }
}
