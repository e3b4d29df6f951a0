//! The files of a session on the local disk.

pub(crate) mod config;
pub(crate) mod errors;
pub(crate) mod live;
pub(crate) mod note;
pub(crate) mod open;
pub(crate) mod own_files;
pub(crate) mod private_file;
pub(crate) mod private_folder;
pub(crate) mod project;
pub(crate) mod write;
