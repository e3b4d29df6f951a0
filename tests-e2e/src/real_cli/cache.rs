//! The cache of installed packages, outside the working copy.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::InstallError;

/// Returns the directory `name` of the cache, and fills it first if it does not exist. May be called by several
/// processes at once.
///
/// The cache is at `CLAUDE_E2E_CACHE`, or at `claude-agent-kit` in the user's cache directory.
pub(crate) fn once(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<(), InstallError>,
) -> Result<PathBuf, InstallError> {
    let cache = directory();
    let home = cache.join(name);
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| InstallError::Cache(path, error)
    };
    fs::create_dir_all(&cache).map_err(at(&cache))?;
    let lock_path = cache.join("lock");
    let lock = fs::File::create(&lock_path).map_err(at(&lock_path))?;
    // Held until `lock` is dropped or the process exits.
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)
        .map_err(|error| InstallError::Cache(lock_path, error.into()))?;
    if !home.exists() {
        // Installed elsewhere and renamed, so that an incomplete installation is never used.
        let staging = tempfile::Builder::new()
            .prefix("installing-")
            .tempdir_in(&cache)
            .map_err(at(&cache))?;
        fill(staging.path())?;
        fs::rename(staging.keep(), &home).map_err(at(&home))?;
    }
    Ok(home)
}

fn directory() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CLAUDE_E2E_CACHE").unwrap_or_else(|| {
        set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .unwrap_or_else(env::temp_dir)
            .join("claude-agent-kit")
    })
}
