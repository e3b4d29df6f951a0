//! The interface of the machine: its plan, the events that it takes and the effects that it returns.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use claude_wire::control::{
    CliControlRequest, ControlFailure, HostRequest, Initialize, PermissionMode,
};
use claude_wire::frame::Oversized;
use claude_wire::id::{MessageId, RequestId};
use claude_wire::message::Malformed;
use claude_wire::{Cost, Exit, Json, Map};

use super::cost::RunCost;
use super::limits::{QueryLimits, SessionLimits};
use super::mirror_event::{AppendFailure, BatchNumber, CatchUp, MirrorBatch, StorePolicy};

/// The configuration of a [`Machine`](super::Machine), fixed before the process starts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// Whether the run is a query or a session.
    pub run: RunMode,
    /// The request of the handshake. `None` skips the handshake.
    pub initialize: Option<Box<Initialize>>,
    /// The registered hooks, by the callback ID in the handshake.
    pub hooks: Map<HookPlan>,
    /// The names of the in-process MCP servers.
    pub mcp_servers: Vec<String>,
    /// Whether the host has a permission callback.
    pub permissions: bool,
    /// The permission requests that are delivered among the messages.
    pub delivered_permissions: DeliveredPermissions,
    /// Whether the host has a permission callback and left the permission mode to the CLI.
    pub relies_on_default_mode: bool,
    /// Whether the host has a callback for elicitations of MCP servers.
    pub elicitation: bool,
    /// Whether the host has a callback for dialogs.
    pub dialogs: bool,
    /// The timeout of permission, elicitation and dialog callbacks. `None` if a user decides.
    pub permission_timeout: Option<Duration>,
    /// Whether file checkpointing is enabled, so that files can be rewound.
    pub file_checkpointing: bool,
    /// Whether the CLI resumes an earlier conversation, whose cost it may report again.
    pub resumes: bool,
    /// All other limits.
    pub limits: SessionLimits,
    /// Distinguishes the request IDs of this run from those of other runs.
    pub id_suffix: u32,
    /// What happens when the store of the transcripts fails. `None` without a store.
    pub mirror: Option<StorePolicy>,
}

impl Plan {
    /// Creates a plan with an empty handshake, no callbacks and the default limits.
    pub fn new(run: RunMode) -> Self {
        Self {
            run,
            initialize: Some(Box::default()),
            hooks: Map::new(),
            mcp_servers: Vec::new(),
            permissions: false,
            delivered_permissions: DeliveredPermissions::None,
            relies_on_default_mode: false,
            elicitation: false,
            dialogs: false,
            permission_timeout: None,
            file_checkpointing: false,
            resumes: false,
            limits: SessionLimits::default(),
            id_suffix: 0,
            mirror: None,
        }
    }
}

/// Selects the permission requests that are delivered among the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveredPermissions {
    /// None.
    None,
    /// All.
    All,
    /// All except the model's questions to the user, which arrive as permission requests too.
    AllButQuestions,
}

/// Distinguishes queries from sessions.
#[derive(Clone, Debug)]
pub enum RunMode {
    /// Ends after the result of one prompt.
    Query {
        /// The prompt, sent after the handshake. `None` if it is on the command line.
        prompt: Option<OutgoingMessage>,
        /// The timeouts of the query and its rules for the end.
        limits: QueryLimits,
    },
    /// Continues until the host or the CLI ends it.
    Session,
}

/// An encoded user message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingMessage {
    /// The message ID.
    pub id: MessageId,
    /// The encoded line, including the line break.
    pub line: Bytes,
    /// Whether the host chose the ID, which may then have been used before.
    pub chosen_id: bool,
}

impl OutgoingMessage {
    /// Creates a message from its ID and its encoded line.
    pub fn new(id: MessageId, line: Bytes, chosen_id: bool) -> Self {
        Self { id, line, chosen_id }
    }
}

/// The settings of one hook registration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookPlan {
    /// The event that the hook is registered for.
    pub event: Arc<str>,
    /// The timeout of the callback, measured from the arrival of the request.
    pub timeout: Duration,
    /// Whether a failure of the callback denies the action.
    pub fail_closed: bool,
}

