//! The results of a run.

use std::fmt;
use std::time::Duration;

/// The results of all checks.
#[derive(Clone, Debug)]
#[must_use = "a report with failures is not an error; call `assert`"]
pub struct Report {
    pub(super) checks: Vec<CheckReport>,
}

/// The result of one check.
#[derive(Clone, Debug)]
pub struct CheckReport {
    pub(super) name: &'static str,
    pub(super) official: Option<u8>,
    pub(super) failure: Option<String>,
    pub(super) duration: Duration,
}

impl Report {
    /// Returns the result of each check, in the order in which they ran.
    pub fn checks(&self) -> &[CheckReport] {
        &self.checks
    }

    /// Returns whether every check passed.
    pub fn is_success(&self) -> bool {
        self.failures().next().is_none()
    }

    fn failures(&self) -> impl Iterator<Item = &CheckReport> {
        self.checks.iter().filter(|check| check.failure.is_some())
    }

    /// Panics with all failures if a check failed.
    ///
    /// # Panics
    /// Panics if a check failed.
    pub fn assert(&self) {
        assert!(self.is_success(), "the store does not conform:\n{self}");
    }
}

/// Writes one line per failed check, and the number of those that passed.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in self.failures() {
            writeln!(f, "{}: {}", check.name, check.failure.as_deref().unwrap_or_default())?;
        }
        let passed = self.checks.len() - self.failures().count();
        write!(f, "{passed} of {} checks passed", self.checks.len())
    }
}

impl CheckReport {
    /// Returns the name of the check.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of the official check that this one covers: 1 to 14.
    pub fn official(&self) -> Option<u8> {
        self.official
    }

    /// Returns how long the check took.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the reason of the failure, or `None` if the check passed.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
