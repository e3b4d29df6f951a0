//! Fault injection for the simulated CLI.

use std::time::Duration;

/// The faults of a run, each with the point at which it occurs.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    rules: Vec<FaultRule>,
}

/// The point at which a fault occurs.
///
/// A line has a kind, such as `assistant`, `result`, `system/init`, `stream_event`,
/// `control_request/hook_callback`, `control_response/initialize` or `command_lifecycle`. A pattern is a
/// kind, the first part of a kind (`control_response`), or `*` for every line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point {
    /// At startup.
    Start,
    /// Before, or instead of, the n-th line of this kind (from 1) that the CLI writes.
    Before(String, usize),
    /// After the n-th line of this kind that the CLI writes.
    After(String, usize),
    /// When the CLI has read the n-th line of this kind from the host: `user`,
    /// `control_request/initialize`, `control_response`, …
    Read(String, usize),
    /// When the process receives its first SIGUSR1. Only for the program `claude-sim`.
    Signal,
}

/// A failure to inject.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Exits immediately with this code.
    Exit(i32),
    /// Ends immediately with this signal.
    Signal(i32),
    /// Hangs: writes nothing and reads nothing, but does not exit.
    Hang,
    /// Ignores SIGTERM from now on.
    IgnoreTerminate,
    /// Writes these bytes to stdout unchanged: garbage, invalid UTF-8, a partial line, several lines.
    Bytes(Vec<u8>),
    /// Writes a line of this many bytes that is a JSON object of an unknown type.
    LongLine(usize),
    /// Writes this many `assistant` messages.
    Messages(usize),
    /// Writes this many text deltas.
    Deltas(usize),
    /// Writes this many bytes to stderr, in lines.
    Stderr(usize),
    /// Waits this long before continuing.
    Pause(Duration),
    /// Does not write the line.
    Swallow,
    /// Writes the line twice.
    Twice,
    /// Writes the line after the next one.
    Behind,
    /// Writes the line with another `request_id`.
    WrongId,
    /// Writes the line with a `response` (or `request`) of the wrong shape.
    WrongShape,
    /// Closes stdout and keeps running.
    CloseStdout,
    /// Closes stdin and keeps running, so that writes of the host fail.
    CloseStdin,
    /// Exits with code 0 while another process keeps stdout open for this long. Only for the program
    /// `claude-sim`.
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
    /// Creates a set without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a fault.
    #[must_use]
    pub fn at(mut self, point: Point, fault: Fault) -> Self {
        self.rules.push(FaultRule { point, fault });
        self
    }

    /// Adds a fault at startup.
    #[must_use]
    pub fn at_start(self, fault: Fault) -> Self {
        self.at(Point::Start, fault)
    }

    /// Adds a fault before the first line of this kind that the CLI writes.
    #[must_use]
    pub fn before(self, kind: impl Into<String>, fault: Fault) -> Self {
        self.at(Point::Before(kind.into(), 1), fault)
    }

    /// Adds a fault after the first line of this kind that the CLI writes.
    #[must_use]
    pub fn after(self, kind: impl Into<String>, fault: Fault) -> Self {
        self.at(Point::After(kind.into(), 1), fault)
    }

    /// Adds a fault when the CLI has read the first line of this kind from the host.
    #[must_use]
    pub fn on_read(self, kind: impl Into<String>, fault: Fault) -> Self {
        self.at(Point::Read(kind.into(), 1), fault)
    }

    /// Returns whether a fault is triggered by SIGUSR1.
    pub(crate) fn has_signal_fault(&self) -> bool {
        self.rules.iter().any(|rule| rule.point == Point::Signal)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = (&Point, &Fault)> {
        self.rules.iter().map(|rule| (&rule.point, &rule.fault))
    }
}
