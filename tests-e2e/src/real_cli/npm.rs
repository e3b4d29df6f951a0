//! Installs a pinned package with npm, once per machine.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache;

/// A package at an exact version, with the checksums of its dependencies.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    /// The name of the package.
    pub(crate) name: &'static str,
    /// The `package.json` that depends on it.
    pub(crate) package: Cow<'static, str>,
    /// Its `package-lock.json`; without one, the registry chooses the versions of dependencies.
    pub(crate) lock: Option<&'static str>,
    /// The prefix of its directory in the cache.
    pub(crate) folder: &'static str,
    /// Additional arguments for npm.
    pub(crate) arguments: &'static [&'static str],
}

/// Why a pinned package is not available.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// The installer could not be started.
    ToolMissing {
        /// The program that is missing.
        tool: &'static str,
        /// What it should have installed.
        wanted: String,
        /// Why it could not be started.
        error: io::Error,
    },
    /// The installer failed.
    ToolFailed {
        /// The program that failed.
        tool: &'static str,
        /// What it should have installed.
        wanted: String,
        /// Its stderr.
        output: String,
    },
    /// The installed package cannot be used.
    Unusable(String),
    /// The cache could not be read or written.
    Cache(PathBuf, io::Error),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolMissing { tool, wanted, error } => write!(
                f,
                "{tool}, which installs {wanted}, could not be started: {error}; help: install it with \
                 your system's package manager and make sure that it is on the PATH"
            ),
            Self::ToolFailed { tool, wanted, output } => {
                write!(f, "{tool} failed to install {wanted}: {output}")
            }
            Self::Unusable(reason) => write!(f, "the installed package cannot be used: {reason}"),
            Self::Cache(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl Error for InstallError {}

impl Pin {
    /// Returns the pinned version.
    pub(crate) fn version(&self) -> String {
        let package: serde_json::Value = serde_json::from_str(&self.package).unwrap_or_default();
        package["dependencies"][self.name].as_str().unwrap_or("unpinned").to_owned()
    }

    /// Installs the package if necessary and returns the directory that contains `node_modules`.
    pub(crate) fn install(&self) -> Result<PathBuf, InstallError> {
        let version = self.version();
        cache::once(&format!("{}-{version}", self.folder), |staging| self.install_into(staging))
    }

    fn install_into(&self, staging: &Path) -> Result<(), InstallError> {
        let failed = |error| InstallError::Cache(staging.to_owned(), error);
        fs::write(staging.join("package.json"), &*self.package).map_err(failed)?;
        let mut npm = Command::new("npm");
        match self.lock {
            Some(lock) => {
                fs::write(staging.join("package-lock.json"), lock).map_err(failed)?;
                npm.arg("ci")
            }
            None => npm.args(["install", "--no-package-lock"]),
        };
        npm.args(["--ignore-scripts", "--no-audit", "--no-fund"]).args(self.arguments);
        run(npm.current_dir(staging), "npm", &format!("{} {}", self.name, self.version()))
    }
}

/// Runs an installer.
pub(crate) fn run(
    command: &mut Command,
    tool: &'static str,
    wanted: &str,
) -> Result<(), InstallError> {
    let wanted = wanted.to_owned();
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return Err(InstallError::ToolMissing { tool, wanted, error }),
    };
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(InstallError::ToolFailed { tool, wanted, output })
}
