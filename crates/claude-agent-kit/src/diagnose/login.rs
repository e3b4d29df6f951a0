//! A missing login is told as a result.

use claude_wire::message::{ResultMessage, TerminalReason};

/// Whether a turn failed because the CLI has no login, or one that is not accepted: no key, a
/// wrong key, a login that ended.
///
/// The CLI does not fail then: it answers the turn with a result that is an error.
pub(super) fn login_missing(result: &ResultMessage) -> bool {
    if !result.is_error() {
        return false;
    }
    let status = result.api_error_status.as_ref().and_then(claude_wire::Number::as_u64);
    if status == Some(401) || result.api_error_type.as_deref() == Some("authentication_error") {
        return true;
    }
    // Without any login the API is not asked, and only the text tells. An older CLI does not say
    // what ended the turn.
    let by_api = result.terminal_reason.as_ref().is_none_or(|why| *why == TerminalReason::ApiError);
    by_api && result.result.iter().chain(result.errors.iter()).any(|text| tells_of_login(text))
}

/// Whether the CLI says in a result or on stderr that its login is missing or not accepted.
pub(super) fn tells_of_login(text: &str) -> bool {
    ["Not logged in", "Please run /login", "Invalid API key"].iter().any(|part| text.contains(part))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    /// The results of a recorded conversation.
    fn results(recording: &Path) -> Vec<ResultMessage> {
        let text = fs::read_to_string(recording).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("<< ")?.split_once(' '));
        let values = lines.filter_map(|(_, line)| serde_json::from_str::<Value>(line).ok());
        let results = values.filter(|value| value["type"] == "result");
        results.map(|value| serde_json::from_value(value).unwrap()).collect()
    }

    #[test]
    fn of_all_recordings_those_without_a_login_are_recognised() {
        let corpus =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus/2.1.325");
        let mut missing = Vec::new();
        let mut all = 0;
        for entry in fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            let results = results(&path);
            all += results.len();
            if results.iter().any(login_missing) {
                missing.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            }
        }
        missing.sort();
        assert!(all > 50, "{all}");
        assert_eq!(missing, ["api_error_401", "missing_key"]);
    }

    #[test]
    fn only_an_error_of_the_api_is_a_missing_login() {
        for (value, expected) in [
            (json!({"is_error": true, "result": "Not logged in · Please run /login"}), true),
            (json!({"is_error": true, "errors": ["Login expired · Please run /login"]}), true),
            (json!({"is_error": true, "result": "Invalid API key · Fix external API key"}), true),
            (json!({"is_error": true, "api_error_status": 401}), true),
            (json!({"is_error": true, "api_error_type": "authentication_error"}), true),
            // The model may speak of it.
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
            assert_eq!(login_missing(&result), expected, "{value}");
        }
    }
}
