//! The Rust SDK for Claude agents. Queries and sessions are being built on `claude-wire`.

mod cli;
mod error;

pub use cli::{Cli, CliVersion, MINIMUM_FOR_PRINT_MODE};
pub use error::{Error, ErrorKind, Result};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
