//! Finding and checking the executable of the CLI.

mod check;
mod find;
mod program;
mod version;

use std::path::{Path, PathBuf};

use crate::driver;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{Options, prepare};
use crate::prompt::Prompt;
use crate::tasks::BoxFuture;
use crate::transport::Launch;
use crate::warning::{Warning, WarningCode};

pub(crate) use find::{Places, find};
#[cfg(unix)]
pub(crate) use program::find_on_path;
pub(crate) use program::{Program, Runtime};
pub use version::CliVersion;
pub(crate) use version::{Probe, judge};

/// The oldest supported CLI for print mode.
pub(crate) const MINIMUM_FOR_PRINT_MODE: CliVersion = CliVersion::new(1, 0, 0);

/// The oldest CLI that passes the session tests; `docs/cli-versions.md` describes how it was determined.
pub const MINIMUM_VERSION: CliVersion = CliVersion::new(2, 1, 261);

/// The requirements on the version of a CLI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionPolicy {
    /// The CLI is run in print mode, which has no handshake.
    pub(crate) print_mode: bool,
    /// An unknown version is accepted.
    pub(crate) permissive: bool,
    /// The version is not checked.
    pub(crate) skip: bool,
}

/// A CLI whose version was checked.
#[derive(Debug)]
pub(crate) struct CheckedCli {
    pub(crate) program: Program,
    /// `None` if it was not checked or is unknown.
    pub(crate) version: Option<CliVersion>,
    pub(crate) warnings: Vec<Warning>,
}

/// Finds the executable that a run with these options starts.
///
/// # Errors
/// [`ErrorKind::CliNotFound`].
pub(crate) fn find_program(options: &Options) -> Result<Program> {
    let places = Places::of_this_process(options.host.cli_path.clone());
    Program::of(find(&places)?, &options.host.runtime, &places)
}

/// Returns the oldest supported version.
pub(crate) fn minimum(print_mode: bool) -> CliVersion {
    if print_mode { MINIMUM_FOR_PRINT_MODE } else { MINIMUM_VERSION }
}

impl VersionPolicy {
    /// Checks the version of a program, which is run with the user, environment and working
    /// directory of `launch`.
    ///
    /// # Errors
    /// [`UnsupportedCliVersion`](ErrorKind::UnsupportedCliVersion), and
    /// [`SpawnFailed`](ErrorKind::SpawnFailed) when the program cannot be started. In print mode,
    /// which has no handshake, also [`UnknownCliVersion`](ErrorKind::UnknownCliVersion) and
    /// [`VersionDetection`](ErrorKind::VersionDetection).
    pub(crate) fn check(
        self,
        program: Program,
        launch: &Launch,
    ) -> BoxFuture<'_, Result<CheckedCli>> {
        Box::pin(async move {
            if self.skip {
                return Ok(CheckedCli { program, version: None, warnings: Vec::new() });
            }
            let probe = check::probe(&program, launch).await?;
            self.judge(program, &probe)
        })
    }

    /// Checks a version that is known without asking the program.
    ///
    /// # Errors
    /// [`UnsupportedCliVersion`](ErrorKind::UnsupportedCliVersion).
    pub(crate) fn check_known(self, version: CliVersion) -> Result<()> {
        if self.skip {
            return Ok(());
        }
        judge(&Probe::Printed(version.to_string()), minimum(self.print_mode)).map(drop)
    }

    fn judge(self, program: Program, probe: &Probe) -> Result<CheckedCli> {
        let error = match judge(probe, minimum(self.print_mode)) {
            Ok(version) => {
                return Ok(CheckedCli { program, version: Some(version), warnings: Vec::new() });
            }
            Err(error) => error,
        };
        let code = match error.kind() {
            ErrorKind::UnknownCliVersion => WarningCode::UnknownCliVersion,
            ErrorKind::VersionDetection => WarningCode::VersionDetection,
            _ => return Err(error),
        };
        if self.print_mode && !self.permissive {
            return Err(error);
        }
        // The handshake follows, or the host accepts an unknown version.
        let warning = Warning::new(code, error.to_string());
        Ok(CheckedCli { program, version: None, warnings: vec![warning] })
    }
}

