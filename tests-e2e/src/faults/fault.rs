//! What goes wrong.

use super::state::State;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table below says what each is")]
pub enum Fault {
    ExitGood,
    ExitBad,
    Killed,
    Aborted,
    Terminated,
    IgnoresTerm,
    Hangs,
    ClosesStdout,
    ClosesStdin,
    FloodsStderr,
    FloodsMessages,
    NoJson,
    NoUtf8,
    LongLine,
    HalfLineExitGood,
    HalfLineExitBad,
    Grandchild,
    StrangeAnswer,
    AnswersTwice,
    WrongShape,
    StrangeRequest,
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

/// A row of the table: what goes wrong, whose fault it is, its name and what it is.
type Row = (Fault, &'static str, &'static str, &'static str);

/// All faults.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    (Fault::ExitGood, "CLI", "exit-0", "ends with exit code 0"),
    (Fault::ExitBad, "CLI", "exit-1", "ends with exit code 1"),
    (Fault::Killed, "CLI", "sigkill", "is killed by somebody else"),
    (Fault::Aborted, "CLI", "sigabrt", "crashes (SIGABRT)"),
    (Fault::Terminated, "CLI", "sigterm", "is terminated by somebody else"),
    (Fault::IgnoresTerm, "CLI", "ignores-sigterm", "hears nothing, not even SIGTERM; the host stops it"),
    (Fault::Hangs, "CLI", "hangs", "does nothing any more; a limit passes, then the host stops it"),
    (Fault::ClosesStdout, "CLI", "closes-stdout", "closes its stdout and lives on"),
    (Fault::ClosesStdin, "CLI", "closes-stdin", "closes its stdin and works on"),
    (Fault::FloodsStderr, "CLI", "floods-stderr", "writes 300 KiB to stderr"),
    (Fault::FloodsMessages, "CLI", "floods-stdout", "writes 2,000 messages at once"),
    (Fault::NoJson, "CLI", "no-json", "writes a line that is no JSON"),
    (Fault::NoUtf8, "CLI", "no-utf8", "writes a line that is no UTF-8"),
    (Fault::LongLine, "CLI", "long-line", "writes a line of 1 MiB where 256 KiB may be"),
    (Fault::HalfLineExitGood, "CLI", "half-line-exit-0", "ends with 0 in the middle of a line"),
    (Fault::HalfLineExitBad, "CLI", "half-line-exit-1", "ends with 1 in the middle of a line"),
    (Fault::Grandchild, "CLI", "grandchild", "ends while a child of it holds stdout open"),
    (Fault::StrangeAnswer, "CLI", "strange-answer", "answers a request that nobody made"),
    (Fault::AnswersTwice, "CLI", "answers-twice", "answers a request twice"),
    (Fault::WrongShape, "CLI", "wrong-shape", "answers a request with what does not fit"),
    (Fault::StrangeRequest, "CLI", "strange-request", "asks what nobody here knows"),
    (Fault::BrokenPipe, "pipe", "broken-pipe", "nobody reads stdin any more, and the host writes"),
    (Fault::SlowReader, "pipe", "slow-reader", "stdin is full, and the host writes on; the host stops"),
    (Fault::DataAtExit, "pipe", "data-at-exit", "500 messages, more than a pipe holds, and the exit"),
    (Fault::HandlesDropped, "host", "handles-dropped", "drops every handle and future"),
    (Fault::TurnDropped, "host", "turn-dropped", "drops the turn"),
    (Fault::OperationDropped, "host", "operation-dropped", "drops the future of an operation"),
    (Fault::Stop, "host", "stop", "calls `stop()`"),
    (Fault::StopTwice, "host", "stop-twice", "calls `stop()` twice at once"),
    (Fault::EndInput, "host", "end-input", "calls `end_input()`"),
    (Fault::ShutdownAll, "host", "shutdown-all", "calls `shutdown_all`"),
    (Fault::HostKilled, "host", "host-killed", "is killed (SIGKILL)"),
    (Fault::Interrupt, "host", "interrupt", "calls `interrupt()`"),
    (Fault::CallbackPanics, "callback", "panics", "panics"),
    (Fault::CallbackFails, "callback", "fails", "returns an error"),
    (Fault::CallbackNeverReturns, "callback", "never-returns", "does not return; its limit passes"),
    (Fault::CallbackReturnsLate, "callback", "returns-late", "is cancelled by an interrupt and returns then"),
    (Fault::CallbackBlocks, "callback", "blocks", "blocks its thread for more than a second"),
    (Fault::RuntimeGone, "runtime", "shut-down", "is shut down under the session"),
    (Fault::CurrentThread, "runtime", "current-thread", "has one thread only"),
];

impl Fault {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.0)
    }

    fn row(self) -> Row {
        // Faults are only had from the rows.
        ROWS.iter().copied().find(|row| row.0 == self).unwrap_or((self, "", "", ""))
    }

    /// Whose fault it is.
    pub fn whose(self) -> &'static str {
        self.row().1
    }

    /// Its name, as in the table.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// What it is.
    pub fn about(self) -> &'static str {
        self.row().3
    }

    /// The fault of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|fault| fault.name() == name)
    }

    /// What the CLI does, as faults of a script file.
    fn faults(self) -> &'static str {
        match self {
            Self::ExitGood => "exit 0",
            Self::ExitBad => "exit 1",
            Self::IgnoresTerm => "ignore-sigterm stderr 1 hang",
            Self::Hangs => "stderr 1 hang",
            Self::ClosesStdout => "close-stdout",
            Self::ClosesStdin | Self::BrokenPipe => "close-stdin",
            Self::FloodsStderr => "stderr 300kb",
            Self::FloodsMessages => "messages 2000",
            Self::NoJson => "garbage",
            Self::NoUtf8 => "garbage-utf8",
            Self::LongLine => "long-line 1mb",
            Self::HalfLineExitGood => r#"bytes "{\"type\":\"half" exit 0"#,
            Self::HalfLineExitBad => r#"bytes "{\"type\":\"half" exit 1"#,
            Self::Grandchild => "leave-grandchild 1s",
            Self::StrangeAnswer => {
                r#"line "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"nobody\",\"response\":{}}}""#
            }
            Self::StrangeRequest => {
                r#"line "{\"type\":\"control_request\",\"request_id\":\"strange\",\"request\":{\"subtype\":\"make_coffee\"}}""#
            }
            Self::SlowReader => "stop-reading",
            Self::DataAtExit => "messages 500 exit 0",
            _ => "",
        }
    }

    /// What happens to an answer of the CLI.
    fn changes_an_answer(self) -> Option<&'static str> {
        match self {
            Self::AnswersTwice => Some("twice"),
            Self::WrongShape => Some("wrong-shape"),
            _ => None,
        }
    }

    /// Whether the CLI ends at once.
    pub(super) fn ends_the_cli(self) -> bool {
        self.faults().contains("exit") || self == Self::Grandchild
    }

    /// Whether the CLI still writes after it.
    pub(super) fn leaves_the_cli_writing(self) -> bool {
        !self.ends_the_cli()
            && !matches!(self, Self::ClosesStdout | Self::IgnoresTerm | Self::Hangs)
    }

    /// So many messages of the CLI have arrived, or will before the end.
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

/// So many messages arrive before the fault.
const MARKS: usize = 3;

/// The script file that brings a CLI into a state, holds it there and lets a fault strike.
pub(super) fn script(state: State, fault: Fault) -> String {
    let faults = fault.faults();
    // What comes after the faults on the same pipe says that they have been read.
    let mark = format!("messages {MARKS} stderr 1 {faults} messages 1 stderr 1");
    let (point, then) = match state {
        State::Spawning if fault.changes_an_answer().is_some() => ("at start", ""),
        State::Spawning => ("at start", "hang"),
        _ => ("at signal", ""),
    };
    let held = match (state, fault.changes_an_answer()) {
        (State::Spawning | State::Handshake, Some(change)) => format!(
            "on control_request/initialize stderr 1\n\
             before control_response/initialize {change}\n"
        ),
        (_, Some(change)) => {
            format!("{}before control_response/set_permission_mode {change}\n", state.held())
        }
        // It is answered when nobody waits any more.
        (_, None) if fault == Fault::OperationDropped && state.can_ask() => {
            State::Operation.held().to_owned()
        }
        (_, None) => state.held().to_owned(),
    };
    format!("faults\n{point} {mark} {then}\n{held}")
}
