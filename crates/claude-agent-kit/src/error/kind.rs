//! The kinds of errors.

use std::fmt;

use serde::{Serialize, Serializer};

/// What can help after an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovery {
    /// To call again.
    Retry,
    /// To continue the conversation in another run.
    Resume,
}

/// Declares the kinds, each with what can help.
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
            pub(super) const ALL: &[Self] = &[$( Self::$kind ),+];

            /// Returns the name of the kind in snake case, such as `rate_limited`. Errors serialise with
            /// it; it does not change.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$kind => $name, )+
                }
            }

            /// What can help.
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
    /// The executable of the CLI was not found, or is not one.
    CliNotFound = "cli_not_found" [],
    /// The CLI is older than what is asked of it.
    UnsupportedCliVersion = "unsupported_cli_version" [],
    /// What the CLI says for `--version` holds no version.
    UnknownCliVersion = "unknown_cli_version" [],
    /// The CLI could not be asked for its version.
    VersionDetection = "version_detection" [Retry],
    /// Options contradict each other or cannot be passed on.
    InvalidOptions = "invalid_options" [],
    /// There is no Tokio runtime to work on.
    NoRuntime = "no_runtime" [],
    /// The run group of the options was shut down.
    GroupClosed = "group_closed" [],
    /// The process could not be started.
    SpawnFailed = "spawn_failed" [Retry],
    /// The CLI did not answer the handshake in time.
    InitializeTimeout = "initialize_timeout" [Retry],
    /// The CLI refused the handshake.
    InitializeRejected = "initialize_rejected" [],
    /// The process ended before the handshake did.
    ExitedDuringInit = "exited_during_init" [],
    /// The conversation to go on with is not there.
    ConversationNotFound = "conversation_not_found" [],
    /// The process ended before its result, or in the middle of a session.
    ProcessFailed = "process_failed" [Retry Resume],
    /// The process ended with a failure although its result was none, and that counts as an error
    /// (`strict_exit_status`).
    NonZeroExit = "non_zero_exit" [],
    /// The CLI was silent for longer than `Timeouts::idle` allows.
    IdleTimeout = "idle_timeout" [Retry Resume],
    /// The CLI wrote a line longer than `Limits::max_line_bytes`.
    LineTooLong = "line_too_long" [Resume],
    /// The CLI does not read stdin, and too many responses wait to be written to it.
    StdinNotRead = "stdin_not_read" [Retry Resume],
    /// The CLI wrote several lines in a row that are not of the protocol.
    TooManyDecodeErrors = "too_many_decode_errors" [Resume],
    /// The runtime that the run lived on is gone.
    RuntimeGone = "runtime_gone" [Resume],
    /// Messages were not read for so long that they had to be dropped.
    Lagged = "lagged" [],
    /// The CLI refused an operation.
    ControlRejected = "control_rejected" [],
    /// The CLI did not answer an operation in time; it may have taken effect.
    ControlTimeout = "control_timeout" [],
    /// The CLI does not know an operation.
    Unsupported = "unsupported" [],
    /// The process or its pipe is gone.
    TransportClosed = "transport_closed" [Resume],
    /// The session was stopped.
    SessionStopped = "session_stopped" [],
    /// The input of the session was ended.
    InputEnded = "input_ended" [],
    /// The handshake failed before the operation was sent.
    NotInitialized = "not_initialized" [],
    /// Too many operations wait for the handshake.
    InitQueueFull = "init_queue_full" [Retry],
    /// Too many operations wait for their answers, or too much waits to be written.
    TooManyPending = "too_many_pending" [Retry],
    /// The answer to an operation was longer than `Limits::max_line_bytes`.
    ResponseTooLarge = "response_too_large" [],
    /// The answer to an operation could not be made out.
    UndecodableResponse = "undecodable_response" [],
    /// Files cannot be put back because they are not checkpointed.
    CheckpointingNotEnabled = "checkpointing_not_enabled" [],
    /// The CLI dropped a message before it became a turn.
    TurnCancelled = "turn_cancelled" [Retry],
    /// The CLI completed a message without a result.
    NoResult = "no_result" [],
    /// An MCP server that was waited for cannot be connected.
    McpServerFailed = "mcp_server_failed" [],
    /// An MCP server that was waited for is not connected yet.
    McpTimeout = "mcp_timeout" [Retry],
    /// The CLI has no login, or the API does not accept it.
    LoginMissing = "login_missing" [],
    /// The API's rate limit, or a usage limit of the account, was reached.
    RateLimited = "rate_limited" [Retry Resume],
    /// The API is overloaded.
    Overloaded = "overloaded" [Retry Resume],
    /// The API does not offer the model, or not to this account.
    ModelNotFound = "model_not_found" [],
    /// The API failed or refused the request for another reason.
    ApiError = "api_error" [Retry Resume],
    /// The turn needed more responses of the model than `max_turns` allows.
    MaxTurns = "max_turns" [Resume],
    /// The run cost more than `max_budget_usd` allows.
    BudgetExceeded = "budget_exceeded" [Resume],
    /// The prompt, or the conversation with it, does not fit into the model's context.
    PromptTooLong = "prompt_too_long" [],
    /// The model refused to answer.
    Refused = "refused" [],
    /// The turn was interrupted.
    Interrupted = "interrupted" [Resume],
    /// The turn failed for a reason that has no kind of its own.
    TurnFailed = "turn_failed" [],
    /// A permission request was answered before.
    RequestAnswered = "request_answered" [],
    /// A permission request was withdrawn before it was answered.
    RequestWithdrawn = "request_withdrawn" [],
    /// No permission request with this ID is pending.
    RequestUnknown = "request_unknown" [],
    /// An answer was to be of a type, and the result has no value.
    NoStructuredOutput = "no_structured_output" [Retry],
    /// An answer was to be of a type, and its value does not fit.
    StructuredOutputMismatch = "structured_output_mismatch" [Retry],
    /// A file of the [history](crate::history) cannot be read or written.
    HistoryIo = "history_io" [Retry],
    /// A change of the [history](crate::history) is not possible: a title or tag is blank, or there is
    /// nothing to fork.
    InvalidHistoryChange = "invalid_history_change" [],
    /// A session cannot be deleted because a CLI is using it.
    SessionLive = "session_live" [Retry],
}
