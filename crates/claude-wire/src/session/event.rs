//! What the machine is told, and what it wants done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Exit;
use super::cost::{Cost, RunCost};
use super::limits::{QueryLimits, SessionLimits};
use crate::control::{CliControlRequest, ControlFailure, HostRequest, Initialize, PermissionMode};
use crate::frame::Oversized;
use crate::id::{CallbackId, MessageId, RequestId};
use crate::json::Json;
use crate::message::Malformed;

/// What the machine is to do, decided before the process starts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plan {
    /// What kind of run it is.
    pub run: Run,
    /// The handshake. Without one the session runs at once.
    pub initialize: Option<Box<Initialize>>,
    /// What is registered for hooks, by the id that the handshake names.
    pub hooks: BTreeMap<CallbackId, HookPlan>,
    /// The servers inside the host, by name.
    pub mcp_servers: BTreeSet<String>,
    /// Whether somebody answers permission requests.
    pub permissions: bool,
    /// Which permission requests are delivered among the messages.
    pub delivered_permissions: DeliveredPermissions,
    /// Whether the host has a permission callback and left the permission mode to the CLI.
    pub relies_on_default_mode: bool,
    /// Whether somebody answers questions of MCP servers.
    pub elicitation: bool,
    /// Whether somebody shows dialogs.
    pub dialogs: bool,
    /// The limit of a callback for any of these; none if people answer by hand.
    pub permission_limit: Option<Duration>,
    /// Whether files are checkpointed, so that they can be put back.
    pub file_checkpointing: bool,
    /// Whether the CLI continues an earlier conversation, whose cost it may report again.
    pub resumes: bool,
    /// All other limits.
    pub limits: SessionLimits,
    /// Makes request ids differ from those of other sessions.
    pub id_suffix: u32,
}

impl Plan {
    /// A run of this kind with an empty handshake, no callbacks and the default limits.
    pub fn new(run: Run) -> Self {
        Self {
            run,
            initialize: Some(Box::default()),
            hooks: BTreeMap::new(),
            mcp_servers: BTreeSet::new(),
            permissions: false,
            delivered_permissions: DeliveredPermissions::None,
            relies_on_default_mode: false,
            elicitation: false,
            dialogs: false,
            permission_limit: None,
            file_checkpointing: false,
            resumes: false,
            limits: SessionLimits::default(),
            id_suffix: 0,
        }
    }
}

/// Which permission requests are delivered among the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveredPermissions {
    /// None.
    None,
    /// All.
    All,
    /// All but the model's questions to the user, which come as permission requests too.
    AllButQuestions,
}

/// What kind of run it is.
#[derive(Clone, Debug)]
pub enum Run {
    /// Ends by the termination table.
    Query {
        /// What is sent after the handshake; nothing if the prompt stands on the command line.
        prompt: Option<Outgoing>,
        /// How long it may take.
        limits: QueryLimits,
    },
    /// Goes on until it is stopped.
    Session,
}

/// A user message as it will be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// Its id.
    pub id: MessageId,
    /// Its line, with the line break.
    pub line: Bytes,
    /// Whether the host chose the id, which then may have been used before.
    pub chosen_id: bool,
}

impl Outgoing {
    /// A message with this id and this line.
    pub fn new(id: MessageId, line: Bytes, chosen_id: bool) -> Self {
        Self { id, line, chosen_id }
    }
}

/// How a hook callback is to be treated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookPlan {
    /// The event that it is registered for.
    pub event: Arc<str>,
    /// How long it may take, from the read of the request.
    pub limit: Duration,
    /// Whether its failure blocks what it was asked about.
    pub fail_closed: bool,
}

impl HookPlan {
    /// A hook for this event.
    pub fn new(event: impl Into<Arc<str>>, limit: Duration, fail_closed: bool) -> Self {
        Self { event: event.into(), limit, fail_closed }
    }
}

/// Somebody who waits for the machine: a call of the host. The host counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number that the host chooses")]
pub struct Waiter(pub u64);

