//! Errors of operations.

use claude_agent_core::session::Rejection;
use claude_wire::control::ControlFailure;

use super::{Evidence, TEXT_BYTES, describe_exit};
use crate::error::{Error, ErrorKind};

/// Returns the error of an operation that the session or the CLI did not perform.
pub(crate) fn rejection(rejection: &Rejection, operation: &str, evidence: &Evidence) -> Error {
    let (kind, mut summary, help) = summarize(rejection, method_of(operation));
    if let (Rejection::Closed(_), Some(exit)) = (rejection, evidence.exit) {
        summary = format!("{summary} (the CLI {})", describe_exit(exit));
    }
    let masked = |text: &str| evidence.mask.apply_limited(text, TEXT_BYTES).into_owned();
    let mut message = masked(&summary);
    if let Rejection::Closed(_) = rejection {
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
        match rejection {
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

/// Returns the method that sends an operation; the name of the operation if the method has the same one, or if
/// `Session::request` sends it.
pub(crate) fn method_of(operation: &str) -> &str {
    match operation {
        "cancel_async_message" => "Session::cancel_message",
        "get_context_usage" => "Session::context_usage",
        "mcp_call" => "McpHandle::call",
        "mcp_reconnect" => "McpHandle::reconnect",
        "mcp_set_servers" => "McpHandle::set_servers",
        "mcp_status" => "McpHandle::status",
        "mcp_toggle" => "McpHandle::enable/disable",
        "rename_session" => "Session::rename",
        operation => operation,
    }
}

/// The kind, a description of what happened, and the help if there is one.
type Summary = (ErrorKind, String, Option<&'static str>);

#[expect(clippy::too_many_lines, reason = "one arm for each rejection")]
fn summarize(rejection: &Rejection, operation: &str) -> Summary {
    let not_sent = |reason: &str| format!("`{operation}` was not sent: {reason}");
    match rejection {
        Rejection::ByCli(failure) => rejected(failure, operation),
        Rejection::TimedOut { timeout, .. } => (
            ErrorKind::ControlTimeout,
            format!("the CLI did not respond to `{operation}` within {timeout:?}"),
            Some("check whether the operation took effect, or increase the timeout"),
        ),
        Rejection::ResponseTooLarge(size) => (
            ErrorKind::ResponseTooLarge,
            format!(
                "the response to `{operation}` was discarded: its {size} bytes exceed \
                 `Limits::max_line_bytes`"
            ),
            Some("increase the limit"),
        ),
        Rejection::UndecodableResponse(reason) => (
            ErrorKind::UndecodableResponse,
            format!("failed to decode the response to `{operation}`: {reason}"),
            Some("check whether the operation took effect, and for a newer version of this crate"),
        ),
        Rejection::Closed(reason) => (
            ErrorKind::TransportClosed,
            format!("`{operation}` failed: the connection to the CLI is closed: {reason}"),
            None,
        ),
        Rejection::Unencodable(reason) => (
            ErrorKind::InvalidOptions,
            format!("failed to encode `{operation}` as JSON: {reason}"),
            None,
        ),
        Rejection::DuplicateMessage => (
            ErrorKind::InvalidOptions,
            format!("`{operation}`: this session has already sent a message with the same ID"),
            Some("give each message its own ID, or omit the ID"),
        ),
        Rejection::Stopped => (
            ErrorKind::SessionStopped,
            format!("`{operation}` failed: the session was stopped"),
            Some("start a new session"),
        ),
        Rejection::HandshakeQueueFull => (
            ErrorKind::InitQueueFull,
            not_sent("too many operations are waiting for the handshake"),
            Some("wait for `ready()` first"),
        ),
        Rejection::InputEnded => (
            ErrorKind::InputEnded,
            not_sent("the input of the session was ended"),
            Some("start a new session"),
        ),
        Rejection::NotInitialized => (
            ErrorKind::NotInitialized,
            not_sent("the handshake failed"),
            Some("check the error that `ready()` returns"),
        ),
        Rejection::CheckpointingNotEnabled => (
            ErrorKind::CheckpointingNotEnabled,
            not_sent("file checkpointing is not enabled"),
            Some("set `file_checkpointing(true)` before the session starts"),
        ),
        Rejection::TooManyPending => (
            ErrorKind::TooManyPending,
            not_sent("too many requests are in flight, or the write buffer is full"),
            Some("wait for earlier operations first"),
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
