//! The Rust SDK for Claude agents.
