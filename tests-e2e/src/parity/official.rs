//! The published packages, installed once per machine at their pinned versions.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Names, Source, flags, python, typescript};
use crate::real_cli::npm::{self, Pin};
use crate::real_cli::{self, InstallError, cache};

const TYPESCRIPT: Pin = Pin {
    name: "@anthropic-ai/claude-agent-sdk",
    package: Cow::Borrowed(include_str!("../../parity/package.json")),
    lock: Some(include_str!("../../parity/package-lock.json")),
    folder: "sdk-typescript",
    // Only the declarations and the JavaScript are used, so neither the bundled CLIs nor peer dependencies are needed.
    arguments: &["--omit=optional", "--legacy-peer-deps"],
};

const REQUIREMENTS: &str = include_str!("../../parity/requirements.txt");

/// Returns the names that a source publishes at its pinned version. Installs it if necessary.
///
/// # Errors
///
/// Returns an error when the source cannot be installed or read.
pub fn names(source: Source) -> Result<Names, InstallError> {
    let found = match source {
        Source::TypeScript => typescript::names(&read(&typescript_package()?.join("sdk.d.ts"))?),
        Source::Python => {
            let package = python_sources()?.join("src/claude_agent_sdk");
            let mut sources = python::FILES.map(str::to_owned);
            for source in &mut sources {
                *source = read(&package.join(&*source))?;
            }
            python::names(&sources)
        }
        Source::Cli => return flags::of(&real_cli::install()?),
    };
    found.map_err(InstallError::Unusable)
}

/// Returns the pinned version.
pub fn version(source: Source) -> String {
    match source {
        Source::TypeScript => TYPESCRIPT.version(),
        Source::Python => python_version().to_owned(),
        Source::Cli => real_cli::pinned_version(),
    }
}

fn python_version() -> &'static str {
    let pinned = REQUIREMENTS.lines().find_map(|line| line.strip_prefix("claude-agent-sdk=="));
    pinned.and_then(|rest| rest.split_whitespace().next()).unwrap_or("unpinned")
}

/// Returns the package of the TypeScript SDK. Installs it if necessary.
///
/// # Errors
///
/// Returns an error when it cannot be installed.
pub fn typescript_package() -> Result<PathBuf, InstallError> {
    Ok(TYPESCRIPT.install()?.join("node_modules").join(TYPESCRIPT.name))
}

/// Returns the sources of the Python SDK. Downloads them if necessary; pip verifies the pinned checksum.
///
/// # Errors
///
/// Returns an error when they cannot be downloaded.
pub fn python_sources() -> Result<PathBuf, InstallError> {
    let version = python_version();
    let wanted = format!("claude-agent-sdk {version}");
    cache::once(&format!("sdk-python-{version}"), |staging| {
        let failed = |error| InstallError::Cache(staging.to_owned(), error);
        fs::write(staging.join("requirements.txt"), REQUIREMENTS).map_err(failed)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--no-deps", "--require-hashes", "--quiet"])
            .args(["--disable-pip-version-check", "--no-binary", "claude-agent-sdk"])
            .args(["-r", "requirements.txt"]);
        npm::run(pip.current_dir(staging), "python3 with pip", &wanted)?;
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "tarfile", "-e", &format!("claude_agent_sdk-{version}.tar.gz")]);
        npm::run(unpack.current_dir(staging), "python3", &wanted)
    })
    .map(|home| home.join(format!("claude_agent_sdk-{version}")))
}

fn read(path: &Path) -> Result<String, InstallError> {
    fs::read_to_string(path).map_err(|error| InstallError::Cache(path.to_owned(), error))
}
