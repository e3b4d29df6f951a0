//! Errors of turns, from their results.

use std::time::Duration;

use claude_wire::message::{
    ResultMessage, ResultSubtype, StopReason, SystemMessage, TerminalReason,
};
use claude_wire::{Body, Number};

use super::diagnosis::{NO_CONVERSATION, NO_MESSAGE};
use super::login::is_login_missing;
use super::{TEXT_BYTES, shortened};
use crate::error::{Error, ErrorKind};
use crate::mask::Mask;

/// Returns the error of a turn that failed; `None` if it succeeded.
///
/// `retry_delay` is the delay before the last retry of the CLI.
pub(crate) fn turn_failure(
    result: &ResultMessage,
    mask: &Mask,
    retry_delay: Option<Duration>,
) -> Option<Error> {
    if !result.is_error() {
        return None;
    }
    let reason = reason(result, mask);
    let kind = kind(result, &reason);
    let status = status(result);
    let summary = match status {
        Some(status) if kind == ErrorKind::ApiError => {
            format!("{} (status {status})", summary(kind))
        }
        _ => summary(kind).to_owned(),
    };
    // The CLI's errors after an interrupt are internal diagnostics.
    let message = match kind {
        ErrorKind::Interrupted => summary,
        ErrorKind::TurnFailed if reason.is_empty() => format!("{summary}: {}", unexplained(result)),
        _ if reason.is_empty() => summary,
        _ => format!("{summary}: {}", shortened(&reason)),
    };
    let retry_after = retry_delay.filter(|_| is_temporary(kind));
    let error = Error::new(kind, message).with(|facts| {
        facts.session_id.clone_from(&result.session_id);
        facts.output = Some(reason).filter(|reason| !reason.is_empty());
        let code = result.api_error_type.as_deref();
        facts.code = code.map(|code| mask.apply_limited(code, TEXT_BYTES).into_owned());
        facts.api_status = status;
        facts.retry_after = retry_after;
    });
    Some(match help(kind, status, retry_after, result) {
        Some(help) => error.with_help(help),
        None => error,
    })
}

/// Describes a result that names no reason.
fn unexplained(result: &ResultMessage) -> String {
    match &result.subtype {
        Some(subtype) if *subtype != ResultSubtype::Success => {
            format!("the CLI reported `{}` without a reason", subtype.as_str())
        }
        _ => "the CLI reported an error without a reason".to_owned(),
    }
}

/// Returns the delay before the next retry, if the message announces one.
pub(crate) fn retry_delay(body: &Body) -> Option<Duration> {
    let Body::System(SystemMessage::ApiRetry(retry)) = body else { return None };
    retry.retry_delay_ms.as_ref().and_then(Number::as_u64).map(Duration::from_millis)
}

/// Returns the reason that the CLI gives: the text of the result if the API failed, otherwise its
/// errors.
fn reason(result: &ResultMessage, mask: &Mask) -> String {
    let text = result.result.as_deref().filter(|text| !text.is_empty());
    let reason = text.map_or_else(|| result.errors.as_slice().join("; "), str::to_owned);
    mask.apply_limited(&reason, TEXT_BYTES).into_owned()
}

fn status(result: &ResultMessage) -> Option<u16> {
    let status = result.api_error_status.as_ref().and_then(Number::as_u64)?;
    u16::try_from(status).ok()
}

