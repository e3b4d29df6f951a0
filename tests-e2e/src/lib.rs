//! End-to-end tests of the project.
//!
//! - [`real_cli`]: installs the pinned CLI and starts it in a clean environment.
//! - [`scenario`]: scenarios that run against a CLI and check its responses.
//! - [`scrub`]: scrubs recordings before they are stored.
//! - [`drift`]: compares the shape of a new recording with the stored one.
//! - [`corpus`]: the stored recordings.
//! - [`decoded`]: checks that every line of a recording can be decoded.
//! - [`faults`]: the outcome of every fault in every session state.
//! - [`golden`]: hashes of what is written and delivered.
//! - [`external_mcp`]: an MCP server outside the host process.
//! - [`simulation`]: deterministic simulation of whole runs from a seed.
//! - [`harness`]: the harness for tests of the SDK.
//! - [`compare`]: compares the output of two CLIs.
//! - [`parity`]: compares the public API with those of the official SDKs.
//! - [`public_api`]: lists the public API of the crates.
//! - [`transcripts`]: transcripts of the real CLI, recorded for the tests of the history.
//! - [`tables`]: derives tables of the guide from the code.
//! - [`mod@bench`]: compares the performance with other SDKs.
//! - [`prove`]: experiments that are repeated many times on the real CLI.
//! - [`workspace`]: paths of the workspace, and the tests that the documents name.

#[cfg(unix)]
pub mod bench;
pub mod compare;
pub mod corpus;
pub mod decoded;
pub mod drift;
pub mod external_mcp;
#[cfg(unix)]
pub mod faults;
pub mod golden;
pub mod harness;
#[cfg(test)]
mod language;
pub mod limits;
pub mod parity;
pub mod prove;
pub mod public_api;
pub mod real_cli;
pub mod scenario;
pub mod scrub;
pub mod simulation;
pub mod snippets;
pub mod tables;
pub mod transcripts;
pub mod versions;
pub mod workspace;

/// Compiles the examples of the README of the repository, which is not part of a package.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
