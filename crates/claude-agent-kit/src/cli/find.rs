//! Locates the executable of the CLI.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::list;

/// Where to search, from the options and the environment of the host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The option `cli_path`.
    pub(crate) explicit: Option<PathBuf>,
    /// The variable `CLAUDE_CLI_PATH`.
    pub(crate) variable: Option<PathBuf>,
    /// The variable `PATH`.
    pub(crate) path: Option<std::ffi::OsString>,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// Whether to use the file names and rules of Windows.
    pub(crate) windows: bool,
}

impl Places {
    /// Returns the locations of this process, with an explicit path if there is one.
    pub(crate) fn of_this_process(explicit: Option<PathBuf>) -> Self {
        let variable = std::env::var_os("CLAUDE_CLI_PATH").filter(|path| !path.is_empty());
        Self {
            explicit,
            variable: variable.map(PathBuf::from),
            path: std::env::var_os("PATH"),
            home: std::env::home_dir(),
            windows: cfg!(windows),
        }
    }
}

/// Finds the executable: the option, the variable, `PATH`, then the directories of installers.
///
/// A path that is set explicitly is used or rejected; nothing else is tried then.
///
/// # Errors
/// [`ErrorKind::CliNotFound`] with the paths that were searched.
pub(crate) fn find(places: &Places) -> Result<PathBuf> {
    if let Some(path) = &places.explicit {
        return explicit(path, "the option `cli_path`", places.windows);
    }
    if let Some(path) = &places.variable {
        return explicit(path, "the environment variable CLAUDE_CLI_PATH", places.windows);
    }
    let searched = candidates(places);
    if let Some(found) = searched.iter().find(|path| is_executable(path)) {
        return Ok(found.clone());
    }
    for path in &searched {
        let batch = path.with_extension("cmd");
        if places.windows && batch.is_file() {
            return Err(rejected(&batch, "PATH", BATCH));
        }
    }
    let searched = list::map(&searched, &|path| path.display().to_string());
    Err(Error::new(
        ErrorKind::CliNotFound,
        format!("`{}` was not found; searched {}", name(places.windows), searched.join(", ")),
    )
    .with_help(
        "install the CLI with `npm install -g @anthropic-ai/claude-code`, or set `cli_path` or \
         CLAUDE_CLI_PATH",
    ))
}

fn name(windows: bool) -> &'static str {
    if windows { "claude.exe" } else { "claude" }
}

/// Its arguments would be parsed by cmd.exe, which can execute parts of them.
const BATCH: &str = "is a batch file, and passing arguments to it is not safe";

fn explicit(path: &Path, source: &str, windows: bool) -> Result<PathBuf> {
    // A bare name would be resolved here and on PATH at the start, and a relative path would be another
    // file in another working directory.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let reason = if !path.exists() {
        "does not exist"
    } else if path.is_dir() {
        "is a directory"
    } else if windows && is_batch_file(&path) {
        BATCH
    } else if !is_script(&path) && !is_executable(&path) {
        "is not executable"
    } else {
        return Ok(path);
    };
    Err(rejected(&path, source, reason))
}

fn rejected(path: &Path, source: &str, reason: &str) -> Error {
    let help = if reason == BATCH {
        "set `cli_path` to the native program `claude.exe`, in the package that npm installed"
    } else {
        "set the path of the CLI, or remove the setting to search for it"
    };
    let message = format!("`{}` (from {source}) {reason}", path.display());
    Error::new(ErrorKind::CliNotFound, message).with_help(help)
}

fn candidates(places: &Places) -> Vec<PathBuf> {
    let name = name(places.windows);
    let empty = OsStr::new("");
    let path = places.path.as_deref().unwrap_or(empty);
    // A relative entry of PATH would be another program in another directory.
    let mut candidates = super::program::on_path(name.as_ref(), path);
    // A relative home directory does, too.
    let absolute = places.home.as_ref().filter(|home| home.is_absolute());
    let home = |below: &str| absolute.map(|home| home.join(below).join(name));
    let installed = [
        home(".claude/local"),
        home(".local/bin"),
        home(".npm-global/bin"),
        Some(Path::new("/usr/local/bin").join(name)),
        home("node_modules/.bin"),
        home(".yarn/bin"),
    ];
    for path in installed.into_iter().flatten() {
        candidates.push(path);
    }
    candidates
}

/// Returns whether Windows would run the file with cmd.exe.
fn is_batch_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Windows ignores dots and spaces at the end of a name.
    let ending = name.trim_end_matches(['.', ' ']).rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        ending.eq_ignore_ascii_case("cmd") || ending.eq_ignore_ascii_case("bat")
    })
}

/// Returns whether the file is a JavaScript or TypeScript file, which needs a runtime.
pub(super) fn is_script(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ["js", "mjs", "ts", "tsx", "jsx"].iter().any(|script| ending.eq_ignore_ascii_case(script))
}