/// Classifies the failure. Older CLIs send neither `api_error_type` nor `terminal_reason`.
fn kind(result: &ResultMessage, reason: &str) -> ErrorKind {
    if is_login_missing(result) {
        return ErrorKind::LoginMissing;
    }
    if [NO_CONVERSATION, NO_MESSAGE].iter().any(|text| reason.contains(text)) {
        return ErrorKind::ConversationNotFound;
    }
    match result.subtype {
        Some(ResultSubtype::ErrorMaxTurns) => return ErrorKind::MaxTurns,
        Some(ResultSubtype::ErrorMaxBudgetUsd) => return ErrorKind::BudgetExceeded,
        Some(ResultSubtype::ErrorMaxStructuredOutputRetries) => {
            return ErrorKind::NoStructuredOutput;
        }
        _ => {}
    }
    if result.stop_reason == Some(StopReason::Refusal) {
        return ErrorKind::Refused;
    }
    // The API refuses a prompt that is too long with status 400.
    if result.terminal_reason == Some(TerminalReason::PromptTooLong) {
        return ErrorKind::PromptTooLong;
    }
    match (status(result), result.api_error_type.as_deref()) {
        (Some(429), _) | (_, Some("rate_limit_error")) => return ErrorKind::RateLimited,
        (Some(529), _) | (_, Some("overloaded_error")) => return ErrorKind::Overloaded,
        (Some(404), _) | (_, Some("not_found_error")) => return ErrorKind::ModelNotFound,
        (Some(_), _) | (_, Some(_)) => return ErrorKind::ApiError,
        (None, None) => {}
    }
    match result.terminal_reason {
        Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools) => {
            ErrorKind::Interrupted
        }
        Some(TerminalReason::BlockingLimit | TerminalReason::RapidRefillBreaker) => {
            ErrorKind::PromptTooLong
        }
        Some(TerminalReason::ApiError) => ErrorKind::ApiError,
        _ => ErrorKind::TurnFailed,
    }
}

fn is_temporary(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::ApiError)
}

fn summary(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::LoginMissing => "the CLI is not logged in, or its credentials were rejected",
        ErrorKind::ConversationNotFound => "the conversation to resume was not found",
        ErrorKind::MaxTurns => "the turn reached `max_turns`",
        ErrorKind::BudgetExceeded => "the run reached `max_budget_usd`",
        ErrorKind::NoStructuredOutput => "the model returned no output that matches the schema",
        ErrorKind::Refused => "the model refused to answer",
        ErrorKind::RateLimited => "the rate limit of the API was reached",
        ErrorKind::Overloaded => "the API is overloaded",
        ErrorKind::ModelNotFound => "the model was not found, or is not available to this account",
        ErrorKind::ApiError => "the request to the API failed",
        ErrorKind::PromptTooLong => "the conversation exceeds the context window of the model",
        ErrorKind::Interrupted => "the turn was interrupted",
        _ => "the turn failed",
    }
}

