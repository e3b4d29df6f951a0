//! Whether the crates can be published.

use std::error::Error;
use std::io;
use std::path::Path;

use tests_e2e::workspace::root;

use super::checks::cargo;

/// Packages the published crates and builds each from its package, without uploading.
const PUBLISH: [&str; 5] = ["publish", "--workspace", "--dry-run", "--locked", "--allow-dirty"];

/// Runs `cargo publish --dry-run`.
pub(crate) fn check() -> Result<bool, Box<dyn Error>> {
    println!("cargo {}", PUBLISH.join(" "));
    // A new directory for each run: cargo keeps the sources of packages by the path of this directory and
    // their version, and would build the crates against those of an earlier run.
    let directory =
        tempfile::Builder::new().prefix("packages-").tempdir_in(root().join("target"))?;
    share_dependencies(directory.path())?;
    let mut command = cargo(&PUBLISH);
    command.arg("--target-dir").arg(directory.path());
    // The programs are not run, so debug information would only cost time.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    Ok(command.status()?.success())
}

/// Makes cargo use the dependencies that the project outside the workspace has built: it has the same profile.
#[cfg(unix)]
fn share_dependencies(directory: &Path) -> io::Result<()> {
    let built = root().join("target/outside/debug");
    std::fs::create_dir_all(&built)?;
    std::os::unix::fs::symlink(built, directory.join("debug"))
}

#[cfg(not(unix))]
fn share_dependencies(_directory: &Path) -> io::Result<()> {
    Ok(())
}
