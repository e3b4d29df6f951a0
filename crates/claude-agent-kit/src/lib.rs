//! The Rust SDK for Claude agents. Queries and sessions are being built on `claude-wire`.

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
