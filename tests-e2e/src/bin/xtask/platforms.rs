//! Checks that the crates build for the other platforms, and with the oldest supported Rust.

use std::error::Error;
use std::process::{Command, Stdio};

use tests_e2e::workspace::root;

/// A target for each platform.
const TARGETS: [(&str, &str); 2] =
    [("macOS", "aarch64-apple-darwin"), ("Windows", "x86_64-pc-windows-gnu")];

/// The oldest supported Rust.
const MINIMUM_RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The outcome of the checks.
pub(crate) enum PlatformsOutcome {
    /// All passed.
    Passed,
    /// Some could not run, and those that could passed.
    Skipped,
    /// One failed and printed the reason.
    Failed,
}

/// Installs each target and the oldest supported Rust, type-checks the crates for the targets
/// without warnings, and runs the unit tests with that Rust.
pub(crate) fn check() -> Result<PlatformsOutcome, Box<dyn Error>> {
    let mut outcome = PlatformsOutcome::Passed;
    for (platform, target) in TARGETS {
        if !is_installed(target)? && !rustup(&["target", "add", target]) {
            println!("== {platform}: SKIPPED, `rustup target add {target}` failed");
            outcome = PlatformsOutcome::Skipped;
            continue;
        }
        println!("== {platform}: cargo check --target {target}");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["check", "--all-features", "--target", target])
            .args(["-p", "claude-wire", "-p", "claude-agent-kit"])
            .env("RUSTFLAGS", "-D warnings");
        if !passes(cargo)? {
            println!("== {platform} failed");
            return Ok(PlatformsOutcome::Failed);
        }
    }
    // rustup's cargo, because the current one belongs to a specific toolchain.
    if !rustup(&["toolchain", "install", MINIMUM_RUST, "--profile", "minimal", "--no-self-update"])
    {
        println!("== Rust {MINIMUM_RUST}: SKIPPED, `rustup toolchain install` failed");
        return Ok(PlatformsOutcome::Skipped);
    }
    println!("== Rust {MINIMUM_RUST}: unit tests");
    let mut cargo = Command::new("rustup");
    cargo
        .args(["run", MINIMUM_RUST, "cargo", "test", "--quiet", "--all-features"])
        .args(["-p", "claude-wire", "-p", "claude-agent-kit", "-p", "claude-agent-store"])
        .args(["--lib", "--test", "it"])
        // A separate directory, so that the compilers do not discard each other's output.
        .args(["--target-dir", "target/minimum-rust"]);
    if !passes(cargo)? {
        println!("== Rust {MINIMUM_RUST} failed");
        return Ok(PlatformsOutcome::Failed);
    }
    Ok(outcome)
}

fn passes(mut command: Command) -> Result<bool, Box<dyn Error>> {
    Ok(command.current_dir(root()).stdin(Stdio::null()).status()?.success())
}

/// Runs rustup. Returns `false` if it fails or is not installed.
fn rustup(arguments: &[&str]) -> bool {
    let status =
        Command::new("rustup").args(arguments).current_dir(root()).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Whether the compiler has a standard library for this target.
fn is_installed(target: &str) -> Result<bool, Box<dyn Error>> {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root())
        .output()?;
    let directory = String::from_utf8(output.stdout)?;
    Ok(output.status.success() && std::path::Path::new(directory.trim()).is_dir())
}