/// A request of the CLI that is being answered. The machine counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number that stands for a request")]
pub struct CallKey(pub u64);

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A whole line came.
    Line(Bytes),
    /// A line came that was longer than the limit.
    Oversized(Oversized),
    /// The output ended with this, which has no line break.
    LastLine(Bytes),
    /// The output is at its end, or cannot be read any more for this reason.
    OutputEnded(Option<String>),
    /// The process ended.
    Exited(Exit),
    /// So many bytes were written.
    Written(usize),
    /// Nothing more can be written, for this reason.
    WriteFailed(String),
    /// Time passed.
    Tick,
    /// The host sends a user message. Settled with `Sent` when it is in the buffer.
    Send {
        /// Who waits for room.
        waiter: Waiter,
        /// The message.
        message: Outgoing,
    },
    /// The host asks for an operation. Settled with its answer.
    Ask {
        /// Who waits for the answer.
        waiter: Waiter,
        /// What is asked.
        request: HostRequest,
        /// How long the answer may take, from the write.
        limit: Duration,
    },
    /// The host no longer waits.
    Forget(Waiter),
    /// The host asks nothing more: input is closed. Settled at once.
    EndInput(Waiter),
    /// The host wants the session to end.
    Stop,
    /// A callback has ended with an answer or failed.
    CallbackDone {
        /// Which.
        key: CallKey,
        /// How.
        outcome: CallOutcome,
    },
}

/// How a callback ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With this answer, in the shape that the request wants.
    Answer(Json),
    /// It failed or panicked, and this is why.
    Failed(String),
    /// It was cancelled and is gone.
    Gone,
}

/// What is to be done, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Write these bytes after those that wait.
    Write(Bytes),
    /// Close the input when everything before is written; what cannot be written is dropped.
    CloseInput,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// A message for whoever reads messages.
    Deliver(Bytes),
    /// A permission request for whoever reads messages, at its place among them. Its callback is run
    /// after this.
    DeliverPermission(Bytes),
    /// The run has cost this much by now.
    Cost(RunCost),
    /// A warning for whoever reads messages.
    Warn(Notice),
    /// The state of the session changed.
    State(State),
    /// Somebody need not wait any more.
    Settle(Waiter, Settled),
    /// An answer came that nobody waits for. It is dropped; this is for a log.
    Unclaimed {
        /// What it answers.
        request_id: RequestId,
        /// Whether that was asked: then nobody waits any more.
        late: bool,
    },
    /// Run a callback. `CallbackDone` is expected exactly once.
    Run {
        /// Its key.
        key: CallKey,
        /// The request; a hook's or permission's input is decoded, or it would not be run.
        request: Box<CliControlRequest>,
        /// The line that it came with.
        line: Bytes,
    },
    /// Tell a callback that its answer is no longer wanted.
    Cancel(CallKey),
    /// End a callback that did not heed that.
    Abort(CallKey),
    /// The messages from here on belong to the turn of this user message.
    TurnStarted(MessageId),
    /// The turn of this user message ended; the result was delivered just before, if there is one.
    TurnEnded(MessageId, TurnEnd),
    /// All is over. Every callback that still ran was cancelled and aborted before. Only those who
    /// still wait are settled after it, so that they find the cause.
    End(End),
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake is under way.
    Initializing,
    /// The handshake is done; the CLI's answer to it, as JSON text. Empty without a handshake.
    Running(Bytes),
    /// The session is being stopped.
    Stopping,
    /// It failed, and its process is being stopped. `End` with the same reason follows when that
    /// has ended; whoever waits need not wait so long.
    Failed(Failure),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// With a result.
    Result {
        /// The open turns that the result names, this one included; one list for all of them.
        /// Empty if the result names none.
        messages: Arc<[MessageId]>,
        /// Whether the result named the message. If not, it is the last result before the CLI was
        /// done with the message, or the next one for the oldest message of a CLI that reports
        /// nothing about messages.
        named: bool,
        /// Whether the line of the result was too long to be delivered.
        oversized: bool,
        /// What the result reports as the cost of the turn, if it could be read.
        cost: Option<Cost>,
    },
    /// The CLI dropped the message.
    Cancelled,
    /// The CLI was done with the message and became idle without a result.
    WithoutResult,
}

