//! The environment of a CLI under test: fresh directories and a few variables.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The API key of the CLI. The mock API accepts any.
pub const DUMMY_KEY: &str = "sk-dummy-key-for-tests";

/// The `PATH` of the CLI.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A fresh home and project directory, removed when the value is dropped.
#[derive(Debug)]
pub struct SandboxDir {
    root: PathBuf,
    // Removed when the last user of the sandbox is dropped.
    _directory: TempDir,
}

impl SandboxDir {
    /// Creates the directories.
    ///
    /// # Errors
    ///
    /// Returns an error when the temporary directory cannot be created.
    pub fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("claude-e2e-").tempdir()?;
        // The CLI reports canonical paths, which recordings are searched for.
        let root = directory.path().canonicalize()?;
        let sandbox = Self { root, _directory: directory };
        for path in [sandbox.home(), sandbox.config(), sandbox.project(), sandbox.temporary()] {
            fs::create_dir_all(path)?;
        }
        Ok(sandbox)
    }

    /// Returns the directory that contains all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the home directory.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the directory of the CLI's settings and transcripts.
    pub fn config(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// Returns the working directory of the CLI.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Returns the directory of the CLI's temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Returns the environment variables of the CLI, with the Messages API at `api`.
    pub fn variables(&self, api: &str) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("PATH", PATH.to_owned()),
            ("HOME", path(self.home())),
            ("CLAUDE_CONFIG_DIR", path(self.config())),
            // Otherwise the CLI writes files to the temporary directory of this machine.
            ("TMPDIR", path(self.temporary())),
            ("CLAUDE_CODE_TMPDIR", path(self.temporary())),
            ("ANTHROPIC_BASE_URL", api.to_owned()),
            ("ANTHROPIC_API_KEY", DUMMY_KEY.to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
            ("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
