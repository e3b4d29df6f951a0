//! Whether the crates build for the other platforms that are supported.

use std::{
    error::Error,
    process::{Command, Stdio},
};

use tests_e2e::places::root;

/// A target for each platform.
const TARGETS: [(&str, &str); 2] =
    [("macOS", "aarch64-apple-darwin"), ("Windows", "x86_64-pc-windows-gnu")];

/// Checks the crates for each other platform whose standard library is installed, and says which
/// are left out. That is no failure, also not in CI: Linux is what is tested.
pub(crate) fn check() -> Result<bool, Box<dyn Error>> {
    for (platform, target) in TARGETS {
        if !is_installed(target)? {
            println!(
                "== {platform}: not built, the standard library for it is missing \
                 (`rustup target add {target}` installs it)"
            );
            continue;
        }
        println!("== {platform}: cargo check --target {target}");
        let status = Command::new(env!("CARGO"))
            .args(["check", "--all-features", "--target", target])
            .args(["-p", "claude-wire", "-p", "claude-agent-kit"])
            .current_dir(root())
            .stdin(Stdio::null())
            .status()?;
        if !status.success() {
            println!("== {platform} failed");
            return Ok(false);
        }
    }
    Ok(true)
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