/// What became of a waiter.
#[derive(Clone, Debug)]
pub enum Settled {
    /// The message is in the buffer to be written.
    Sent,
    /// The input is closed, or will be when everything before is written.
    InputEnded,
    /// The operation was done; the CLI's answer as JSON text, if it gave one.
    Answered(Option<Json>),
    /// It was not done.
    Refused(Refusal),
}

/// Why an operation was not done.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The CLI refused it.
    Rejected(ControlFailure),
    /// The CLI did not answer in time.
    TimedOut {
        /// The request.
        request_id: RequestId,
        /// The limit.
        limit: Duration,
    },
    /// The answer was longer than a line may be.
    ResponseTooLarge(u64),
    /// The answer could not be made out, for this reason.
    UndecodableResponse(String),
    /// Too many operations wait for the handshake.
    InitQueueFull,
    /// Too many operations wait for their answers, or too much waits to be written.
    TooManyPending,
    /// The handshake failed.
    NotInitialized,
    /// The input was ended.
    InputEnded,
    /// The session was stopped.
    Stopped,
    /// The process or its pipe is gone.
    Closed(String),
    /// Files are not checkpointed.
    CheckpointingNotEnabled,
    /// The request could not be written as JSON.
    Unencodable(String),
    /// The session has sent a message with this id before.
    DuplicateMessage,
}

/// What the host should know but need not act on.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A line that was to be acted on is none of the protocol.
    Malformed(Malformed),
    /// A line was longer than the limit and is lost.
    OversizedLine {
        /// Its size.
        size: u64,
        /// Its type, if that could be made out.
        kind: Option<String>,
    },
    /// The output ended in the middle of a line.
    IncompleteLastLine(Bytes),
    /// The exit was not a success although the last result was not an error.
    NonZeroExitAfterResult(Exit),
    /// Another process held stdout open.
    StdoutHeldOpen,
    /// The process had to be stopped after its result.
    StoppedAfterResult,
    /// There was output but no result.
    ExitWithoutResult,
    /// There was no output at all.
    EmptyOutput,
    /// A callback failed, panicked or was not known, and the fail rule answered.
    CallbackFailed {
        /// What was asked.
        what: String,
        /// Why.
        reason: String,
        /// Whether the answer was a refusal.
        refused: bool,
    },
    /// A callback took too long, and the fail rule answered.
    CallbackTimedOut {
        /// What was asked.
        what: String,
        /// The limit.
        limit: Duration,
        /// Whether the answer was a refusal.
        refused: bool,
    },
    /// Too many callbacks ran and waited; this one was refused.
    CallbackRefused {
        /// What was asked.
        what: String,
    },
    /// The CLI asked something that nobody here answers; it was told so.
    UnansweredRequest {
        /// What was asked.
        what: String,
        /// What the CLI was told.
        reason: String,
    },
    /// The CLI's own default is a permission mode in which it does not ask the host.
    ModeWithoutQuestions(PermissionMode),
}

/// How everything ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A query came to its end.
    Finished,
    /// The host stopped it.
    Stopped,
    /// The host ended the input of a session, and it came to a good end: its exit was a success, or
    /// that of a result that was an error.
    Completed,
    /// It failed.
    Failed(Failure),
}

/// Why it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The process ended before a result, or in the middle of a session.
    Process {
        /// How it ended.
        exit: Exit,
        /// Whether it had to be stopped because it closed stdout and lived on.
        stopped: bool,
        /// Whether it had written nothing at all.
        silent: bool,
    },
    /// The exit was not a success although the last result was not an error, and the plan says that
    /// this is a failure.
    NonZeroExitAfterResult(Exit),
    /// The process ended before the handshake did.
    ExitedDuringInit(Exit),
    /// The handshake took too long.
    InitializeTimeout(Duration),
    /// The CLI refused the handshake.
    InitializeRejected(String),
    /// The CLI was silent for longer than allowed.
    IdleTimeout,
    /// A line was longer than the limit.
    LineTooLong(u64),
    /// So many lines in a row were not of the protocol; the last of them.
    TooManyMalformed(usize, Malformed),
    /// The CLI does not read stdin: this many bytes of responses wait to be written.
    StdinNotRead(usize),
}
