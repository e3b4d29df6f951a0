//! Installs the pinned CLIs with npm, once per machine.

use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::npm::{InstallError, Pin};

const NEWEST: Pin = Pin {
    name: "@anthropic-ai/claude-code",
    package: Cow::Borrowed(include_str!("../../package.json")),
    lock: Some(include_str!("../../package-lock.json")),
    folder: "cli",
    arguments: &[],
};

const MINIMUM: Pin = Pin {
    package: Cow::Borrowed(include_str!("../../minimum/package.json")),
    lock: Some(include_str!("../../minimum/package-lock.json")),
    ..NEWEST
};

const MIDDLE: Pin = Pin {
    package: Cow::Borrowed(include_str!("../../middle/package.json")),
    lock: Some(include_str!("../../middle/package-lock.json")),
    ..NEWEST
};

/// The oldest CLI with approvals.
const APPROVALS: Pin = Pin {
    package: Cow::Borrowed(include_str!("../../approvals/package.json")),
    lock: Some(include_str!("../../approvals/package-lock.json")),
    ..NEWEST
};

/// The last CLI that is given MCP servers on the command line.
const ARGUMENTS: Pin = Pin {
    package: Cow::Borrowed(include_str!("../../arguments/package.json")),
    lock: Some(include_str!("../../arguments/package-lock.json")),
    ..NEWEST
};

/// An installed CLI.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstalledCli {
    /// The executable.
    pub path: PathBuf,
    /// Its version, such as `1.2.3`.
    pub version: String,
}

/// Returns the version that `package.json` pins.
pub fn pinned_version() -> String {
    NEWEST.version()
}

/// Returns the versions that the tests use: the oldest supported one, one in the middle, and the newest.
pub fn pinned_versions() -> [String; 3] {
    [MINIMUM, MIDDLE, NEWEST].map(|pin| pin.version())
}

/// Returns the versions before the newest that the tests of approvals use: the oldest one with approvals, and the last
/// one that is given MCP servers on the command line.
pub fn approval_versions() -> [String; 2] {
    [APPROVALS, ARGUMENTS].map(|pin| pin.version())
}

/// Returns the pinned CLI, and installs it if necessary.
///
/// # Errors
///
/// Returns an error that names what is missing and how to install it.
pub fn install() -> Result<InstalledCli, InstallError> {
    check(&NEWEST)
}

/// Returns a released CLI, and installs it if necessary. The dependencies of a version that the tests do not use are
/// not pinned.
///
/// # Errors
///
/// Returns an error that names what is missing and how to install it.
pub fn install_version(version: &str) -> Result<InstalledCli, InstallError> {
    let pins = [NEWEST, ARGUMENTS, APPROVALS, MIDDLE, MINIMUM];
    if let Some(pin) = pins.into_iter().find(|pin| pin.version() == version) {
        return check(&pin);
    }
    let package = serde_json::json!({"private": true, "dependencies": {NEWEST.name: version}});
    check(&Pin { package: package.to_string().into(), lock: None, ..NEWEST })
}

fn check(pin: &Pin) -> Result<InstalledCli, InstallError> {
    let home = pin.install()?;
    let path = executable(&home).ok_or_else(|| {
        InstallError::Unusable(format!(
            "no executable for {} {} in {}; help: remove that directory to install it again",
            env::consts::OS,
            env::consts::ARCH,
            home.display(),
        ))
    })?;
    let output = Command::new(&path)
        .arg("--version")
        .env_clear()
        // The `PATH` of tests: old CLIs are scripts that need `node`.
        .env("PATH", super::sandbox::PATH)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| InstallError::Unusable(format!("{}: {error}", path.display())))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let version = stdout.split_whitespace().next().unwrap_or_default().to_owned();
    if version == pin.version() {
        Ok(InstalledCli { path, version })
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let reason = format!("`--version` printed \"{}\" {}", stdout.trim(), stderr.trim());
        Err(InstallError::Unusable(reason))
    }
}

/// Finds the executable. npm installs only packages that fit the platform. On Linux there may be one for each C
/// library; glibc is preferred. Old versions are scripts.
fn executable(home: &Path) -> Option<PathBuf> {
    let system = match env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let machine = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let scope = home.join("node_modules/@anthropic-ai");
    let native = ["", "-musl"]
        .into_iter()
        .map(|libc| scope.join(format!("claude-code-{system}-{machine}{libc}")))
        .flat_map(|package| [package.join("claude"), package.join("claude.exe")]);
    native.chain([scope.join("claude-code/cli.js")]).find(|path| path.is_file())
}
