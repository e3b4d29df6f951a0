//! Finding and checking the executable of the CLI.

mod check;
mod find;
mod version;

use std::path::{Path, PathBuf};

use crate::error::Result;

pub use version::CliVersion;

/// The oldest CLI whose one-way form is understood.
pub const MINIMUM_FOR_PRINT_MODE: CliVersion = CliVersion::new(1, 0, 0);

/// An executable of the CLI that was found and asked for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cli {
    path: PathBuf,
    version: CliVersion,
}

impl Cli {
    /// Finds the CLI that would be used: `path` if there is one, else `CLAUDE_CLI_PATH`, `PATH` and
    /// the places where installers put it; and asks it for its version.
    ///
    /// Blocks for up to five seconds the first time; after that the answer is remembered.
    ///
    /// # Errors
    /// [`CliNotFound`](crate::ErrorKind::CliNotFound) when there is none, or `path` names something
    /// else; [`UnsupportedCliVersion`](crate::ErrorKind::UnsupportedCliVersion),
    /// [`UnknownCliVersion`](crate::ErrorKind::UnknownCliVersion) or
    /// [`VersionDetection`](crate::ErrorKind::VersionDetection) when it will not do.
    pub fn find(path: Option<PathBuf>) -> Result<Self> {
        let path = find::find(&find::Places::of_this_process(path))?;
        let version = version::judge(&check::probe(&path), MINIMUM_FOR_PRINT_MODE)?;
        Ok(Self { path, version })
    }

    /// The executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version.
    pub fn version(&self) -> CliVersion {
        self.version
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_text_file_an_old_one_and_a_strange_one_are_refused_each_in_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str, mode| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Cli::find(Some(path))
        };
        let good = program("good", "#!/bin/sh\necho '2.1.325 (Claude Code)'\n", 0o755).unwrap();
        assert_eq!(good.version(), CliVersion::new(2, 1, 325));
        assert_eq!(good.path(), folder.path().join("good"));
        for (name, text, mode, kind) in [
            ("text", "hello", 0o644, ErrorKind::CliNotFound),
            ("old", "#!/bin/sh\necho 0.9.9\n", 0o755, ErrorKind::UnsupportedCliVersion),
            ("strange", "#!/bin/sh\necho hello\n", 0o755, ErrorKind::UnknownCliVersion),
            ("failing", "#!/bin/sh\nexit 3\n", 0o755, ErrorKind::VersionDetection),
        ] {
            let error = program(name, text, mode).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.suggestion().is_some(), "{error}");
        }
    }
}
