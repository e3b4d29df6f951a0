//! The kinds of errors.

use std::fmt;

use serde::{Serialize, Serializer};

/// What may help after an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Calling again.
    Retry,
    /// Resuming the conversation in another run.
    Resume,
}

/// Declares the kinds, each with its recovery.
macro_rules! error_kinds {
    ($( $(#[$meta:meta])* $kind:ident = $name:literal [$($recovery:ident)*], )+) => {
        /// The kinds of errors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $( $(#[$meta])* $kind, )+
        }

        impl ErrorKind {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$( Self::$kind ),+];

            /// Returns the name of the kind in snake case, such as `rate_limited`. Errors serialize with
            /// it; the name does not change.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$kind => $name, )+
                }
            }

            /// Returns what may help.
            pub(super) fn recovery(self) -> &'static [Recovery] {
                match self {
                    $( Self::$kind => &[$( Recovery::$recovery ),*], )+
                }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for ErrorKind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

error_kinds! {
    /// The executable of the CLI was not found, or is not executable.
    CliNotFound = "cli_not_found" [],
    /// The CLI is too old for this SDK, or for one of the options.
    UnsupportedCliVersion = "unsupported_cli_version" [],
    /// The output of `--version` contains no version.
    UnknownCliVersion = "unknown_cli_version" [],
    /// `--version` failed or timed out.
    VersionDetection = "version_detection" [Retry],
    /// Options are invalid or contradict each other.
    InvalidOptions = "invalid_options" [],
    /// No Tokio runtime is active on this thread.
    NoRuntime = "no_runtime" [],
    /// The run group of the options was shut down.
    GroupClosed = "group_closed" [],
    /// The process could not be started.
    SpawnFailed = "spawn_failed" [Retry],
    /// The CLI did not complete the handshake in time.
    InitializeTimeout = "initialize_timeout" [Retry],
    /// The CLI rejected the handshake.
    InitializeRejected = "initialize_rejected" [],
    /// The process exited before completing the handshake.
    ExitedDuringInit = "exited_during_init" [],
    /// The conversation to resume was not found.
    ConversationNotFound = "conversation_not_found" [],
    /// The process exited before its result, or during a session.
    ProcessFailed = "process_failed" [Retry Resume],
    /// The process failed after a successful result, which `strict_exit_status` makes an error.
    NonZeroExit = "non_zero_exit" [],
    /// The CLI sent nothing for longer than `Timeouts::idle`.
    IdleTimeout = "idle_timeout" [Retry Resume],
    /// The CLI wrote a line longer than `Limits::max_line_bytes`.
    LineTooLong = "line_too_long" [Resume],
    /// The CLI does not read stdin, and too many responses could not be written.
    StdinNotRead = "stdin_not_read" [Retry Resume],
    /// The CLI wrote several lines in a row that are not messages.
    TooManyDecodeErrors = "too_many_decode_errors" [Resume],
    /// The Tokio runtime was shut down while the session was running.
    RuntimeGone = "runtime_gone" [Resume],
    /// The reader lagged, and unread messages were discarded.
    Lagged = "lagged" [],
    /// The CLI rejected an operation.
    ControlRejected = "control_rejected" [],
    /// The CLI did not respond to an operation in time; it may have taken effect.
    ControlTimeout = "control_timeout" [],
    /// The CLI does not support an operation.
    Unsupported = "unsupported" [],
    /// The process exited, or its stdin or stdout was closed.
    TransportClosed = "transport_closed" [Resume],
    /// The session was stopped.
    SessionStopped = "session_stopped" [],
    /// The input of the session was ended.
    InputEnded = "input_ended" [],
    /// The handshake failed before the operation was sent.
    NotInitialized = "not_initialized" [],
    /// Too many operations are waiting for the handshake.
    InitQueueFull = "init_queue_full" [Retry],
    /// Too many operations are in flight, or the write buffer is full.
    TooManyPending = "too_many_pending" [Retry],
    /// The response to an operation was longer than `Limits::max_line_bytes`.
    ResponseTooLarge = "response_too_large" [],
    /// The response to an operation, or a result, could not be decoded.
    UndecodableResponse = "undecodable_response" [],
    /// Files cannot be restored because file checkpointing is not enabled.
    CheckpointingNotEnabled = "checkpointing_not_enabled" [],
    /// The CLI discarded a message before its turn began.
    TurnCancelled = "turn_cancelled" [Retry],
    /// The CLI completed a message without a result.
    NoResult = "no_result" [],
    /// An MCP server failed to connect.
    McpServerFailed = "mcp_server_failed" [],
    /// An MCP server did not connect in time.
    McpTimeout = "mcp_timeout" [Retry],
    /// The CLI is not logged in, or its credentials were rejected.
    LoginMissing = "login_missing" [],
    /// The API's rate limit, or a usage limit of the account, was reached.
    RateLimited = "rate_limited" [Retry Resume],
    /// The API is overloaded.
    Overloaded = "overloaded" [Retry Resume],
    /// The model was not found, or is not available to this account.
    ModelNotFound = "model_not_found" [],
    /// The request to the API failed for another reason.
    ApiError = "api_error" [Retry Resume],
    /// The turn needed more responses of the model than `max_turns` allows.
    MaxTurns = "max_turns" [Resume],
    /// The run cost more than `max_budget_usd` allows.
    BudgetExceeded = "budget_exceeded" [Resume],
    /// The conversation exceeds the context window of the model.
    PromptTooLong = "prompt_too_long" [],
    /// The model refused to answer.
    Refused = "refused" [],
    /// The turn was interrupted.
    Interrupted = "interrupted" [Resume],
    /// The turn failed for a reason that has no kind of its own.
    TurnFailed = "turn_failed" [],
    /// A permission request was answered before, or was withdrawn.
    RequestClosed = "request_closed" [],
    /// No permission request with this ID is pending.
    RequestUnknown = "request_unknown" [],
    /// A typed answer was requested, and the result contains no structured output.
    NoStructuredOutput = "no_structured_output" [Retry],
    /// A typed answer was requested, and the structured output does not match the type.
    StructuredOutputMismatch = "structured_output_mismatch" [Retry],
    /// A file of the [history](crate::history) cannot be read or written.
    HistoryIo = "history_io" [Retry],
    /// A change of the [history](crate::history) is not possible: a title or tag is blank, or there is
    /// nothing to fork.
    InvalidHistoryChange = "invalid_history_change" [],
    /// Another host has claimed the session in its [store](crate::store), so this run was stopped.
    Superseded = "superseded" [Resume],
    /// The [store](crate::store) of a session failed, and a call needs it or the options stop the run then.
    StoreFailed = "store_failed" [Resume],
    /// A session cannot be deleted, or resumed from a [store](crate::store), because a CLI on this machine is
    /// using it.
    SessionLive = "session_live" [Retry],
}
