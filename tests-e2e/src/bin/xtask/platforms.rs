//! Checks that the crates build for the other platforms, and with the oldest supported Rust.

use std::error::Error;
use std::process::{Command, Stdio};

use tests_e2e::public_api::CRATES;
use tests_e2e::workspace::root;

use super::checks::{StepOutcome, StepResult, cargo};

/// The oldest supported Rust.
const MINIMUM_RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Installs a target and type-checks the crates for it, without warnings.
pub(crate) fn check(target: &str) -> StepResult {
    if !is_installed(target)? && !rustup(&["target", "add", target]) {
        return Ok(StepOutcome::Skipped(format!("`rustup target add {target}` failed")));
    }
    let mut command = cargo(&["check", "--all-features", "--target", target]);
    // Crates without C code.
    for name in ["claude-wire", "claude-session-store", "claude-agent-core", "claude-agent-kit"] {
        command.args(["-p", name]);
    }
    Ok(command.env("RUSTFLAGS", "-D warnings").status()?.success().into())
}

/// Installs the oldest supported Rust, type-checks the published crates and the examples with it, and runs the tests
/// of the pure crates.
pub(crate) fn check_minimum_rust() -> StepResult {
    if !rustup(&["toolchain", "install", MINIMUM_RUST, "--profile", "minimal", "--no-self-update"])
    {
        let command = format!("rustup toolchain install {MINIMUM_RUST}");
        return Ok(StepOutcome::Skipped(format!("`{command}` failed")));
    }
    let crates: Vec<&str> = CRATES.iter().flat_map(|name| ["-p", name]).collect();
    let commands: [(&str, &[&str]); 5] = [
        ("check", &[&["--all-features"], &crates[..]].concat()),
        // With the features that the README names.
        ("check", &["-p", "examples", "--examples"]),
        ("test", &["--quiet", "-p", "claude-wire", "--lib", "--test", "it"]),
        ("test", &["--quiet", "-p", "claude-session-store", "--lib", "--test", "it"]),
        ("test", &["--quiet", "-p", "claude-agent-core", "--lib", "--test", "it"]),
    ];
    for (command, arguments) in commands {
        println!("Rust {MINIMUM_RUST}: cargo {command} {}", arguments.join(" "));
        // rustup's cargo, because the current one belongs to a specific toolchain.
        let mut cargo = Command::new("rustup");
        cargo.args(["run", MINIMUM_RUST, "cargo", command]).args(arguments);
        // A separate directory, so that the compilers do not discard each other's output. Debug information is
        // never read.
        cargo.args(["--target-dir", "target/minimum-rust"]).env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo.current_dir(root()).stdin(Stdio::null());
        if !cargo.status()?.success() {
            return Ok(StepOutcome::Failed);
        }
    }
    Ok(StepOutcome::Passed)
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