impl HookPlan {
    /// Creates the settings of a hook for this event.
    pub fn new(event: impl Into<Arc<str>>, timeout: Duration, fail_closed: bool) -> Self {
        Self { event: event.into(), timeout, fail_closed }
    }
}

/// Identifies a command of the host that waits for its [`Completion`]. The host chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number that the host chooses")]
pub struct Waiter(pub u64);

/// Identifies a callback that the machine has started. The machine chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number that identifies a callback")]
pub struct CallbackKey(pub u64);

/// An input of the machine.
#[derive(Clone, Debug)]
pub enum Event {
    /// A complete line was read from stdout.
    Line(Bytes),
    /// A line that exceeds the length limit was read from stdout.
    Oversized(Oversized),
    /// Stdout ended with these bytes, without a line break.
    LastLine(Bytes),
    /// Stdout reached EOF, or reading it failed with this error.
    StdoutEnded(Option<String>),
    /// The process exited.
    Exited(Exit),
    /// This many bytes were written to stdin.
    Written(usize),
    /// Writing to stdin failed with this error.
    WriteFailed(String),
    /// Time has passed; timers that are due fire.
    Tick,
    /// The host sends a user message. Completed with `Sent` when the line is in the write buffer.
    Send {
        /// Identifies the command.
        waiter: Waiter,
        /// The message.
        message: OutgoingMessage,
    },
    /// The host sends a control request. Completed with its response.
    Request {
        /// Identifies the command.
        waiter: Waiter,
        /// The request.
        request: HostRequest,
        /// The timeout of the response, measured from the write.
        timeout: Duration,
    },
    /// The host no longer waits for the completion of a command.
    Forget(Waiter),
    /// The host sends no further commands, so that stdin can be closed. Completed at once.
    EndInput(Waiter),
    /// The host stops the run.
    Stop,
    /// A callback has finished.
    CallbackDone {
        /// Identifies the callback.
        key: CallbackKey,
        /// The response of the callback, or its failure.
        outcome: CallbackOutcome,
    },
    /// The store has this batch.
    Appended(BatchNumber),
    /// The store does not have this batch, or did not confirm it.
    AppendFailed {
        /// Identifies the batch.
        batch: BatchNumber,
        /// The kind of the failure.
        failure: AppendFailure,
        /// The error of the store.
        reason: String,
    },
    /// A callback learned that another host owns the session, for this reason.
    Superseded(String),
}

/// The outcome of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackOutcome {
    /// The callback returned this response, encoded for its request.
    Response(Json),
    /// The callback failed or panicked, for this reason.
    Failed(String),
    /// The callback was aborted before it returned.
    Aborted,
}

