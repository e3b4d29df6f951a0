//! The report of the doctor.

use std::fmt;

use claude_wire::visible::visible_message;

/// The findings of a check. Displays one line for each finding.
#[derive(Clone, Debug)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// Returns the findings, in the order of the checks.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns whether no problem was found that would make a run fail.
    pub fn is_healthy(&self) -> bool {
        self.problems().next().is_none()
    }

    /// Returns the findings that would make a run fail.
    pub fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Problem)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    level: Level,
    check: Check,
    what: String,
    help: Option<String>,
}

impl Finding {
    pub(super) fn good(check: Check, what: impl Into<String>) -> Self {
        Self { level: Level::Good, check, what: what.into(), help: None }
    }

    /// Creates a warning. A text that has its own help keeps it.
    pub(super) fn warning(check: Check, what: impl Into<String>, help: &str) -> Self {
        let what = what.into();
        let (what, help) = what.rsplit_once("; help: ").unwrap_or((&what, help));
        let (what, help) = (what.to_owned(), Some(help.to_owned()));
        Self { level: Level::Warning, check, what, help }
    }

    pub(super) fn problem(check: Check, what: impl Into<String>, help: &str) -> Self {
        Self { level: Level::Problem, ..Self::warning(check, what, help) }
    }

    /// Returns the severity.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns what was checked.
    pub fn check(&self) -> Check {
        self.check
    }

    /// Returns what was found.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns what to do about it; `None` at [`Level::Good`].
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Good => "ok",
            Level::Warning => "warning",
            Level::Problem => "PROBLEM",
        };
        write!(f, "{level:<8}{}: {}", self.check, visible_message(&self.what))?;
        match &self.help {
            Some(help) => write!(f, "; help: {}", visible_message(help)),
            None => Ok(()),
        }
    }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// The check passed.
    Good,
    /// Something may not work as expected.
    Warning,
    /// A run would fail.
    Problem,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Config files and environment variables.
    Configuration,
    /// The options.
    Options,
    /// The executable of the CLI.
    Executable,
    /// The version of the CLI, and whether the CLI runs.
    Version,
    /// The working directory.
    WorkingDirectory,
    /// The directory in which the CLI keeps its own files.
    ConfigDirectory,
    /// The credentials of the CLI.
    Credentials,
    /// Files that configure MCP servers.
    McpConfig,
    /// Other files and directories that are named by options.
    Files,
    /// Whether the CLI allows this user to bypass permissions.
    Permissions,
    /// The handshake.
    Handshake,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configuration => "configuration",
            Self::Options => "options",
            Self::Executable => "executable",
            Self::Version => "version",
            Self::WorkingDirectory => "working directory",
            Self::ConfigDirectory => "config directory",
            Self::Credentials => "credentials",
            Self::McpConfig => "mcp config",
            Self::Files => "files",
            Self::Permissions => "permissions",
            Self::Handshake => "handshake",
        })
    }
}
