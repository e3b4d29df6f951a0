//! Builds the subjects that are written in Rust, one by one.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{NAMES, Program, Subject, official};
use crate::workspace::root;

const LOCK: &str = include_str!("../../../../benches/Cargo.lock");

/// Builds or installs the subjects with these names, and the CLI that they talk to.
///
/// # Errors
///
/// Returns an error when a build fails.
pub fn build(names: &[&'static str]) -> Result<(PathBuf, Vec<Subject>), String> {
    cargo(&["--bin", "bench-cli", "--bin", "floor"])?;
    let mut subjects = Vec::new();
    for name in NAMES.into_iter().filter(|name| names.contains(name)) {
        subjects.push(match name {
            "python" => official::python(),
            "typescript" => official::typescript(),
            "floor" => native(name, name.to_owned()),
            _ => {
                cargo(&["--bin", name, "--features", name])?;
                let title = match name {
                    "kit" => "this SDK".to_owned(),
                    other => format!("{other} {}", version_of(other)),
                };
                native(name, title)
            }
        });
    }
    Ok((program("bench-cli"), subjects))
}

/// Builds or installs the subjects that read stored conversations: this SDK, Python, TypeScript.
///
/// # Errors
///
/// Returns an error when the build fails.
pub fn build_history() -> Result<[Subject; 3], String> {
    cargo(&["--bin", "history", "--features", "history"])?;
    let kit = native("history", "this SDK".to_owned());
    Ok([kit, official::python_script("history.py"), official::typescript_script("history.mjs")])
}

/// Builds or installs the subjects that use session stores: this SDK, Python, TypeScript; and the CLI that they start
/// to resume a session.
///
/// # Errors
///
/// Returns an error when the build fails.
pub fn build_stores() -> Result<(PathBuf, [Subject; 3]), String> {
    cargo(&["--bin", "stores", "--bin", "bench-cli", "--features", "stores"])?;
    let kit = native("stores", "this SDK".to_owned());
    let (python, typescript) =
        (official::python_script("stores.py"), official::typescript_script("stores.mjs"));
    Ok((program("bench-cli"), [kit, python, typescript]))
}

fn native(name: &'static str, title: String) -> Subject {
    let command = vec![program(name)];
    Subject { name, title, program: Ok(Program { command, variables: Vec::new() }) }
}

/// Below cargo's target directory of the workspace, so that `cargo clean` removes it.
fn target() -> PathBuf {
    root().join("target/benches")
}

fn program(name: &str) -> PathBuf {
    target().join("release").join(name)
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(root().join("benches/Cargo.toml"))
        .arg("--target-dir")
        .arg(target())
        .args(arguments)
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("`cargo build {}` failed in benches", arguments.join(" "))),
        Err(error) => Err(format!("cargo could not be started: {error}")),
    }
}

/// Returns the version of a crate in the lock file of the benches.
fn version_of(name: &str) -> &'static str {
    let entry =
        LOCK.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"\n")));
    let version = entry.and_then(|entry| entry.split_once("version = \"")?.1.split('"').next());
    version.unwrap_or("of an unknown version")
}

#[cfg(test)]
mod tests {
    use super::super::NAMES;
    use super::version_of;

    #[test]
    fn every_crate_has_a_locked_version() {
        for name in NAMES.into_iter().filter(|name| name.contains('-')) {
            assert!(version_of(name).starts_with(|first: char| first.is_ascii_digit()), "{name}");
        }
    }
}
