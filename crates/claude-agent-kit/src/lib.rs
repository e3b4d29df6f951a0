//! The Rust SDK for Claude agents. Queries and sessions are being built on `claude-wire`.

mod cli;
mod error;
pub mod guide;
#[cfg_attr(not(test), expect(dead_code, reason = "queries and sessions start their CLI with it"))]
mod process;

pub use cli::{Cli, CliVersion, MINIMUM_FOR_PRINT_MODE};
pub use error::{Error, ErrorKind, Result};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