/// An executable of the CLI and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cli {
    path: PathBuf,
    version: CliVersion,
}

impl Cli {
    /// Finds the CLI that a run with these options would start, and its version: the option
    /// [`cli_path`](Options::cli_path) if it is set, then `CLAUDE_CLI_PATH`, `PATH` and the
    /// directories of installers.
    ///
    /// Runs `--version` with the user, environment and working directory of the options, for at most
    /// five seconds. The version is cached per file and user.
    ///
    /// # Errors
    /// [`CliNotFound`](ErrorKind::CliNotFound) when there is no CLI, or the named file is not
    /// executable; [`SpawnFailed`](ErrorKind::SpawnFailed) when it cannot be started;
    /// [`UnsupportedCliVersion`](ErrorKind::UnsupportedCliVersion) when it is older than
    /// 1.0.0; [`UnknownCliVersion`](ErrorKind::UnknownCliVersion) or
    /// [`VersionDetection`](ErrorKind::VersionDetection) when it prints no version;
    /// [`InvalidOptions`](ErrorKind::InvalidOptions) when the options are invalid or set a
    /// [`transport`](Options::transport), which starts the CLI itself;
    /// [`NoRuntime`](ErrorKind::NoRuntime) outside of a Tokio runtime.
    ///
    /// # Cancel safety
    /// If the future is dropped, the process that it started is ended.
    pub async fn find(options: impl Into<Options>) -> Result<Self> {
        let options = options.into();
        driver::require_timers()?;
        if options.host.transport.is_some() {
            let message = "no local CLI is used because `transport` is set";
            return Err(Error::new(ErrorKind::InvalidOptions, message)
                .with_help("remove `transport` to find the CLI of this machine"));
        }
        // Print mode requires a prompt; its text does not matter.
        let prepared = prepare(&options, Some(&Prompt::from("hello")))?;
        let program = find_program(&options)?;
        let launch = driver::launch(&options, &prepared).await?;
        let probe = check::probe(&program, &launch).await?;
        let version = judge(&probe, MINIMUM_FOR_PRINT_MODE)?;
        Ok(Self { path: program.path().to_owned(), version })
    }

    /// Returns the path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the version.
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

    /// The executable at `path`, found and checked as a start does it.
    async fn choose(path: &Path, policy: VersionPolicy) -> Result<CheckedCli> {
        let options = Options::new().cli_path(path);
        let prepared = prepare(&options, None)?;
        let launch = driver::launch(&options, &prepared).await?;
        policy.check(find_program(&options)?, &launch).await
    }

