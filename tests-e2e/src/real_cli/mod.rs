//! The real CLI: installed from npm at an exact version, started with nothing of this machine.

mod install;
mod process;
mod world;

pub use self::{
    install::{InstallError, InstalledCli, install, pinned_version},
    process::RealProcess,
    world::{DUMMY_KEY, World},
};
