//! The program to start: the CLI, or the runtime of a CLI that is a script.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use claude_wire::launch::Secret;

use super::find::{Places, is_executable, is_script};
use crate::error::{Error, ErrorKind, Result};
use crate::list;

/// The runtime of a CLI that is a JavaScript file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// A path, or a name on `PATH`. Default: `node`.
    pub(crate) executable: Option<PathBuf>,
    /// The arguments before the script.
    pub(crate) arguments: Vec<Secret>,
}

/// The CLI and its runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    path: PathBuf,
    /// The runtime and its arguments; `None` for a native program.
    runtime: Option<(PathBuf, Vec<String>)>,
}

impl Program {
    /// Creates the program of the CLI at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::CliNotFound`] when it is a script and its runtime is not found.
    pub(super) fn of(path: PathBuf, runtime: &Runtime, places: &Places) -> Result<Self> {
        if !is_script(&path) {
            return Ok(Self::from(path));
        }
        let name = runtime.executable.as_deref().unwrap_or(Path::new("node"));
        let executable = find(name, places).ok_or_else(|| {
            let message = format!(
                "`{}` is a script, and its runtime `{}` was not found",
                path.display(),
                name.display()
            );
            Error::new(ErrorKind::CliNotFound, message).with_help(
                "set `executable` to its runtime, or set `cli_path` to the native program",
            )
        })?;
        let arguments = list::map(&runtime.arguments, &|text| text.expose().to_owned());
        Ok(Self { path, runtime: Some((executable, arguments)) })
    }

    /// Returns the path of the CLI.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the program to start.
    pub(crate) fn executable(&self) -> &Path {
        self.runtime.as_ref().map_or(&self.path, |(executable, _)| executable)
    }

    /// Returns the arguments that precede those of the CLI.
    pub(crate) fn arguments_before(&self) -> Vec<OsString> {
        let Some((_, arguments)) = &self.runtime else { return Vec::new() };
        let mut before = list::map(arguments, &|argument| OsString::from(argument));
        before.push(self.path.clone().into_os_string());
        before
    }
}

#[cfg(test)]
impl Program {
    /// Creates the program of a script.
    pub(crate) fn with_runtime(path: PathBuf, runtime: PathBuf, arguments: Vec<String>) -> Self {
        Self { path, runtime: Some((runtime, arguments)) }
    }
}

impl From<PathBuf> for Program {
    fn from(path: PathBuf) -> Self {
        Self { path, runtime: None }
    }
}

/// Finds a program by its path, or by its name on `PATH`.
fn find(name: &Path, places: &Places) -> Option<PathBuf> {
    if name.components().count() > 1 {
        // A relative path would be another program in another working directory.
        let path = std::path::absolute(name).ok()?;
        return is_executable(&path).then_some(path);
    }
    let path = places.path.as_deref().unwrap_or_default();
    let name = if places.windows { name.with_extension("exe") } else { name.to_owned() };
    find_on_path(&name, path)
}

/// Finds an executable in the directories of `path`, a value of the variable `PATH`. Relative
/// entries are skipped: they would name another program in another working directory.
pub(crate) fn find_on_path(name: &Path, path: &OsStr) -> Option<PathBuf> {
    on_path(name, path).into_iter().find(|path| is_executable(path))
}

/// Returns the paths of a program in the directories of `path`, without relative ones.
pub(super) fn on_path(name: &Path, path: &OsStr) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for directory in std::env::split_paths(path) {
        if directory.is_absolute() {
            paths.push(directory.join(name));
        }
    }
    paths
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn runtime(executable: Option<&str>) -> Runtime {
        let executable = executable.map(PathBuf::from);
        Runtime { executable, arguments: vec![Secret::from("--max")] }
    }

    #[test]
    fn a_script_is_run_by_the_configured_runtime_or_node() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["node", "bun"] {
            let path = folder.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let places = Places { path: Some(folder.path().into()), ..Places::default() };
        let script = PathBuf::from("/x/cli.mjs");
        for (named, expected) in [(None, "node"), (Some("bun"), "bun")] {
            let program = Program::of(script.clone(), &runtime(named), &places).unwrap();
            assert_eq!(program.executable(), folder.path().join(expected));
            let before = program.arguments_before();
            assert_eq!(before, ["--max", "/x/cli.mjs"]);
            assert_eq!(program.path(), script);
        }
        let error = Program::of(script, &runtime(Some("deno")), &places).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CliNotFound);
        assert!(error.to_string().contains("`deno` was not found"), "{error}");
    }

    #[test]
    fn a_native_program_needs_no_runtime() {
        let native = PathBuf::from("/x/claude");
        let program = Program::of(native.clone(), &runtime(Some("bun")), &Places::default());
        let program = program.unwrap();
        assert_eq!(program.executable(), native);
        assert_eq!(program.arguments_before().len(), 0);
    }
}