/// An action that the driver must perform. Effects are performed in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Append these bytes to the write buffer of stdin.
    Write(Bytes),
    /// Close stdin after everything before was written. Bytes that cannot be written are discarded.
    CloseStdin,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGTERM to a process that must end at once, and note its descendants. [`Kill`](Self::Kill) follows
    /// soon, and ends those that are left.
    TerminateAtOnce,
    /// Send SIGKILL.
    Kill,
    /// Deliver a message to the readers.
    Deliver(Bytes),
    /// Deliver a permission request to the readers, in order with the messages. Its callback runs
    /// afterwards.
    DeliverPermission(Bytes),
    /// Publish the cost of the run so far.
    Cost(RunCost),
    /// Publish whether everything before the next result is stored. Precedes each result of a run with a
    /// store.
    Stored(bool),
    /// Append a batch to the store. [`Event::Appended`] or [`Event::AppendFailed`] must follow once.
    Append(MirrorBatch),
    /// Append the same batch again, after a failure.
    RetryAppend(BatchNumber),
    /// Store the lines of all files that the store does not have yet. [`Event::Appended`] must follow when no
    /// file has changed for a while, or [`Event::AppendFailed`].
    CatchUp(CatchUp),
    /// Drop the batch, and cancel its append if it is running. Events of the batch are ignored.
    AbandonAppend,
    /// Deliver a warning to the readers.
    Warn(RunWarning),
    /// Publish the new state of the run.
    State(RunState),
    /// Complete a command of the host.
    Complete(Waiter, Completion),
    /// Log a response without a pending request. The response is discarded.
    UnmatchedResponse {
        /// The ID in the response.
        request_id: RequestId,
        /// Whether a request with this ID was sent and is no longer pending.
        late: bool,
    },
    /// Run a callback. [`Event::CallbackDone`] must follow exactly once.
    RunCallback {
        /// Identifies the callback.
        key: CallbackKey,
        /// The decoded request. The input of a hook or permission callback is decodable.
        request: Box<CliControlRequest>,
        /// The line of the request.
        line: Bytes,
    },
    /// Signal a callback that its response is no longer needed.
    CancelCallback(CallbackKey),
    /// Abort a callback that has ignored its cancellation.
    AbortCallback(CallbackKey),
    /// Assign the following messages to the turn of this user message.
    TurnStarted(MessageId),
    /// Assign the following messages to a turn with this ID, which the CLI has started by itself to replay
    /// a deferred tool call. At most once, during the handshake or soon after it.
    ReplayStarted(MessageId),
    /// The CLI replays no deferred tool call. In a resumed session, either this or [`Self::ReplayStarted`] follows
    /// the handshake once, unless the run ends before.
    NoReplay,
    /// End the turn of this user message, or the replay with this ID. Its result, if any, was delivered just before.
    TurnEnded(MessageId, TurnEnd),
    /// End the run. All callbacks were cancelled and aborted before. The only effects that follow
    /// complete the remaining commands, so that their errors can name the cause.
    End(RunEnd),
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The handshake is in progress.
    Initializing,
    /// The handshake is complete. Contains the CLI's response as JSON text, empty without a
    /// handshake.
    Running(Bytes),
    /// The run is being stopped.
    Stopping,
    /// The run has failed and its process is being stopped. [`Effect::End`] with the same failure
    /// follows when the process has exited.
    Failed(RunFailure),
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// The CLI sent a result.
    Result {
        /// The open turns that the result names, including this one; shared by all of them.
        /// Empty if the result names none.
        messages: Arc<[MessageId]>,
        /// Whether the result names the message. Otherwise it is the last result before the CLI
        /// completed the message, or, with a CLI that does not report message IDs, the next result
        /// for the oldest message.
        named: bool,
        /// Whether the line of the result was too long to be delivered.
        oversized: bool,
        /// The cost of the turn, if the result could be decoded.
        cost: Option<Cost>,
        /// Whether everything before the result was stored when it was delivered; `None` without a store.
        stored: Option<bool>,
    },
    /// The CLI cancelled the message.
    Cancelled,
    /// The CLI completed the message and became idle without sending a result.
    WithoutResult,
}

/// The outcome of a command of the host.
#[derive(Clone, Debug)]
pub enum Completion {
    /// The message is in the write buffer.
    Sent,
    /// Stdin is closed, or will be when everything before is written.
    InputEnded,
    /// The CLI carried out the operation. Contains its response, if it sent one.
    Response(Option<Json>),
    /// The command was rejected or failed.
    Rejected(Rejection),
}

/// The reason why a command of the host was rejected or failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The CLI responded with an error.
    ByCli(ControlFailure),
    /// The CLI did not respond within the timeout.
    TimedOut {
        /// The ID of the request.
        request_id: RequestId,
        /// The timeout.
        timeout: Duration,
    },
    /// The response exceeds the line length limit. Contains its size in bytes.
    ResponseTooLarge(u64),
    /// The response could not be decoded, for this reason.
    UndecodableResponse(String),
    /// Too many operations are waiting for the handshake.
    HandshakeQueueFull,
    /// Too many operations are pending, or the write buffer is full.
    TooManyPending,
    /// The handshake failed.
    NotInitialized,
    /// The host has ended the input.
    InputEnded,
    /// The run was stopped.
    Stopped,
    /// The process has exited or its pipe is broken, for this reason.
    Closed(String),
    /// File checkpointing is disabled.
    CheckpointingNotEnabled,
    /// The request could not be encoded as JSON, for this reason.
    Unencodable(String),
    /// The run has already sent a message with this ID.
    DuplicateMessage,
}

