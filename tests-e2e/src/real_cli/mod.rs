//! The real CLI: installed from npm at an exact version, started with nothing of this machine.

pub(crate) mod cache;
mod install;
pub(crate) mod npm;
mod process;
mod sandbox;

pub use self::{
    install::{InstalledCli, install, install_version, pinned_version, pinned_versions},
    npm::InstallError,
    process::RealProcess,
    sandbox::{DUMMY_KEY, SandboxDir},
};
