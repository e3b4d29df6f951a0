//! Finding and checking the executable of the CLI.

mod check;
mod find;
mod program;
mod version;

use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, Result};
use crate::warning::{Warning, WarningCode};

pub(crate) use check::printed;
pub(crate) use program::{Program, Runtime};
pub use version::CliVersion;
pub(crate) use version::Probe;

/// The oldest CLI whose one-way form is understood.
pub const MINIMUM_FOR_PRINT_MODE: CliVersion = CliVersion::new(1, 0, 0);

/// The oldest CLI that passes the session tests; `docs/cli-versions.md` says how it was found.
pub const MINIMUM_VERSION: CliVersion = CliVersion::new(2, 1, 261);

/// What is asked of the version of a CLI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionPolicy {
    /// It is for the one-way form, which has no handshake that could tell.
    pub(crate) print_mode: bool,
    /// One that cannot be made out will do.
    pub(crate) permissive: bool,
    /// It is not asked for at all.
    pub(crate) skip: bool,
}

/// A CLI to start.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) program: Program,
    /// If it was asked for and could be made out.
    pub(crate) version: Option<CliVersion>,
    pub(crate) warnings: Vec<Warning>,
}

/// Finds the executable and checks its version. Blocks for up to five seconds.
///
/// # Errors
/// [`ErrorKind::CliNotFound`]; and of the version
/// [`UnsupportedCliVersion`](ErrorKind::UnsupportedCliVersion) always, the others only in print
/// mode, where no handshake would tell.
pub(crate) fn choose(
    path: Option<PathBuf>,
    runtime: &Runtime,
    policy: VersionPolicy,
) -> Result<Chosen> {
    policy.ask(find_program(path, runtime)?)
}

fn find_program(path: Option<PathBuf>, runtime: &Runtime) -> Result<Program> {
    let places = find::Places::of_this_process(path);
    Program::of(find::find(&places)?, runtime, &places)
}

/// What [`choose`] gives, with where the executable is also if it will not do.
///
/// # Errors
/// [`ErrorKind::CliNotFound`].
pub(crate) fn look_at(
    path: Option<PathBuf>,
    runtime: &Runtime,
    policy: VersionPolicy,
) -> Result<(PathBuf, Result<Chosen>)> {
    let program = find_program(path, runtime)?;
    Ok((program.path().to_owned(), policy.ask(program)))
}

/// The oldest version that will do.
pub(crate) fn minimum(print_mode: bool) -> CliVersion {
    if print_mode { MINIMUM_FOR_PRINT_MODE } else { MINIMUM_VERSION }
}

/// What [`choose`] gives, if that takes no more than looking at files: starts no process, so that
/// it can be called where blocking is not allowed.
pub(crate) fn choose_if_known(
    path: Option<PathBuf>,
    runtime: &Runtime,
    policy: VersionPolicy,
) -> Option<Result<Chosen>> {
    let program = match find_program(path, runtime) {
        Ok(program) => program,
        Err(error) => return Some(Err(error)),
    };
    if policy.skip {
        return Some(Ok(Chosen { program, version: None, warnings: Vec::new() }));
    }
    let probe = check::remembered(&program)?;
    Some(policy.judge(program, &probe))
}

impl VersionPolicy {
    /// Asks the executable for its version, if it has to be known.
    fn ask(self, program: Program) -> Result<Chosen> {
        if self.skip {
            return Ok(Chosen { program, version: None, warnings: Vec::new() });
        }
        let probe = check::probe(&program);
        self.judge(program, &probe)
    }

    fn judge(self, program: Program, probe: &Probe) -> Result<Chosen> {
        let error = match version::judge(probe, minimum(self.print_mode)) {
            Ok(version) => {
                return Ok(Chosen { program, version: Some(version), warnings: Vec::new() });
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
        // The handshake will tell, or the host has said that it does not mind.
        let warning = Warning::new(code, error.to_string());
        Ok(Chosen { program, version: None, warnings: vec![warning] })
    }
}

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
        let program = find_program(path, &Runtime::default())?;
        let version = version::judge(&check::probe(&program), MINIMUM_FOR_PRINT_MODE)?;
        Ok(Self { path: program.path().to_owned(), version })
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

    fn choose(path: Option<PathBuf>, policy: VersionPolicy) -> Result<Chosen> {
        super::choose(path, &Runtime::default(), policy)
    }

    fn choose_if_known(path: Option<PathBuf>, policy: VersionPolicy) -> Option<Result<Chosen>> {
        super::choose_if_known(path, &Runtime::default(), policy)
    }

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

    fn times_asked(path: &Path) -> usize {
        fs::read_to_string(path.with_extension("asked")).unwrap_or_default().lines().count()
    }

    const SESSION: VersionPolicy =
        VersionPolicy { print_mode: false, permissive: false, skip: false };
    const PRINT: VersionPolicy = VersionPolicy { print_mode: true, ..SESSION };

    /// A policy, and the code of the warning or the kind of the error.
    type Row = (VersionPolicy, std::result::Result<Option<WarningCode>, ErrorKind>);

    #[test]
    fn each_version_is_taken_warned_about_or_refused_as_the_policy_says() {
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
                let chosen = choose(Some(path.clone()), *policy);
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

    #[test]
    fn a_second_start_asks_nobody_and_a_skipped_check_never_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = printing(&folder, "claude", "echo 2.9.9");
        let skip = VersionPolicy { skip: true, ..SESSION };
        let chosen = choose(Some(path.clone()), skip).unwrap();
        assert_eq!((chosen.program, chosen.version), (path.clone().into(), None));
        assert!(choose_if_known(Some(path.clone()), skip).unwrap().is_ok());
        assert_eq!(times_asked(&path), 0);
        assert!(choose_if_known(Some(path.clone()), SESSION).is_none());
        choose(Some(path.clone()), SESSION).unwrap();
        let known = choose_if_known(Some(path.clone()), SESSION).unwrap().unwrap();
        assert_eq!(known.version, Some(CliVersion::new(2, 9, 9)));
        choose(Some(path.clone()), PRINT).unwrap();
        assert_eq!(times_asked(&path), 1);
        // What is not there needs no question.
        let missing = choose_if_known(Some(folder.path().join("missing")), SESSION);
        assert_eq!(missing.unwrap().unwrap_err().kind(), ErrorKind::CliNotFound);
    }
}
