//! Claims that are proved by counting: many repetitions on the real CLI, under load.
//!
//! `cargo xtask prove <area>` runs each as often as `docs/proofs.md` says; the test run a tenth.

pub mod deferred;
mod load;

pub use load::Load;

/// A claim that can be proved.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Area {
    /// The name by which it is run.
    pub name: &'static str,
    /// What is claimed.
    pub claim: &'static str,
    /// How many repetitions make the proof.
    pub repetitions: usize,
}

/// Every area.
pub const AREAS: [Area; 1] = [deferred::AREA];
