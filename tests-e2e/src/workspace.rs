//! Paths of the workspace, and the tests that the documents name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::scenario::SCENARIOS;

/// Returns the root directory of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Returns whether the user is root, who alone can start programs as other users.
///
/// # Panics
/// In CI, where no test may be skipped.
#[cfg(unix)]
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!is_ci, "this test needs root: run the tests of CI as root");
        println!("SKIPPED: only root can start programs as other users");
    }
    is_root
}

/// Returns whether a test exists, such as `wire/launch::every_flag` or `real/plain_turn`.
pub fn has_test(test: &str) -> bool {
    let Some((place, rest)) = test.split_once('/') else { return false };
    if place == "real" {
        return SCENARIOS.iter().any(|scenario| scenario.name == rest);
    }
    let Some(folder) = test_dir(place) else { return false };
    let Some((file, name)) = rest.split_once("::") else { return false };
    let folder = root().join(folder);
    let candidates = [folder.join(format!("{file}.rs")), folder.join(file).join("mod.rs")];
    candidates.iter().any(|file| {
        let source = fs::read_to_string(file);
        is_built(file) && source.is_ok_and(|source| source.contains(&format!("fn {name}(")))
    })
}

/// Returns the directory of the tests of one kind, relative to the workspace.
pub(crate) fn test_dir(place: &str) -> Option<&'static str> {
    Some(match place {
        "wire" => "crates/claude-wire/tests/it",
        "wire-alone" => "crates/claude-wire/tests",
        "wire-unit" => "crates/claude-wire/src",
        "core" => "crates/claude-agent-core/tests/it",
        "core-unit" => "crates/claude-agent-core/src",
        "testkit" => "crates/claude-agent-testkit/tests/it",
        "kit" => "crates/claude-agent-kit/src",
        "session-store" => "crates/claude-session-store/tests/it",
        "session-store-unit" => "crates/claude-session-store/src",
        "store" => "crates/claude-agent-store/tests",
        "store-unit" => "crates/claude-agent-store/src",
        "e2e" => "tests-e2e/tests",
        _ => return None,
    })
}

/// Whether a file is part of a test program. A file that is not declared as a module never runs.
fn is_built(file: &Path) -> bool {
    let Some(name) = file.file_stem().map(|name| name.to_string_lossy()) else { return false };
    match fs::read_to_string(file.with_file_name("main.rs")) {
        Ok(main) if name != "main" => main.contains(&format!("mod {name};")),
        // A test program itself, or part of a library.
        _ => true,
    }
}

/// Returns the Rust sources below a directory with their paths, without unit tests at the end.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub fn sources(folder: &str) -> io::Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path)?;
                let code = text.split("\nmod tests {").next().unwrap_or_default();
                found.push((path.display().to_string(), code.to_owned()));
            }
        }
    }
    Ok(found)
}
