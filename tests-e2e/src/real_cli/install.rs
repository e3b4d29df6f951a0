//! Installs the pinned CLI with npm, once per machine.

use std::{
    env,
    error::Error,
    fmt, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::fs::FlockOperation;

const PACKAGE: &str = include_str!("../../package.json");
const LOCK: &str = include_str!("../../package-lock.json");
const PACKAGE_NAME: &str = "@anthropic-ai/claude-code";

/// A CLI that is installed and answers `--version`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstalledCli {
    /// The native executable.
    pub path: PathBuf,
    /// Its version, as `1.2.3`.
    pub version: String,
}

/// Why the pinned CLI is not there.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstallError {
    /// There is no npm to install it with.
    NpmMissing(io::Error),
    /// npm did not install it.
    NpmFailed(String),
    /// npm installed something else than what is needed.
    Unusable(String),
    /// The cache could not be read or written.
    Cache(PathBuf, io::Error),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NpmMissing(error) => write!(
                f,
                "npm could not be started ({error}); the tests on the real CLI install \
                 {PACKAGE_NAME} {} with it. Install Node.js with npm (https://nodejs.org, or your \
                 system's package `npm`) and see that `npm` is on the PATH",
                pinned_version(),
            ),
            Self::NpmFailed(output) => write!(f, "npm did not install {PACKAGE_NAME}: {output}"),
            Self::Unusable(reason) => write!(f, "the installed CLI cannot be used: {reason}"),
            Self::Cache(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl Error for InstallError {}

/// The version that `package.json` pins.
pub fn pinned_version() -> String {
    let package: serde_json::Value = serde_json::from_str(PACKAGE).unwrap_or_default();
    package["dependencies"][PACKAGE_NAME].as_str().unwrap_or("unpinned").to_owned()
}

/// The pinned CLI, installed if it is not yet. Several processes may call this at once.
///
/// It lies outside the clone, below `CLAUDE_E2E_CACHE`, or `claude-agent-kit` in the user's cache
/// directory.
///
/// # Errors
///
/// Says what is missing and how to get it.
pub fn install() -> Result<InstalledCli, InstallError> {
    let cache = cache_directory();
    let home = cache.join(format!("cli-{}", pinned_version()));
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| InstallError::Cache(path, error)
    };
    fs::create_dir_all(&cache).map_err(at(&cache))?;
    let lock_path = cache.join("lock");
    let lock = fs::File::create(&lock_path).map_err(at(&lock_path))?;
    // Held until `lock` is dropped, also when this process dies.
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)
        .map_err(|error| InstallError::Cache(lock_path, error.into()))?;
    if !home.exists() {
        install_into(&cache, &home)?;
    }
    check(&home)
}

fn cache_directory() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CLAUDE_E2E_CACHE").unwrap_or_else(|| {
        set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .unwrap_or_else(env::temp_dir)
            .join("claude-agent-kit")
    })
}

/// Installs beside the place and renames: a half-done installation is never seen as a whole one.
fn install_into(cache: &Path, home: &Path) -> Result<(), InstallError> {
    let failed = |error| InstallError::Cache(cache.to_owned(), error);
    let staging =
        tempfile::Builder::new().prefix("installing-").tempdir_in(cache).map_err(failed)?;
    fs::write(staging.path().join("package.json"), PACKAGE).map_err(failed)?;
    fs::write(staging.path().join("package-lock.json"), LOCK).map_err(failed)?;
    let output = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(staging.path())
        .stdin(Stdio::null())
        .output()
        .map_err(InstallError::NpmMissing)?;
    if !output.status.success() {
        return Err(InstallError::NpmFailed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::rename(staging.keep(), home).map_err(failed)
}

fn check(home: &Path) -> Result<InstalledCli, InstallError> {
    let path = executable(home).ok_or_else(|| {
        InstallError::Unusable(format!(
            "no native executable for {} {} in {}; remove that directory to install anew",
            env::consts::OS,
            env::consts::ARCH,
            home.display(),
        ))
    })?;
    let output = Command::new(&path)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| InstallError::Unusable(format!("{}: {error}", path.display())))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.split_whitespace().next().unwrap_or_default().to_owned();
    if version == pinned_version() {
        Ok(InstalledCli { path, version })
    } else {
        Err(InstallError::Unusable(format!("--version says `{}`", said.trim())))
    }
}

/// npm installs the packages that fit the machine and leaves out the others, so what is there fits.
/// On Linux both C libraries may be: the glibc one comes first.
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
    ["", "-musl"]
        .into_iter()
        .map(|libc| scope.join(format!("claude-code-{system}-{machine}{libc}")))
        .flat_map(|package| [package.join("claude"), package.join("claude.exe")])
        .find(|path| path.is_file())
}
