//! The faults.

use super::state::State;

/// A fault that is injected into a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table below describes each")]
pub enum Fault {
    ExitSuccess,
    ExitFailure,
    Killed,
    Aborted,
    Terminated,
    IgnoresTerm,
    Hangs,
    ClosesStdout,
    ClosesStdin,
    FloodsStderr,
    FloodsMessages,
    NotJson,
    NotUtf8,
    LongLine,
    HalfLineExitSuccess,
    HalfLineExitFailure,
    Grandchild,
    UnsolicitedResponse,
    DuplicateResponse,
    UndecodableResponse,
    UnknownRequest,
    BrokenPipe,
    SlowReader,
    DataAtExit,
    HandlesDropped,
    TurnDropped,
    OperationDropped,
    Stop,
    StopTwice,
    EndInput,
    ShutdownAll,
    HostKilled,
    Interrupt,
    CallbackPanics,
    CallbackFails,
    CallbackNeverReturns,
    CallbackReturnsLate,
    CallbackBlocks,
    RuntimeGone,
    CurrentThread,
}

/// A row of the table: the fault, its origin, its name and its description.
type Row = (Fault, &'static str, &'static str, &'static str);

/// All faults.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    (Fault::ExitSuccess, "CLI", "exit-0", "exits with code 0"),
    (Fault::ExitFailure, "CLI", "exit-1", "exits with code 1"),
    (Fault::Killed, "CLI", "sigkill", "is killed (SIGKILL) by another process"),
    (Fault::Aborted, "CLI", "sigabrt", "crashes (SIGABRT)"),
    (Fault::Terminated, "CLI", "sigterm", "is terminated (SIGTERM) by another process"),
    (Fault::IgnoresTerm, "CLI", "ignores-sigterm", "hangs and ignores SIGTERM; the host stops it"),
    (Fault::Hangs, "CLI", "hangs", "hangs; a timeout expires, then the host stops it"),
    (Fault::ClosesStdout, "CLI", "closes-stdout", "closes its stdout and keeps running"),
    (Fault::ClosesStdin, "CLI", "closes-stdin", "closes its stdin and keeps working"),
    (Fault::FloodsStderr, "CLI", "floods-stderr", "writes 300 KiB to stderr"),
    (Fault::FloodsMessages, "CLI", "floods-stdout", "writes 2,000 messages at once"),
    (Fault::NotJson, "CLI", "no-json", "writes a line that is not JSON"),
    (Fault::NotUtf8, "CLI", "no-utf8", "writes a line that is not UTF-8"),
    (Fault::LongLine, "CLI", "long-line", "writes a line of 1 MiB although the limit is 256 KiB"),
    (Fault::HalfLineExitSuccess, "CLI", "half-line-exit-0", "exits with code 0 in the middle of a line"),
    (Fault::HalfLineExitFailure, "CLI", "half-line-exit-1", "exits with code 1 in the middle of a line"),
    (Fault::Grandchild, "CLI", "grandchild", "exits while one of its children holds stdout open"),
    (Fault::UnsolicitedResponse, "CLI", "strange-answer", "sends a response to an unknown request ID"),
    (Fault::DuplicateResponse, "CLI", "answers-twice", "responds to a request twice"),
    (Fault::UndecodableResponse, "CLI", "wrong-shape", "responds with a payload that cannot be decoded"),
    (Fault::UnknownRequest, "CLI", "strange-request", "sends a control request of an unknown subtype"),
    (Fault::BrokenPipe, "pipe", "broken-pipe", "the CLI has closed stdin, and the host writes"),
    (Fault::SlowReader, "pipe", "slow-reader", "stdin is full, and the host writes more; the host stops the session"),
    (Fault::DataAtExit, "pipe", "data-at-exit", "the CLI writes 500 messages, more than a pipe holds, and exits"),
    (Fault::HandlesDropped, "host", "handles-dropped", "drops every handle and future"),
    (Fault::TurnDropped, "host", "turn-dropped", "drops the turn"),
    (Fault::OperationDropped, "host", "operation-dropped", "drops the future of an operation"),
    (Fault::Stop, "host", "stop", "calls `stop()`"),
    (Fault::StopTwice, "host", "stop-twice", "calls `stop()` twice concurrently"),
    (Fault::EndInput, "host", "end-input", "calls `end_input()`"),
    (Fault::ShutdownAll, "host", "shutdown-all", "calls `shutdown_all`"),
    (Fault::HostKilled, "host", "host-killed", "is killed (SIGKILL)"),
    (Fault::Interrupt, "host", "interrupt", "calls `interrupt()`"),
    (Fault::CallbackPanics, "callback", "panics", "panics"),
    (Fault::CallbackFails, "callback", "fails", "returns an error"),
    (Fault::CallbackNeverReturns, "callback", "never-returns", "does not return; its timeout expires"),
    (Fault::CallbackReturnsLate, "callback", "returns-late", "returns only after an interrupt has cancelled it"),
    (Fault::CallbackBlocks, "callback", "blocks", "blocks its thread for more than a second"),
    (Fault::RuntimeGone, "runtime", "shut-down", "is shut down while the session is running"),
    (Fault::CurrentThread, "runtime", "current-thread", "has only one thread"),
];