    #[tokio::test]
    async fn each_unusable_executable_has_its_error() {
        let folder = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str, mode| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Cli::find(Options::new().cli_path(path))
        };
        let good = program("good", "#!/bin/sh\necho '2.1.325 (Claude Code)'\n", 0o755).await;
        let good = good.unwrap();
        assert_eq!(good.version(), CliVersion::new(2, 1, 325));
        assert_eq!(good.path(), folder.path().join("good"));
        for (name, text, mode, kind) in [
            ("text", "hello", 0o644, ErrorKind::CliNotFound),
            ("old", "#!/bin/sh\necho 0.9.9\n", 0o755, ErrorKind::UnsupportedCliVersion),
            ("strange", "#!/bin/sh\necho hello\n", 0o755, ErrorKind::UnknownCliVersion),
            ("failing", "#!/bin/sh\nexit 3\n", 0o755, ErrorKind::VersionDetection),
            ("broken", "#!/no/interpreter\n", 0o755, ErrorKind::SpawnFailed),
        ] {
            let error = program(name, text, mode).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.help().is_some(), "{error}");
        }
    }

    #[tokio::test]
    async fn with_a_transport_no_local_cli_is_searched() {
        let none =
            crate::transport::InMemory::new(|_| async { Err(std::io::Error::other("none")) });
        let error = Cli::find(Options::new().transport(none)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        assert!(error.to_string().contains("`transport`"), "{error}");
    }

    fn printing(folder: &tempfile::TempDir, name: &str, script: &str) -> PathBuf {
        let path = folder.path().join(name);
        fs::write(
            &path,
            format!("#!/bin/sh\necho x >> {}/{name}.asked\n{script}\n", folder.path().display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn probe_count(path: &Path) -> usize {
        fs::read_to_string(path.with_extension("asked")).unwrap_or_default().lines().count()
    }

    const SESSION: VersionPolicy =
        VersionPolicy { print_mode: false, permissive: false, skip: false };
    const PRINT: VersionPolicy = VersionPolicy { print_mode: true, ..SESSION };

    /// A policy, and the code of the warning or the kind of the error.
    type Row = (VersionPolicy, std::result::Result<Option<WarningCode>, ErrorKind>);

    #[tokio::test]
    async fn the_policy_decides_between_success_warning_and_error() {
        use ErrorKind::{UnsupportedCliVersion, VersionDetection};
        let folder = tempfile::tempdir().unwrap();
        let permissive = |policy| VersionPolicy { permissive: true, ..policy };
        let minimum = format!("echo {MINIMUM_VERSION}");
        let unknown = WarningCode::UnknownCliVersion;
        let failed = WarningCode::VersionDetection;
        let cases: [(&str, &str, &[Row]); 5] = [
            ("new", &minimum, &[(SESSION, Ok(None)), (PRINT, Ok(None))]),
            (
                "middle",
                "echo 1.0.0",
                &[
                    (SESSION, Err(UnsupportedCliVersion)),
                    (permissive(SESSION), Err(UnsupportedCliVersion)),
                    (PRINT, Ok(None)),
                ],
            ),
            (
                "old",
                "echo 0.9.9",
                &[
                    (PRINT, Err(UnsupportedCliVersion)),
                    (permissive(PRINT), Err(UnsupportedCliVersion)),
                ],
            ),
            (
                "strange",
                "echo hello",
                &[
                    (SESSION, Ok(Some(unknown))),
                    (PRINT, Err(ErrorKind::UnknownCliVersion)),
                    (permissive(PRINT), Ok(Some(unknown))),
                ],
            ),
            (
                "failing",
                "exit 3",
                &[
                    (SESSION, Ok(Some(failed))),
                    (PRINT, Err(VersionDetection)),
                    (permissive(PRINT), Ok(Some(failed))),
                ],
            ),
        ];
        for (name, script, rows) in cases {
            let path = printing(&folder, name, script);
            for (policy, expected) in rows {
                let chosen = choose(&path, *policy).await;
                let seen = match &chosen {
                    Ok(chosen) => Ok(chosen.warnings.first().map(Warning::code)),
                    Err(error) => Err(error.kind()),
                };
                assert_eq!(seen, *expected, "{name} {policy:?}");
                let version = chosen.ok().and_then(|chosen| chosen.version);
                assert_eq!(version.is_some(), *expected == Ok(None), "{name} {policy:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_second_start_uses_the_cache_and_a_skipped_check_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = printing(&folder, "claude", "echo 2.9.9");
        let skip = VersionPolicy { skip: true, ..SESSION };
        let chosen = choose(&path, skip).await.unwrap();
        assert_eq!((chosen.program, chosen.version), (path.clone().into(), None));
        assert_eq!(probe_count(&path), 0);
        for policy in [SESSION, SESSION, PRINT] {
            let chosen = choose(&path, policy).await.unwrap();
            assert_eq!(chosen.version, Some(CliVersion::new(2, 9, 9)));
        }
        assert_eq!(probe_count(&path), 1);
        let missing = choose(&folder.path().join("missing"), SESSION).await;
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::CliNotFound);
    }
}
