//! The kinds of errors.

/// What can help after an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Help {
    /// To call again.
    Retry,
    /// To continue the conversation in another run.
    Resume,
}

/// Declares the kinds, each with what can help.
macro_rules! error_kinds {
    ($( $(#[$meta:meta])* $kind:ident [$($help:ident)*], )+) => {
        /// The kinds of errors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $( $(#[$meta])* $kind, )+
        }

        impl ErrorKind {
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$( Self::$kind ),+];

            /// What can help.
            pub(super) fn help(self) -> &'static [Help] {
                match self {
                    $( Self::$kind => &[$( Help::$help ),*], )+
                }
            }
        }
    };
}

error_kinds! {
    /// The executable of the CLI was not found, or is not one.
    CliNotFound [],
    /// The CLI is older than what is asked of it.
    UnsupportedCliVersion [],
    /// What the CLI says for `--version` holds no version.
    UnknownCliVersion [],
    /// The CLI could not be asked for its version.
    VersionDetection [Retry],
    /// Options contradict each other or cannot be passed on.
    InvalidOptions [],
    /// There is no Tokio runtime to work on.
    NoRuntime [],
    /// The process could not be started.
    SpawnFailed [Retry],
    /// The CLI did not answer the handshake in time.
    InitializeTimeout [Retry],
    /// The CLI refused the handshake.
    InitializeRejected [],
    /// The process ended before the handshake did.
    ExitedDuringInit [],
    /// The conversation to go on with is not there.
    ConversationNotFound [],
    /// The process ended before its result, or in the middle of a session.
    ProcessFailed [Retry Resume],
    /// The process ended with a failure although its result was none, and that counts as an error
    /// (`strict_exit_status`).
    NonZeroExit [],
    /// The CLI was silent for longer than `idle_timeout` allows.
    IdleTimeout [Retry Resume],
    /// The CLI wrote a line longer than `max_line_bytes`.
    LineTooLong [Resume],
    /// The CLI does not read stdin, and too many responses wait to be written to it.
    StdinNotRead [Retry Resume],
    /// The CLI wrote several lines in a row that are not of the protocol.
    TooManyDecodeErrors [Resume],
    /// The runtime that the run lived on is gone.
    RuntimeGone [Resume],
    /// Messages were not read for so long that they had to be dropped.
    Lagged [],
    /// The CLI refused an operation.
    ControlRejected [],
    /// The CLI did not answer an operation in time; it may have taken effect.
    ControlTimeout [],
    /// The CLI does not know an operation.
    Unsupported [],
    /// The process or its pipe is gone.
    TransportClosed [Resume],
    /// The session was stopped.
    SessionStopped [],
    /// The input of the session was ended.
    InputEnded [],
    /// The handshake failed before the operation was sent.
    NotInitialized [],
    /// Too many operations wait for the handshake.
    InitQueueFull [Retry],
    /// Too many operations wait for their answers, or too much waits to be written.
    TooManyPending [Retry],
    /// The answer to an operation was longer than `max_line_bytes`.
    AnswerTooLarge [],
    /// The answer to an operation could not be made out.
    UndecodableAnswer [],
    /// Files cannot be put back because they are not checkpointed.
    CheckpointingNotEnabled [],
    /// The CLI dropped a message before it became a turn.
    TurnCancelled [Retry],
    /// The CLI completed a message without a result.
    NoResult [],
    /// An MCP server that was waited for cannot be connected.
    McpServerFailed [],
    /// An MCP server that was waited for is not connected yet.
    McpTimeout [Retry],
    /// The CLI has no login, or the API does not accept it.
    LoginMissing [],
    /// The API's rate limit, or a usage limit of the account, was reached.
    RateLimited [Retry Resume],
    /// The API is overloaded.
    Overloaded [Retry Resume],
    /// The API does not offer the model, or not to this account.
    ModelNotFound [],
    /// The API failed or refused the request for another reason.
    ApiError [Retry Resume],
    /// The turn needed more responses of the model than `max_turns` allows.
    MaxTurns [Resume],
    /// The run cost more than `max_budget_usd` allows.
    BudgetExceeded [Resume],
    /// The prompt, or the conversation with it, does not fit into the model's context.
    PromptTooLong [],
    /// The model refused to answer.
    Refused [],
    /// The turn was interrupted.
    Interrupted [Resume],
    /// The turn failed for a reason that has no kind of its own.
    TurnFailed [],
    /// An answer was to be of a type, and the result has no value.
    NoStructuredOutput [Retry],
    /// An answer was to be of a type, and its value does not fit.
    StructuredOutputMismatch [Retry],
}