impl Fault {
    /// Iterates over all faults.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.0)
    }

    fn row(self) -> Row {
        // Every fault has a row.
        ROWS.iter().copied().find(|row| row.0 == self).unwrap_or((self, "", "", ""))
    }

    /// Returns what the fault originates from.
    pub fn origin(self) -> &'static str {
        self.row().1
    }

    /// Returns the name in the table.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Returns the description.
    pub fn about(self) -> &'static str {
        self.row().3
    }

    /// Returns the fault with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|fault| fault.name() == name)
    }

    /// Returns the faults of a script file that the CLI executes.
    fn faults(self) -> &'static str {
        match self {
            Self::ExitSuccess => "exit 0",
            Self::ExitFailure => "exit 1",
            Self::IgnoresTerm => "ignore-sigterm stderr 1 hang",
            Self::Hangs => "stderr 1 hang",
            Self::ClosesStdout => "close-stdout",
            Self::ClosesStdin | Self::BrokenPipe => "close-stdin",
            Self::FloodsStderr => "stderr 300kb",
            Self::FloodsMessages => "messages 2000",
            Self::NotJson => "garbage",
            Self::NotUtf8 => "garbage-utf8",
            Self::LongLine => "long-line 1mb",
            Self::HalfLineExitSuccess => r#"bytes "{\"type\":\"half" exit 0"#,
            Self::HalfLineExitFailure => r#"bytes "{\"type\":\"half" exit 1"#,
            Self::Grandchild => "leave-grandchild 1s",
            Self::UnsolicitedResponse => {
                r#"line "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"nobody\",\"response\":{}}}""#
            }
            Self::UnknownRequest => {
                r#"line "{\"type\":\"control_request\",\"request_id\":\"strange\",\"request\":{\"subtype\":\"make_coffee\"}}""#
            }
            Self::SlowReader => "stop-reading",
            Self::DataAtExit => "messages 500 exit 0",
            _ => "",
        }
    }

    /// Returns how a response of the CLI is altered.
    fn altered_response(self) -> Option<&'static str> {
        match self {
            Self::DuplicateResponse => Some("twice"),
            Self::UndecodableResponse => Some("wrong-shape"),
            _ => None,
        }
    }

    /// Whether the CLI exits immediately.
    pub(super) fn ends_the_cli(self) -> bool {
        self.faults().contains("exit") || self == Self::Grandchild
    }

    /// Whether the CLI still writes after the fault.
    pub(super) fn leaves_the_cli_writing(self) -> bool {
        !self.ends_the_cli()
            && !matches!(self, Self::ClosesStdout | Self::IgnoresTerm | Self::Hangs)
    }

    /// Returns the number of messages that arrive before the end.
    pub(super) fn marks(self) -> usize {
        MARKS
            + usize::from(self.leaves_the_cli_writing())
            + match self {
                Self::FloodsMessages => 2000,
                Self::DataAtExit => 500,
                _ => 0,
            }
    }
}

/// The number of messages that arrive before the fault.
const MARKS: usize = 3;

/// Returns the script file that brings the CLI into a state, holds it there and injects the fault.
pub(super) fn script(state: State, fault: Fault) -> String {
    let faults = fault.faults();
    // Output that follows the faults shows that they were executed.
    let mark = format!("messages {MARKS} stderr 1 {faults} messages 1 stderr 1");
    let (point, then) = match state {
        State::Spawning if fault.altered_response().is_some() => ("at start", ""),
        State::Spawning => ("at start", "hang"),
        _ => ("at signal", ""),
    };
    let held = match (state, fault.altered_response()) {
        (State::Spawning | State::Handshake, Some(change)) => format!(
            "on control_request/initialize stderr 1\n\
             before control_response/initialize {change}\n"
        ),
        (_, Some(change)) => {
            format!("{}before control_response/set_permission_mode {change}\n", state.held())
        }
        // The response is sent after its future was dropped.
        (_, None) if fault == Fault::OperationDropped && state.can_send() => {
            State::Operation.held().to_owned()
        }
        (_, None) => state.held().to_owned(),
    };
    format!("faults\n{point} {mark} {then}\n{held}")
}
