//! Runs the unit tests in a bare environment: no CLI, npm, network, home directory or environment variables.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tests_e2e::workspace::root;

/// The programs that are not on the `PATH`.
const ABSENT: [&str; 6] = ["claude", "npm", "npx", "node", "bun", "deno"];

/// A path that cannot be created, not even by root.
const NO_HOME: &str = "/dev/null/home";

/// A test that needs cargo, for the dependency tree of the crate.
const NEEDS_CARGO: &str = "purity::the_dependency_tree_holds_no_runtime_and_no_io";

/// The outcome of the tests.
pub(crate) enum BareOutcome {
    /// All passed without a network.
    Passed,
    /// All passed, but with network access: this machine cannot start a process without it.
    WithNetwork(String),
    /// A test failed and printed the reason.
    Failed,
}

/// Runs the unit tests of the published crates in a bare environment.
pub(crate) fn run() -> Result<BareOutcome, Box<dyn Error>> {
    let programs = programs()?;
    let network = without_network();
    for (directory, test) in executables()? {
        let mut command = match &network {
            Ok(()) => {
                let mut unshare = Command::new("unshare");
                unshare.args(["--map-root-user", "--net", "--"]).arg(&test);
                unshare
            }
            Err(_) => Command::new(&test),
        };
        command.args(["--quiet", "--skip", NEEDS_CARGO]).current_dir(directory);
        command.env_clear().env("PATH", programs.path()).env("HOME", NO_HOME);
        if !command.stdin(Stdio::null()).status()?.success() {
            return Ok(BareOutcome::Failed);
        }
    }
    Ok(network.map_or_else(BareOutcome::WithNetwork, |()| BareOutcome::Passed))
}

/// Checks that a process can be started without network access.
fn without_network() -> Result<(), String> {
    let output = Command::new("unshare").args(["--map-root-user", "--net", "--", "true"]).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("unshare: {error}")),
    }
}

/// Creates a directory with the programs of the system, except [`ABSENT`].
fn programs() -> io::Result<TempDir> {
    let directory = tempfile::tempdir()?;
    for place in ["/usr/bin", "/bin"] {
        for entry in fs::read_dir(place)? {
            let name = entry?.file_name();
            let link = directory.path().join(&name);
            let absent = name.to_str().is_some_and(|name| ABSENT.contains(&name));
            if !absent && !link.is_symlink() {
                link_to(&Path::new(place).join(&name), &link)?;
            }
        }
    }
    Ok(directory)
}

#[cfg(unix)]
fn link_to(program: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(program, link)
}

#[cfg(not(unix))]
fn link_to(_program: &Path, _link: &Path) -> io::Result<()> {
    Err(io::Error::other("symbolic links are not supported on this system"))
}

/// Builds the unit tests and returns the executables with the directories of their crates. Most unit tests of
/// `claude-wire` are in its integration test `it`.
fn executables() -> Result<Vec<(PathBuf, PathBuf)>, Box<dyn Error>> {
    let mut found = Vec::new();
    for arguments in [
        &["--lib", "-p", "claude-agent-kit", "-p", "claude-agent-testkit"][..],
        &["--lib", "-p", "claude-agent-store"],
        &["--lib", "--test", "it", "-p", "claude-wire"],
    ] {
        let output = Command::new(env!("CARGO"))
            .args(["test", "--all-features", "--no-run", "--message-format=json"])
            .args(arguments)
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            return Err("the unit tests could not be built".into());
        }
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let message: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            let manifest = message["manifest_path"].as_str().map(Path::new);
            if let Some(test) = message["executable"].as_str()
                && message["profile"]["test"] == true
                && let Some(directory) = manifest.and_then(Path::parent)
            {
                found.push((directory.to_owned(), PathBuf::from(test)));
            }
        }
    }
    if found.len() < 5 {
        return Err(format!("cargo built only {} test executables", found.len()).into());
    }
    Ok(found)
}
