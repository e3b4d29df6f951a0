//! Why an operation was not done.

use claude_wire::control::ControlFailure;
use claude_wire::session::Rejection;

use super::{Evidence, TEXT_BYTES};
use crate::error::{Error, ErrorKind};

/// Why an operation was not done.
pub(crate) fn refusal(refusal: &Rejection, operation: &str, evidence: &Evidence) -> Error {
    let (kind, mut happened, help) = refused(refusal, operation);
    if let (Rejection::Closed(_), Some(exit)) = (refusal, evidence.exit) {
        happened = format!("{happened} (it ended with {exit})");
    }
    let masked = |text: &str| evidence.mask.apply_limited(text, TEXT_BYTES).into_owned();
    let mut message = masked(&happened);
    if let Rejection::Closed(_) = refusal {
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
            Rejection::ByCli(failure) => {
                facts.request_id.clone_from(&failure.request_id);
                facts.code = failure.error_code.as_deref().map(masked);
                facts.output = Some(masked(&failure.error));
            }
            Rejection::TimedOut { request_id, timeout } => {
                facts.request_id = Some(request_id.clone());
                facts.limit = Some(*timeout);
            }
            Rejection::ResponseTooLarge(size) => facts.size = Some(*size),
            Rejection::Closed(_) => {
                facts.exit = evidence.exit;
                facts.stderr_tail = evidence.stderr_if_any();
            }
            Rejection::UndecodableResponse(_)
            | Rejection::HandshakeQueueFull
            | Rejection::TooManyPending
            | Rejection::NotInitialized
            | Rejection::InputEnded
            | Rejection::Stopped
            | Rejection::CheckpointingNotEnabled
            | Rejection::Unencodable(_)
            | Rejection::DuplicateMessage => {}
        }
    })
}

/// The kind, what happened, and what to do if that is known.
type Told = (ErrorKind, String, Option<&'static str>);

fn refused(refusal: &Rejection, operation: &str) -> Told {
    let unsent =
        |kind, reason: &str, help| (kind, format!("`{operation}` was not sent: {reason}"), help);
    let undone = |kind, reason: &str| (kind, format!("`{operation}` was not done: {reason}"), None);
    match refusal {
        Rejection::ByCli(failure) => rejected(failure, operation),
        Rejection::TimedOut { timeout, .. } => (
            ErrorKind::ControlTimeout,
            format!("the CLI did not answer `{operation}` within {timeout:?}"),
            Some("it may have taken effect; ask for the state, or allow more time"),
        ),
        Rejection::ResponseTooLarge(size) => (
            ErrorKind::ResponseTooLarge,
            format!("the answer to `{operation}` has {size} bytes and was not kept"),
            Some("raise `Limits::max_line_bytes`"),
        ),
        Rejection::UndecodableResponse(reason) => (
            ErrorKind::UndecodableResponse,
            format!("the answer to `{operation}` could not be made out: {reason}"),
            Some("it may have taken effect; see whether there is a newer version of this crate"),
        ),
        Rejection::Closed(reason) => {
            undone(ErrorKind::TransportClosed, &format!("the CLI is gone, {reason}"))
        }
        Rejection::Unencodable(reason) => (
            ErrorKind::InvalidOptions,
            format!("`{operation}` cannot be written as JSON: {reason}"),
            None,
        ),
        Rejection::DuplicateMessage => (
            ErrorKind::InvalidOptions,
            format!("`{operation}`: this session has already sent a message with the same ID"),
            Some("give each message an ID of its own, or none"),
        ),
        Rejection::HandshakeQueueFull => unsent(
            ErrorKind::InitQueueFull,
            "too many operations wait for the handshake",
            Some("wait for `ready()`"),
        ),
        Rejection::TooManyPending => unsent(
            ErrorKind::TooManyPending,
            "too much waits to be answered or written",
            Some("wait for the answers of those before it"),
        ),
        Rejection::NotInitialized => unsent(
            ErrorKind::NotInitialized,
            "the handshake failed before",
            Some("see the error of the session"),
        ),
        Rejection::InputEnded => unsent(ErrorKind::InputEnded, "the input was ended before", None),
        Rejection::Stopped => undone(ErrorKind::SessionStopped, "the session was stopped"),
        Rejection::CheckpointingNotEnabled => unsent(
            ErrorKind::CheckpointingNotEnabled,
            "files are not checkpointed",
            Some("turn file checkpointing on in the options before the session starts"),
        ),
    }
}

/// The CLI's own answer.
fn rejected(failure: &ControlFailure, operation: &str) -> Told {
    let reason = &failure.error;
    // Old versions have no codes and only say so.
    let unknown = reason.starts_with("Unsupported control request subtype");
    match failure.error_code.as_deref() {
        code if code == Some("unsupported_request") || (code.is_none() && unknown) => (
            ErrorKind::Unsupported,
            format!("the CLI does not know `{operation}`: {reason}"),
            Some("update the CLI, or do without it"),
        ),
        Some(code) => (
            ErrorKind::ControlRejected,
            format!("the CLI refused `{operation}` ({code}): {reason}"),
            None,
        ),
        None => {
            (ErrorKind::ControlRejected, format!("the CLI refused `{operation}`: {reason}"), None)
        }
    }
}
