//! What can go wrong with a CLI, at any point of its life.

use std::time::Duration;

/// Troubles and when they strike.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Vec<FaultRule>,
}

/// When a fault strikes.
///
/// Lines have kinds: `assistant`, `result`, `system/init`, `stream_event`,
/// `control_request/hook_callback`, `control_response/initialize`, `command_lifecycle`, … A pattern
/// is such a kind, its first word (`control_response`), or `*` for every line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point {
    /// Before anything else.
    Start,
    /// Instead of, or just before, the n-th line (from 1) that the CLI would write of this kind.
    Before(String, usize),
    /// Just after the n-th line of this kind.
    After(String, usize),
    /// When the n-th line of the host of this kind was read: `user`, `control_request/initialize`,
    /// `control_response`, …
    Read(String, usize),
    /// When the process gets its first SIGUSR1, whatever it is doing. Only as a process.
    Signal,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Ends with this exit code, at once.
    Exit(i32),
    /// Is ended by this signal, at once.
    Signal(i32),
    /// Does nothing any more, but lives; stdin is not read either.
    Hang,
    /// From now on SIGTERM does nothing.
    IgnoreTerminate,
    /// Writes these bytes as they are: garbage, invalid UTF-8, half a line, several lines.
    Bytes(Vec<u8>),
    /// Writes a line of this many bytes that is one JSON object of an unknown type.
    LongLine(usize),
    /// Writes this many `assistant` messages.
    Messages(usize),
    /// Writes this many text deltas.
    Deltas(usize),
    /// Writes this many bytes to stderr, in lines.
    Stderr(usize),
    /// Waits before it goes on.
    Pause(Duration),
    /// Does not write the line.
    Swallow,
    /// Writes the line twice.
    Twice,
    /// Writes the line only after the next one.
    Behind,
    /// Writes the line with another `request_id`.
    WrongId,
    /// Writes the line with a `response` (or `request`) of the wrong shape.
    WrongShape,
    /// Closes stdout and lives on.
    CloseStdout,
    /// Closes stdin and lives on: what the host writes then fails.
    CloseStdin,
    /// Exits with 0 while another process holds stdout open for this long. Only as a process.
    LeaveGrandchild(Duration),
    /// Stops reading stdin.
    StopReading,
}

#[derive(Debug, Clone)]
struct FaultRule {
    point: Point,
    fault: Fault,
}

impl Faults {
    /// No faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault.
    #[must_use]
    pub fn at(mut self, point: Point, fault: Fault) -> Self {
        self.rules.push(FaultRule { point, fault });
        self
    }

    /// Adds a fault at the start.
    #[must_use]
    pub fn at_start(self, fault: Fault) -> Self {
        self.at(Point::Start, fault)
    }

    /// Adds a fault before the first line of this kind.
    #[must_use]
    pub fn before(self, kind: impl Into<String>, fault: Fault) -> Self {
        self.at(Point::Before(kind.into(), 1), fault)
    }

    /// Adds a fault after the first line of this kind.
    #[must_use]
    pub fn after(self, kind: impl Into<String>, fault: Fault) -> Self {
        self.at(Point::After(kind.into(), 1), fault)
    }

    /// Adds a fault when the first line of the host of this kind was read.
    #[must_use]
    pub fn on_read(self, kind: impl Into<String>, fault: Fault) -> Self {
        self.at(Point::Read(kind.into(), 1), fault)
    }

    /// Whether something is to happen at a signal.
    pub(crate) fn await_signal(&self) -> bool {
        self.rules.iter().any(|rule| rule.point == Point::Signal)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = (&Point, &Fault)> {
        self.rules.iter().map(|rule| (&rule.point, &rule.fault))
    }
}
