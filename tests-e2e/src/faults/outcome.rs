//! The outcome of a fault.

use claude_agent_kit::{ErrorKind, WarningCode};

use crate::golden::Golden;

/// The outcome of a fault, observed or expected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellOutcome {
    /// How the session ended.
    pub end: SessionEnd,
    /// How the pending future of the state resolved.
    pub waiter: Resolution,
    /// How the requests that were sent later, or along with it, resolved, in order.
    pub requests: Vec<Resolution>,
    /// The warnings, without duplicates.
    pub warnings: Vec<WarningCode>,
    /// A warning that is allowed but not required, because of a race.
    pub optional_warning: Option<WarningCode>,
    /// The text of the final event. Not compared.
    pub text: String,
    /// What was written to the CLI, and what the reader of all messages received. Not compared.
    pub golden: Golden,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The session was stopped.
    Stopped,
    /// Stdin was closed, and the session completed.
    Completed,
    /// The session failed.
    Failed(ErrorKind),
    /// The host is gone, so the end was not observed.
    Unobserved,
}

/// How a pending future resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// No future was pending.
    NoWaiter,
    /// It completed successfully.
    Done,
    /// The result of the turn reports an interrupt.
    Interrupted,
    /// The future was dropped.
    Dropped,
    /// It failed with this error.
    Error(ErrorKind),
}

impl CellOutcome {
    pub(super) fn new(end: SessionEnd, waiter: Resolution) -> Self {
        Self {
            end,
            waiter,
            requests: Vec::new(),
            warnings: Vec::new(),
            optional_warning: None,
            text: String::new(),
            golden: Golden::default(),
        }
    }

    pub(super) fn with_requests(mut self, resolution: &[Resolution]) -> Self {
        self.requests.extend_from_slice(resolution);
        self
    }

    pub(super) fn with_warnings(mut self, codes: &[WarningCode]) -> Self {
        self.warnings.extend_from_slice(codes);
        self
    }

    pub(super) fn with_optional_warning(mut self, code: WarningCode) -> Self {
        self.optional_warning = Some(code);
        self
    }

    /// Returns whether an observed line matches this outcome.
    pub fn allows(&self, line: &str) -> bool {
        let crossed = self.optional_warning.map(|code| self.clone().with_warnings(&[code]));
        line == self.line() || crossed.is_some_and(|crossed| line == crossed.line())
    }

    /// Formats the outcome as one line, for comparison and for humans.
    pub fn line(&self) -> String {
        let Self { end, waiter, requests, warnings, .. } = self;
        format!("{end:?}, waiter {waiter:?}, requests {requests:?}, warnings {warnings:?}")
    }

    /// Formats the outcome as the code that the legend explains.
    pub fn code(&self) -> String {
        let end = match self.end {
            SessionEnd::Stopped => "S",
            SessionEnd::Completed => "C",
            SessionEnd::Failed(kind) => error_code(kind),
            SessionEnd::Unobserved => "–",
        };
        let mut code = format!("{end}/{}", resolution_code(self.waiter));
        for warning in &self.warnings {
            code.push('+');
            code.push_str(warning_code(*warning));
        }
        if let Some(warning) = self.optional_warning {
            code.push_str("+(");
            code.push_str(warning_code(warning));
            code.push(')');
        }
        code
    }
}

/// The legend: codes of the session end, of the pending future and of the warnings.
pub(super) const LEGEND: &[(&str, &str)] = &[
    ("S", "the session was stopped"),
    ("C", "the session completed after stdin was closed"),
    ("P", "`ProcessFailed`"),
    ("X", "`ExitedDuringInit`"),
    ("T", "`InitializeTimeout`"),
    ("R", "`RuntimeGone`"),
    ("–", "not observed, or no future was pending"),
    ("ok", "the future completed successfully"),
    ("int", "the result reports an interrupt"),
    ("drop", "the future was dropped"),
    ("tc", "`TransportClosed`"),
    ("st", "`SessionStopped`"),
    ("ie", "`InputEnded`"),
    ("x", "`ExitedDuringInit`"),
    ("t", "`InitializeTimeout`"),
    ("r", "`RuntimeGone`"),
    ("+m", "warning `Malformed`"),
    ("+o", "warning `OversizedLine`"),
    ("+h", "warning `IncompleteLastLine`"),
    ("+u", "warning `UnansweredRequest`"),
    ("+f", "warning `CallbackFailed`"),
    ("+l", "warning `CallbackTimedOut`"),
    ("+b", "warning `CallbackBlocked`"),
    (
        "+(f)",
        "possibly a warning `CallbackFailed`: the callback and the session end at the same time",
    ),
];

fn error_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ProcessFailed => "P",
        ErrorKind::ExitedDuringInit => "X",
        ErrorKind::InitializeTimeout => "T",
        ErrorKind::RuntimeGone => "R",
        _ => "?",
    }
}

fn resolution_code(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::NoWaiter => "–",
        Resolution::Done => "ok",
        Resolution::Interrupted => "int",
        Resolution::Dropped => "drop",
        Resolution::Error(kind) => match kind {
            ErrorKind::TransportClosed => "tc",
            ErrorKind::SessionStopped => "st",
            ErrorKind::InputEnded => "ie",
            ErrorKind::ExitedDuringInit => "x",
            ErrorKind::InitializeTimeout => "t",
            ErrorKind::RuntimeGone => "r",
            _ => "?",
        },
    }
}

fn warning_code(code: WarningCode) -> &'static str {
    match code {
        WarningCode::Malformed => "m",
        WarningCode::OversizedLine => "o",
        WarningCode::IncompleteLastLine => "h",
        WarningCode::UnansweredRequest => "u",
        WarningCode::CallbackFailed => "f",
        WarningCode::CallbackTimedOut => "l",
        WarningCode::CallbackBlocked => "b",
        _ => "?",
    }
}
