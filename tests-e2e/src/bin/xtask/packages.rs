//! Whether the crates can be published, and whether their dependencies follow `deny.toml`.

use std::{
    error::Error,
    process::{Command, Stdio},
};

use tests_e2e::workspace::root;

/// Packages the published crates and builds each from its package, without uploading.
const PUBLISH: [&str; 5] = ["publish", "--workspace", "--dry-run", "--locked", "--allow-dirty"];

/// What cargo-deny checks without the advisory database.
const OFFLINE_CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

/// The outcome of the checks.
pub(crate) enum PackagesOutcome {
    /// All passed.
    Passed,
    /// Some could not run, and those that could passed.
    Skipped,
    /// One failed; its output says why.
    Failed,
}

/// Runs `cargo publish --dry-run`, and `cargo deny` where it is installed.
pub(crate) fn check() -> Result<PackagesOutcome, Box<dyn Error>> {
    println!("== packages: cargo {}", PUBLISH.join(" "));
    // A new directory for each run: cargo keeps the sources of packages by the path of this directory and
    // their version, and would build the crates against those of an earlier run.
    let directory =
        tempfile::Builder::new().prefix("packages-").tempdir_in(root().join("target"))?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(PUBLISH).arg("--target-dir").arg(directory.path());
    // The programs are not run, so debug information would only cost time.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    if !passes(cargo)? {
        println!("== packages failed");
        return Ok(PackagesOutcome::Failed);
    }
    deny()
}

/// Runs `cargo deny` where it is installed. It is not installed here, because it has to be compiled.
fn deny() -> Result<PackagesOutcome, Box<dyn Error>> {
    let version = Command::new("cargo-deny").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!("== cargo deny: SKIPPED, not installed; help: cargo install --locked cargo-deny");
        return Ok(PackagesOutcome::Skipped);
    }
    println!("== cargo deny check {}", OFFLINE_CHECKS.join(" "));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["deny", "check"]).args(OFFLINE_CHECKS);
    if !passes(cargo)? {
        println!("== cargo deny failed");
        return Ok(PackagesOutcome::Failed);
    }
    let mut fetch = Command::new(env!("CARGO"));
    fetch.args(["deny", "fetch", "db"]);
    if !passes(fetch)? {
        println!("== advisories: SKIPPED, the advisory database could not be fetched");
        return Ok(PackagesOutcome::Skipped);
    }
    println!("== cargo deny check advisories");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["deny", "check", "--disable-fetch", "advisories"]);
    Ok(if passes(cargo)? { PackagesOutcome::Passed } else { PackagesOutcome::Failed })
}

fn passes(mut command: Command) -> Result<bool, Box<dyn Error>> {
    Ok(command.current_dir(root()).stdin(Stdio::null()).status()?.success())
}
