//! Errors of operations.

use claude_wire::control::ControlFailure;
use claude_wire::session::Refusal;

use super::{Evidence, TEXT_BYTES, describe_exit};
use crate::error::{Error, ErrorKind};

/// Returns the error of an operation that the session or the CLI did not perform.
pub(crate) fn refusal(refusal: &Refusal, operation: &str, evidence: &Evidence) -> Error {
    let (kind, mut summary, help) = summarize(refusal, operation);
    if let (Refusal::Closed(_), Some(exit)) = (refusal, evidence.exit) {
        summary = format!("{summary} (the CLI {})", describe_exit(exit));
    }
    let masked = |text: &str| evidence.mask.apply_limited(text, TEXT_BYTES).into_owned();
    let mut message = masked(&summary);
    if let Refusal::Closed(_) = refusal {
        message.push_str(&evidence.quoted());
    }
    let mut error = Error::new(kind, message);
    if let Some(help) = help {
        error = error.with_help(help);
    }
    error.with(|facts| {
        facts.operation = Some(operation.to_owned());
        facts.session_id.clone_from(&evidence.session_id);
        facts.detected = evidence.cli_version;
        match refusal {
            Refusal::Rejected(failure) => {
                facts.request_id.clone_from(&failure.request_id);
                facts.code = failure.error_code.as_deref().map(masked);
                facts.output = Some(masked(&failure.error));
            }
            Refusal::TimedOut { request_id, limit } => {
                facts.request_id = Some(request_id.clone());
                facts.limit = Some(*limit);
            }
            Refusal::ResponseTooLarge(size) => facts.size = Some(*size),
            Refusal::Closed(_) => {
                facts.exit = evidence.exit;
                facts.stderr_tail = evidence.stderr_if_any();
            }
            Refusal::UndecodableResponse(_)
            | Refusal::InitQueueFull
            | Refusal::TooManyPending
            | Refusal::NotInitialized
            | Refusal::InputEnded
            | Refusal::Stopped
            | Refusal::CheckpointingNotEnabled
            | Refusal::Unencodable(_)
            | Refusal::DuplicateMessage => {}
        }
    })
}

/// The kind, a description of what happened, and the help if there is one.
type Summary = (ErrorKind, String, Option<&'static str>);

fn summarize(refusal: &Refusal, operation: &str) -> Summary {
    let not_sent = |kind, reason: &str, help| {
        (kind, format!("`{operation}` was not sent: {reason}"), Some(help))
    };
    match refusal {
        Refusal::Rejected(failure) => rejected(failure, operation),
        Refusal::TimedOut { limit, .. } => (
            ErrorKind::ControlTimeout,
            format!("the CLI did not respond to `{operation}` within {limit:?}"),
            Some("the operation may have taken effect: check the state, or increase the timeout"),
        ),
        Refusal::ResponseTooLarge(size) => (
            ErrorKind::ResponseTooLarge,
            format!("the response to `{operation}` was discarded: it has {size} bytes"),
            Some("increase `Limits::max_line_bytes`"),
        ),
        Refusal::UndecodableResponse(reason) => (
            ErrorKind::UndecodableResponse,
            format!("failed to decode the response to `{operation}`: {reason}"),
            Some("the operation may have taken effect; check for a newer version of this crate"),
        ),
        Refusal::Closed(reason) => (
            ErrorKind::TransportClosed,
            format!("`{operation}` failed: the connection to the CLI is closed: {reason}"),
            None,
        ),
        Refusal::Unencodable(reason) => (
            ErrorKind::InvalidOptions,
            format!("failed to encode `{operation}` as JSON: {reason}"),
            None,
        ),
        Refusal::DuplicateMessage => (
            ErrorKind::InvalidOptions,
            format!("`{operation}`: this session has already sent a message with the same ID"),
            Some("give each message its own ID, or omit the ID"),
        ),
        Refusal::InitQueueFull => not_sent(
            ErrorKind::InitQueueFull,
            "too many operations are waiting for the handshake",
            "wait for `ready()` first",
        ),
        Refusal::TooManyPending => not_sent(
            ErrorKind::TooManyPending,
            "too many requests are in flight, or the write buffer is full",
            "wait for earlier operations first",
        ),
        Refusal::NotInitialized => not_sent(
            ErrorKind::NotInitialized,
            "the handshake failed",
            "check the error that `ready()` returns",
        ),
        Refusal::InputEnded => not_sent(
            ErrorKind::InputEnded,
            "the input of the session was ended",
            "start a new session",
        ),
        Refusal::Stopped => (
            ErrorKind::SessionStopped,
            format!("`{operation}` failed: the session was stopped"),
            Some("start a new session"),
        ),
        Refusal::CheckpointingNotEnabled => not_sent(
            ErrorKind::CheckpointingNotEnabled,
            "file checkpointing is not enabled",
            "set `file_checkpointing(true)` before the session starts",
        ),
    }
}

/// Returns the error of an operation that the CLI rejected.
fn rejected(failure: &ControlFailure, operation: &str) -> Summary {
    let reason = &failure.error;
    // Older CLIs send no error code.
    let is_unknown = reason.starts_with("Unsupported control request subtype");
    match failure.error_code.as_deref() {
        code if code == Some("unsupported_request") || (code.is_none() && is_unknown) => (
            ErrorKind::Unsupported,
            format!("the CLI does not support `{operation}`: {reason}"),
            Some("update the CLI, or do not use this operation"),
        ),
        Some(code) => (
            ErrorKind::ControlRejected,
            format!("the CLI rejected `{operation}` ({code}): {reason}"),
            None,
        ),
        None => {
            (ErrorKind::ControlRejected, format!("the CLI rejected `{operation}`: {reason}"), None)
        }
    }
}