#[cfg(unix)]
pub(super) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A directory with files, executable or not.
    fn tree(files: &[(&str, bool)]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        for (name, executable) in files {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            let mode = if *executable { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        tree
    }

    fn places(tree: &tempfile::TempDir) -> Places {
        let path = std::env::join_paths([tree.path().join("a"), tree.path().join("b")]).unwrap();
        Places { path: Some(path), home: Some(tree.path().join("home")), ..Places::default() }
    }

    #[test]
    fn the_option_comes_before_the_variable_and_the_variable_before_the_path() {
        let tree = tree(&[("one", true), ("two", true), ("a/claude", true)]);
        let mut places = places(&tree);
        assert_eq!(find(&places).unwrap(), tree.path().join("a/claude"));
        places.variable = Some(tree.path().join("two"));
        assert_eq!(find(&places).unwrap(), tree.path().join("two"));
        places.explicit = Some(tree.path().join("one"));
        assert_eq!(find(&places).unwrap(), tree.path().join("one"));
    }

    #[test]
    fn an_explicit_path_is_used_or_rejected_without_a_search() {
        let tree = tree(&[("text", false), ("a/claude", true)]);
        fs::create_dir(tree.path().join("directory")).unwrap();
        for (name, why) in [
            ("missing", "does not exist"),
            ("directory", "is a directory"),
            ("text", "not executable"),
        ] {
            for by_option in [true, false] {
                let mut places = places(&tree);
                let path = Some(tree.path().join(name));
                if by_option {
                    places.explicit = path;
                } else {
                    places.variable = path;
                }
                let error = find(&places).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::CliNotFound);
                let text = error.to_string();
                assert!(text.contains(name) && text.contains(why), "{text}");
            }
        }
    }

    #[test]
    fn the_path_is_searched_in_order_and_only_for_executables() {
        let tree = tree(&[("a/claude", false), ("b/claude", true)]);
        assert_eq!(find(&places(&tree)).unwrap(), tree.path().join("b/claude"));
    }

    #[test]
    fn the_directories_of_installers_are_searched_in_order() {
        let order =
            [".claude/local", ".local/bin", ".npm-global/bin", "node_modules/.bin", ".yarn/bin"];
        for first in 0..order.len() {
            let files: Vec<String> =
                order[first..].iter().map(|place| format!("home/{place}/claude")).collect();
            let files: Vec<(&str, bool)> = files.iter().map(|file| (file.as_str(), true)).collect();
            let tree = tree(&files);
            let found = find(&places(&tree)).unwrap();
            // On a machine that has it, the system's own comes before the last two.
            if found != Path::new("/usr/local/bin/claude") {
                assert_eq!(found, tree.path().join("home").join(order[first]).join("claude"));
            }
        }
    }

    #[test]
    fn the_error_names_the_searched_paths_and_help() {
        let tree = tree(&[]);
        let Err(error) = find(&places(&tree)) else { return };
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::CliNotFound);
        assert!(text.contains(".npm-global/bin/claude"), "{text}");
        assert!(text.contains("npm install -g @anthropic-ai/claude-code"), "{text}");
    }

    #[test]
    fn batch_files_are_recognized_by_their_names_on_windows() {
        for (name, batch) in [
            ("claude.cmd", true),
            (r"C:\npm\claude.CMD", true),
            ("claude.bat", true),
            ("claude.Bat. .", true),
            (".cmd", true),
            ("claude.exe", false),
            ("claude", false),
            ("claude.cmd.exe", false),
            ("cmd", false),
            ("", false),
        ] {
            assert_eq!(is_batch_file(Path::new(name)), batch, "{name:?}");
        }
    }

    #[test]
    fn on_windows_a_batch_file_is_rejected_with_help() {
        let tree = tree(&[("claude.cmd", true), ("a/claude.cmd", true)]);
        let named = Places {
            explicit: Some(tree.path().join("claude.cmd")),
            windows: true,
            ..places(&tree)
        };
        let on_path = Places { windows: true, ..places(&tree) };
        for places in [named.clone(), on_path] {
            let error = find(&places).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CliNotFound);
            let text = error.to_string();
            assert!(text.contains("claude.cmd") && text.contains("batch file"), "{text}");
            assert!(text.contains("`claude.exe`") && text.contains("`cli_path`"), "{text}");
        }
        // Elsewhere it is a name like any other.
        assert!(find(&Places { windows: false, ..named }).is_ok());
    }

    #[test]
    fn an_explicit_relative_path_is_made_absolute() {
        let here = std::env::current_dir().unwrap();
        let places = Places { explicit: Some("src/lib.rs".into()), ..Places::default() };
        let text = find(&places).unwrap_err().to_string();
        assert!(text.contains(&here.join("src/lib.rs").display().to_string()), "{text}");
        assert!(text.contains("not executable"), "{text}");
    }

    #[test]
    fn relative_entries_of_the_path_and_a_relative_home_are_not_searched() {
        let path = Some("relative:.".into());
        for home in [".", "relative", ""] {
            let places =
                Places { path: path.clone(), home: Some(home.into()), ..Places::default() };
            let candidates = candidates(&places);
            assert_eq!(candidates, [Path::new("/usr/local/bin/claude")], "{home:?}");
        }
    }
}
