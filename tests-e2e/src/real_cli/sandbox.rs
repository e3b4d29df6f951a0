//! What the CLI gets to see of a machine: fresh directories and a handful of variables.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// The key that the CLI is given. The mock takes any.
pub const DUMMY_KEY: &str = "sk-dummy-key-for-tests";

/// Where programs are looked for.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A home and a project that nobody used before; both vanish with the value.
#[derive(Debug)]
pub struct SandboxDir {
    root: PathBuf,
    // Removed when the last user of the sandbox is gone.
    _directory: TempDir,
}

impl SandboxDir {
    /// Makes the directories.
    ///
    /// # Errors
    ///
    /// When the system's directory for temporary files cannot be written.
    pub fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("claude-e2e-").tempdir()?;
        // The CLI reports real paths, so that is what has to be looked for in recordings.
        let root = directory.path().canonicalize()?;
        let sandbox = Self { root, _directory: directory };
        for path in [sandbox.home(), sandbox.config(), sandbox.project(), sandbox.temporary()] {
            fs::create_dir_all(path)?;
        }
        Ok(sandbox)
    }

    /// The directory that holds all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The home of the CLI's user.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Where the CLI keeps its settings and transcripts.
    pub fn config(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// The directory the CLI works in.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Where the CLI puts its temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Every variable that the CLI gets, with the Messages API at `api`.
    pub fn variables(&self, api: &str) -> BTreeMap<String, String> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("PATH", PATH.to_owned()),
            ("HOME", path(self.home())),
            ("CLAUDE_CONFIG_DIR", path(self.config())),
            // Without it the CLI leaves files of its own in the machine's directory.
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
