//! The real CLI: installed from npm at an exact version and started in a clean environment.

pub(crate) mod cache;
mod install;
pub(crate) mod npm;
mod process;
mod sandbox;

pub use self::install::{
    InstalledCli, approval_versions, install, install_version, pinned_version, pinned_versions,
};
pub use self::npm::InstallError;
pub use self::process::RealProcess;
pub use self::sandbox::{DUMMY_KEY, SandboxDir};
