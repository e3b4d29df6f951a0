//! Benchmarks of the SDK against other SDKs and a minimal client: `cargo xtask bench`.
//!
//! - [`row`]: what is measured, how it is compared, and the targets.
//! - [`subject`]: builds and runs the programs of `benches/`.
//! - [`measure`]: interleaved rounds.
//! - [`spread`]: medians and quartiles.
//! - [`linear`]: whether cost grows linearly with size.
//! - [`compile`]: compile times of programs that use an SDK.
//! - [`history`]: stored conversations, beside the official SDKs.
//! - [`stores`]: session stores, beside those of the official SDKs.
//! - [`table`]: the results as Markdown.

pub mod compile;
pub mod history;
pub mod linear;
pub mod measure;
pub mod row;
pub mod spread;
#[cfg(target_os = "linux")]
pub mod stores;
pub mod subject;
pub mod table;
