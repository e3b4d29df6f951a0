//! Servers for the tests of session stores, and a proxy in front of them that stalls.
//!
//! The tests of `claude-agent-store` and those of `tests-e2e` use them, and its benchmarks do.

#[cfg(target_os = "linux")]
pub mod postgres;
mod proxy;
#[cfg(target_os = "linux")]
pub mod s3;
#[cfg(target_os = "linux")]
mod skip;

pub use proxy::Proxy;