/// What the machine responded in place of a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureResponse {
    /// The CLI goes on as if the callback did not exist.
    Continue,
    /// The request is denied, declined or cancelled.
    Deny,
    /// The request of an MCP client ends with an error. If it was a tool call, the model reads the error.
    Error,
    /// Nothing waits for a response.
    Acknowledge,
}

/// Something unexpected that the run survived.
#[derive(Clone, Debug)]
pub enum RunWarning {
    /// A line of the CLI is malformed.
    Malformed(Malformed),
    /// A line exceeded the length limit and was discarded.
    OversizedLine {
        /// The size of the line in bytes.
        size: u64,
        /// The message type, if it was recognized.
        kind: Option<String>,
    },
    /// Stdout ended in the middle of a line.
    IncompleteLastLine(Bytes),
    /// The process exited with a failure although the last result is not an error.
    NonZeroExitAfterResult(Exit),
    /// Another process kept stdout open after the CLI exited.
    StdoutHeldOpen,
    /// The process did not exit after its result and was stopped.
    StoppedAfterResult,
    /// The process exited successfully without sending a result.
    ExitWithoutResult,
    /// The process exited successfully without writing anything to stdout.
    EmptyOutput,
    /// A callback failed, panicked or was unknown. The machine responded in its place.
    CallbackFailed {
        /// A description of the request.
        request: String,
        /// The reason of the failure.
        reason: String,
        /// What the machine responded.
        response: FailureResponse,
    },
    /// A callback exceeded its timeout. The machine responded in its place.
    CallbackTimedOut {
        /// A description of the request.
        request: String,
        /// The timeout.
        timeout: Duration,
        /// What the machine responded.
        response: FailureResponse,
    },
    /// Too many callbacks were running or queued, so that a request was denied.
    CallbackOverload {
        /// A description of the request.
        request: String,
    },
    /// The host has no handler for a request of the CLI.
    UnsupportedRequest {
        /// A description of the request.
        request: String,
        /// The response that was sent.
        response: String,
    },
    /// The CLI starts in a permission mode that bypasses the permission callback.
    ModeBypassesCallback(PermissionMode),
    /// Entries could not be stored, for this reason. Later ones are not stored either, until
    /// [`MirrorRecovered`](Self::MirrorRecovered).
    MirrorDegraded(String),
    /// The store has all entries again.
    MirrorRecovered,
    /// The CLI reported entries of a file that is not a transcript. They are not stored.
    UnknownTranscript(String),
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The query ended with or without a result.
    Finished,
    /// The host stopped the run.
    Stopped,
    /// The host ended the input of a session, and the CLI exited successfully, or with status 1
    /// after a result that is an error.
    Completed,
    /// The run failed.
    Failed(RunFailure),
}

/// The reason why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// The process exited before sending a result, or in the middle of a session.
    Process {
        /// The exit status.
        exit: Exit,
        /// Whether the process was stopped because it closed stdout without exiting.
        stopped: bool,
        /// Whether the process wrote nothing to stdout.
        silent: bool,
    },
    /// The process exited with a failure after a result that is not an error, and
    /// [`QueryLimits::strict_exit_status`] is set.
    NonZeroExitAfterResult(Exit),
    /// The process exited during the handshake.
    ExitedDuringInit(Exit),
    /// The handshake exceeded this timeout.
    InitializeTimeout(Duration),
    /// The CLI rejected the handshake, for this reason.
    InitializeRejected(String),
    /// The CLI completed the handshake, but did not confirm that it uses the MCP servers in it.
    McpServersNotApplied,
    /// The CLI wrote nothing for longer than the idle timeout.
    IdleTimeout,
    /// A line exceeded the length limit. Contains its size in bytes.
    LineTooLong(u64),
    /// This many consecutive lines were malformed. Contains the last of them.
    TooManyMalformedLines(usize, Malformed),
    /// The CLI does not read stdin: this many bytes of responses are waiting to be written.
    StdinNotRead(usize),
    /// Another host has claimed the session in the store, which reports this.
    Superseded(String),
    /// The store failed for this reason, and the policy is [`StorePolicy::Stop`].
    StoreFailed(String),
}
