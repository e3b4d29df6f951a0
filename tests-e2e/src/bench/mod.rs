//! The SDK beside others and beside the least that a client can do: `cargo xtask bench`.
//!
//! - [`row`]: what is measured, how it is compared, and what is aimed at.
//! - [`contestant`]: the programs of `benches/`, built and installed; one run of one of them.
//! - [`measure`]: rounds in which everybody takes a turn.
//! - [`spread`]: medians and quartiles.
//! - [`linear`]: whether a hundred times as much costs a hundred times as much.
//! - [`compile`]: how long programs take to build.
//! - [`table`]: what came of it, as Markdown.

pub mod compile;
pub mod contestant;
pub mod linear;
pub mod measure;
pub mod row;
pub mod spread;
pub mod table;
