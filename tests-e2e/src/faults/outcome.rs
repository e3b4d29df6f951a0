//! What comes of a fault.

use claude_agent_kit::{ErrorKind, WarningCode};

use crate::golden::Golden;

/// What came of a fault, or should.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How the session ended.
    pub end: End,
    /// What was told to whoever waited in the state.
    pub waited: Told,
    /// What was told to those who asked since, or along with it, in their order.
    pub asked: Vec<Told>,
    /// The warnings, each once.
    pub warnings: Vec<WarningCode>,
    /// A warning that may come or not, because two things cross.
    pub perhaps: Option<WarningCode>,
    /// What people are told of the end. It does not count.
    pub text: String,
    /// What was written to the CLI, and what was given to whoever reads all messages. It does not
    /// count.
    pub golden: Golden,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was stopped.
    Stopped,
    /// Its input was ended, and it came to a good end.
    Completed,
    /// It failed.
    Failed(ErrorKind),
    /// Nobody is there who could be told.
    Untold,
}

/// What somebody was told who waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told {
    /// Nobody waited.
    Nobody,
    /// What was wanted.
    Done,
    /// That the turn was interrupted, in its result.
    Interrupted,
    /// Nothing: the future was dropped.
    Dropped,
    /// An error.
    Error(ErrorKind),
}

impl Outcome {
    pub(super) fn new(end: End, waited: Told) -> Self {
        Self {
            end,
            waited,
            asked: Vec::new(),
            warnings: Vec::new(),
            perhaps: None,
            text: String::new(),
            golden: Golden::default(),
        }
    }

    pub(super) fn asked(mut self, told: &[Told]) -> Self {
        self.asked.extend_from_slice(told);
        self
    }

    pub(super) fn warned(mut self, codes: &[WarningCode]) -> Self {
        self.warnings.extend_from_slice(codes);
        self
    }

    pub(super) fn perhaps_warned(mut self, code: WarningCode) -> Self {
        self.perhaps = Some(code);
        self
    }

    /// Whether what came, as one line, is this.
    pub fn allows(&self, line: &str) -> bool {
        let crossed = self.perhaps.map(|code| self.clone().warned(&[code]));
        line == self.line() || crossed.is_some_and(|crossed| line == crossed.line())
    }

    /// It as one line, to be compared and read.
    pub fn line(&self) -> String {
        let Self { end, waited, asked, warnings, .. } = self;
        format!("{end:?}, waited {waited:?}, asked {asked:?}, warned {warnings:?}")
    }

    /// It in a few letters, as the legend explains.
    pub fn code(&self) -> String {
        let end = match self.end {
            End::Stopped => "S",
            End::Completed => "C",
            End::Failed(kind) => error_code(kind),
            End::Untold => "–",
        };
        let mut code = format!("{end}/{}", told_code(self.waited));
        for warning in &self.warnings {
            code.push('+');
            code.push_str(warning_code(*warning));
        }
        if let Some(warning) = self.perhaps {
            code.push_str("+(");
            code.push_str(warning_code(warning));
            code.push(')');
        }
        code
    }
}

/// What the letters mean, those of the end, of who waited, and of the warnings.
pub(super) const LEGEND: &[(&str, &str)] = &[
    ("S", "the session was stopped"),
    ("C", "the session completed: its input was ended, and it came to a good end"),
    ("P", "`ProcessFailed`"),
    ("X", "`ExitedDuringInit`"),
    ("T", "`InitializeTimeout`"),
    ("R", "`RuntimeGone`"),
    ("–", "nobody is there"),
    ("ok", "what was waited for"),
    ("int", "a result that says it was interrupted"),
    ("drop", "nothing, the future was dropped"),
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
        "perhaps a warning `CallbackFailed`: the callback and the session end at the same time",
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

fn told_code(told: Told) -> &'static str {
    match told {
        Told::Nobody => "–",
        Told::Done => "ok",
        Told::Interrupted => "int",
        Told::Dropped => "drop",
        Told::Error(kind) => match kind {
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
