//! What an examination found.

use std::fmt;

/// Everything that an examination found; prints one line for each finding.
#[derive(Clone, Debug)]
pub struct Report {
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        Self { findings }
    }

    /// The findings, in the order in which things were looked at.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Whether nothing was found that would keep a run from working.
    pub fn is_healthy(&self) -> bool {
        self.problems().next().is_none()
    }

    /// What would keep a run from working.
    pub fn problems(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.level == Level::Problem)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))
    }
}

/// One thing that was looked at.
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

    pub(super) fn warning(check: Check, what: impl Into<String>, help: &str) -> Self {
        let help = Some(help.to_owned());
        Self { level: Level::Warning, check, what: what.into(), help }
    }

    pub(super) fn problem(check: Check, what: impl Into<String>, help: &str) -> Self {
        Self { level: Level::Problem, ..Self::warning(check, what, help) }
    }

    /// How bad it is.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What was looked at.
    pub fn check(&self) -> Check {
        self.check
    }

    /// What was found.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// What to do about it; nothing if all is well.
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
        write!(f, "{level:<8}{}: {}", self.check, self.what)?;
        match &self.help {
            Some(help) => write!(f, "; help: {help}"),
            None => Ok(()),
        }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// All is well.
    Good,
    /// Something may not work as it looks.
    Warning,
    /// A run would fail.
    Problem,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Config files and variables.
    Configuration,
    /// The options.
    Options,
    /// The executable of the CLI.
    Executable,
    /// Its version, and whether it runs at all.
    Version,
    /// The working directory.
    WorkingDirectory,
    /// Where the CLI keeps its own files.
    ConfigDirectory,
    /// How the CLI can log in.
    Credentials,
    /// Files that configure MCP servers.
    McpConfig,
    /// Other files and directories that options name.
    Files,
    /// Whether the CLI lets this user run without permissions.
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
