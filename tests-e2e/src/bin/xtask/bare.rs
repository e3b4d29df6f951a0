//! Runs the unit tests in a bare environment: no CLI, npm, network, home directory or environment variables.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::checks::{StepOutcome, StepResult};
use super::programs::Programs;

/// The programs that are not on the `PATH`.
const ABSENT: [&str; 6] = ["claude", "npm", "npx", "node", "bun", "deno"];

/// A path that cannot be created, not even by root.
const NO_HOME: &str = "/dev/null/home";

/// A test that needs cargo, for the dependency tree of the crate.
const NEEDS_CARGO: &str = "purity::the_dependency_tree_holds_no_runtime_and_no_io";

/// The packages, and the integration tests that contain most unit tests of the pure crates.
const UNIT_TESTS: [(&str, Option<&str>); 9] = [
    ("claude-agent-kit", None),
    ("claude-agent-testkit", None),
    ("claude-agent-store", None),
    ("claude-wire", None),
    ("claude-wire", Some("it")),
    ("claude-session-store", None),
    ("claude-session-store", Some("it")),
    ("claude-agent-core", None),
    ("claude-agent-core", Some("it")),
];

/// Runs the unit tests of the published crates in a bare environment. Where a process cannot be started without
/// network access, they run with it, and a note is printed.
pub(crate) fn run(programs: &Programs) -> StepResult {
    let path = path()?;
    let network = without_network();
    for (package, test) in UNIT_TESTS {
        let found = programs.unit_tests(package, test);
        let [program] = found[..] else {
            return Err(format!("{package} has {} programs with unit tests", found.len()).into());
        };
        let mut command = match &network {
            Ok(()) => {
                let mut unshare = Command::new("unshare");
                unshare.args(["--map-root-user", "--net", "--"]).arg(&program.path);
                unshare
            }
            Err(_) => Command::new(&program.path),
        };
        command.args(["--quiet", "--skip", NEEDS_CARGO]).current_dir(&program.directory);
        command.env_clear().env("PATH", path.path()).env("HOME", NO_HOME);
        if !command.stdin(Stdio::null()).status()?.success() {
            return Ok(StepOutcome::Failed);
        }
    }
    if let Err(reason) = network {
        println!("all passed, but with network access, which could not be removed: {reason}");
    }
    Ok(StepOutcome::Passed)
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
fn path() -> io::Result<TempDir> {
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
