//! The decisions of `claude-agent-kit`, without I/O.
//!
//! [`session::Machine`] decides what happens in a run: it takes events and returns effects, which the kit performs. It
//! has no runtime, no clock and no threads. Times and random IDs are arguments, so that a seed reproduces a run.
//!
//! This crate is internal. Its API follows the kit, which depends on its exact version.

pub mod session;