fn help(
    kind: ErrorKind,
    status: Option<u16>,
    retry_after: Option<Duration>,
    result: &ResultMessage,
) -> Option<String> {
    let retry = match retry_after {
        Some(delay) => format!("try again in {delay:?} (`Error::retry_after`)"),
        None => "try again later".to_owned(),
    };
    let help = match kind {
        ErrorKind::RateLimited => return Some(retry),
        ErrorKind::Overloaded => return Some(format!("{retry}, or set `fallback_model`")),
        ErrorKind::ApiError if status.is_none_or(|status| status >= 500 || status == 408) => {
            return Some(format!(
                "{retry}; if the error persists, check https://status.claude.com"
            ));
        }
        ErrorKind::ApiError => "correct what the API rejected: the options, or the prompt",
        ErrorKind::TurnFailed => {
            let help = "inspect the result of the turn";
            return Some(match &result.session_id {
                Some(id) => format!("{help}, or resume session {id}"),
                None => help.to_owned(),
            });
        }
        ErrorKind::LoginMissing => {
            "set `ANTHROPIC_API_KEY`, or run `claude` in a terminal and log in"
        }
        ErrorKind::ConversationNotFound => {
            "resume it with the config directory of its first run (`CLAUDE_CONFIG_DIR`, or the home directory)"
        }
        ErrorKind::MaxTurns => "increase `max_turns`, or resume the conversation",
        ErrorKind::BudgetExceeded => "increase `max_budget_usd`, or resume the conversation",
        ErrorKind::ModelNotFound => "check the option `model`",
        ErrorKind::NoStructuredOutput => "simplify the schema, or try again",
        ErrorKind::PromptTooLong => "shorten the prompt, or send `/compact` first",
        _ => return None,
    };
    Some(help.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    fn failure(mut value: Value) -> Option<Error> {
        value["type"] = "result".into();
        let result: ResultMessage = serde_json::from_value(value).unwrap();
        turn_failure(&result, &Mask::default(), Some(Duration::from_secs(3)))
    }

    /// Returns the failures in all recordings of the real CLI, by recording.
    fn recorded() -> BTreeMap<String, Error> {
        let corpus =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus/2.1.326");
        let mut failures = BTreeMap::new();
        for entry in fs::read_dir(corpus).unwrap() {
            let path = entry.unwrap().path();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            let lines = text.lines().filter_map(|line| line.strip_prefix("<< ")?.split_once(' '));
            for (_, line) in lines {
                let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
                if value["type"] == "result"
                    && let Some(error) = failure(value)
                {
                    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                    failures.insert(name, error);
                }
            }
        }
        failures
    }

    #[test]
    fn every_recorded_failure_has_its_kind_and_reason() {
        let recorded = recorded();
        for (name, kind, text) in [
            (
                "api_error_400",
                ErrorKind::ApiError,
                "(status 400): API Error: 400 that is not right",
            ),
            ("api_error_401", ErrorKind::LoginMissing, "Invalid API key"),
            ("api_error_500", ErrorKind::ApiError, "(status 500): API Error: 500 it broke"),
            ("api_error_529", ErrorKind::Overloaded, "529 Overloaded"),
            ("answer_too_long", ErrorKind::ApiError, "output token maximum"),
            ("interrupt_streaming", ErrorKind::Interrupted, "the turn was interrupted"),
            ("interrupt_tool", ErrorKind::Interrupted, "the turn was interrupted"),
            ("max_budget", ErrorKind::BudgetExceeded, "Reached maximum budget ($0.01)"),
            ("max_turns", ErrorKind::MaxTurns, "Reached maximum number of turns (1)"),
            ("missing_key", ErrorKind::LoginMissing, "Not logged in"),
            ("prompt_too_long", ErrorKind::PromptTooLong, "Prompt is too long"),
            ("refusal", ErrorKind::Refused, "safeguards flagged this message"),
            ("resume_missing", ErrorKind::ConversationNotFound, "No conversation found"),
        ] {
            let error = &recorded[name];
            assert_eq!(error.kind(), kind, "{name}: {error}");
            assert!(error.to_string().contains(text), "{name}: {error}");
            assert!(error.session_id().is_some(), "{name}");
        }
        let unexplained =
            recorded.iter().filter(|(_, error)| error.kind() == ErrorKind::TurnFailed);
        assert_eq!(unexplained.map(|(name, _)| name).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn results_of_older_clis_are_classified() {
        for (value, kind) in [
            (json!({"api_error_status": 429}), ErrorKind::RateLimited),
            (json!({"api_error_type": "rate_limit_error"}), ErrorKind::RateLimited),
            (json!({"terminal_reason": "blocking_limit"}), ErrorKind::PromptTooLong),
            (json!({"terminal_reason": "prompt_too_long"}), ErrorKind::PromptTooLong),
            (
                json!({"terminal_reason": "prompt_too_long", "api_error_status": 400}),
                ErrorKind::PromptTooLong,
            ),
            (json!({"api_error_status": 529}), ErrorKind::Overloaded),
            (json!({"api_error_status": 404}), ErrorKind::ModelNotFound),
            (json!({"api_error_status": 503}), ErrorKind::ApiError),
            (json!({"subtype": "error_max_turns"}), ErrorKind::MaxTurns),
            (json!({"subtype": "error_max_budget_usd"}), ErrorKind::BudgetExceeded),
            (
                json!({"subtype": "error_max_structured_output_retries"}),
                ErrorKind::NoStructuredOutput,
            ),
            (json!({"subtype": "error_during_execution"}), ErrorKind::TurnFailed),
            (json!({}), ErrorKind::TurnFailed),
        ] {
            let mut result = value.clone();
            result["is_error"] = true.into();
            assert_eq!(failure(result).unwrap().kind(), kind, "{value}");
            assert!(failure(value).is_none(), "only an error result is a failure");
        }
    }

    #[test]
    fn only_temporary_failures_have_a_retry_delay() {
        let after = |value| failure(value).unwrap().retry_after();
        let seconds = Some(Duration::from_secs(3));
        assert_eq!(after(json!({"is_error": true, "api_error_status": 429})), seconds);
        assert_eq!(after(json!({"is_error": true, "api_error_status": 401})), None);
    }

    #[test]
    fn secrets_in_the_reason_are_masked() {
        let key = format!("sk-ant-api03-{}", "a".repeat(40));
        let error = failure(json!({"is_error": true, "result": format!("bad key {key}")})).unwrap();
        assert!(!error.to_string().contains(&key), "{error}");
        assert!(!error.output().unwrap().contains(&key));
    }
}
