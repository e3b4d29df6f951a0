//! Installs the pinned CLIs with npm, once per machine.

use std::{
    borrow::Cow,
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

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

/// A CLI that is installed and answers `--version`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstalledCli {
    /// The executable.
    pub path: PathBuf,
    /// Its version, as `1.2.3`.
    pub version: String,
}

const MIDDLE: Pin = Pin {
    package: Cow::Borrowed(include_str!("../../middle/package.json")),
    lock: Some(include_str!("../../middle/package-lock.json")),
    ..NEWEST
};

/// The version that `package.json` pins.
pub fn pinned_version() -> String {
    NEWEST.version()
}

/// The versions that the test run uses: the oldest that is supported, one in the middle, and the
/// newest.
pub fn pinned_versions() -> [String; 3] {
    [MINIMUM, MIDDLE, NEWEST].map(|pin| pin.version())
}

/// The pinned CLI, installed if it is not yet.
///
/// # Errors
///
/// Says what is missing and how to get it.
pub fn install() -> Result<InstalledCli, InstallError> {
    check(&NEWEST)
}

/// Any released CLI, installed if it is not yet. What comes with it is not pinned.
///
/// # Errors
///
/// Says what is missing and how to get it.
pub fn install_version(version: &str) -> Result<InstalledCli, InstallError> {
    let pins = [NEWEST, MIDDLE, MINIMUM];
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
            "no executable for {} {} in {}; remove that directory to install anew",
            env::consts::OS,
            env::consts::ARCH,
            home.display(),
        ))
    })?;
    let output = Command::new(&path)
        .arg("--version")
        .env_clear()
        // Where tests look for programs, too: an old CLI is a script that needs `node`.
        .env("PATH", super::sandbox::PATH)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| InstallError::Unusable(format!("{}: {error}", path.display())))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.split_whitespace().next().unwrap_or_default().to_owned();
    if version == pin.version() {
        Ok(InstalledCli { path, version })
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let said = format!("--version says `{}` {}", said.trim(), complaint.trim());
        Err(InstallError::Unusable(said))
    }
}

/// npm installs the packages that fit the machine and leaves out the others, so what is there fits.
/// On Linux both C libraries may be: the glibc one comes first. Old versions are a script.
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
