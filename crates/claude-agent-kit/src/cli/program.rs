//! The program to start: the CLI itself, or the runtime of a CLI that is a script.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use claude_wire::launch::Secret;

use super::find::{Places, is_executable, is_script};
use crate::error::{Error, ErrorKind, Result};

/// The JavaScript runtime for a CLI that is a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// The program: a path, or a name on `PATH`. `None` for Node.js.
    pub(crate) executable: Option<PathBuf>,
    /// The arguments before the script.
    pub(crate) arguments: Vec<Secret>,
}

/// The executable of a CLI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    path: PathBuf,
    /// The runtime of a script and its arguments; `None` for a native program.
    runtime: Option<(PathBuf, Vec<String>)>,
}

impl Program {
    /// Creates the program for the CLI at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::CliNotFound`] if the CLI is a script and its runtime is not found.
    pub(super) fn of(path: PathBuf, runtime: &Runtime, places: &Places) -> Result<Self> {
        if !is_script(&path) {
            return Ok(Self::from(path));
        }
        let name = runtime.executable.as_deref().unwrap_or(Path::new("node"));
        let executable = find(name, places).ok_or_else(|| {
            let message =
                format!("{} is a script, and no {} was found", path.display(), name.display());
            Error::new(ErrorKind::CliNotFound, message).with_help(
                "set `executable` to a JavaScript runtime, or `cli_path` to the native executable",
            )
        })?;
        let arguments = runtime.arguments.iter().map(|text| text.expose().to_owned()).collect();
        Ok(Self { path, runtime: Some((executable, arguments)) })
    }

    /// Returns the path of the CLI, which may be a script.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the program to start.
    pub(crate) fn executable(&self) -> &Path {
        self.runtime.as_ref().map_or(&self.path, |(executable, _)| executable)
    }

    /// Returns the arguments of the runtime and the script, which precede those of the CLI.
    pub(crate) fn arguments_before(&self) -> impl Iterator<Item = OsString> {
        let script = self.runtime.iter().map(|_| self.path.clone().into_os_string());
        let first = self.runtime.iter().flat_map(|(_, arguments)| arguments);
        first.map(OsString::from).chain(script)
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
        // Absolute, so that another working directory cannot select another program.
        let path = std::path::absolute(name).ok()?;
        return is_executable(&path).then_some(path);
    }
    let path = places.path.as_deref().unwrap_or_default();
    let name = if places.windows { name.with_extension("exe") } else { name.to_owned() };
    find_on_path(&name, path)
}

/// Finds an executable in the directories of `path`, a value of the variable `PATH`. Relative entries
/// are skipped, because they depend on the working directory.
pub(crate) fn find_on_path(name: &Path, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|path| is_executable(path))
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
    fn a_script_is_run_by_what_was_named_or_by_node() {
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
            let before: Vec<OsString> = program.arguments_before().collect();
            assert_eq!(before, ["--max", "/x/cli.mjs"]);
            assert_eq!(program.path(), script);
        }
        let error = Program::of(script, &runtime(Some("deno")), &places).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CliNotFound);
        assert!(error.to_string().contains("no deno was found"), "{error}");
    }

    #[test]
    fn a_native_program_runs_by_itself() {
        let native = PathBuf::from("/x/claude");
        let program = Program::of(native.clone(), &runtime(Some("bun")), &Places::default());
        let program = program.unwrap();
        assert_eq!(program.executable(), native);
        assert_eq!(program.arguments_before().count(), 0);
    }
}
