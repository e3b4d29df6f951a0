//! Experiments that are repeated many times on the real CLI, under load.
//!
//! `cargo xtask prove <area>` repeats each as often as `docs/proofs.md` states; the tests a tenth as often.

pub mod deferred;
pub mod killed_hosts;
mod load;
pub mod postgres;
pub mod stores;

pub use load::Load;

/// A claim with its experiment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Area {
    /// The name of the area.
    pub name: &'static str,
    /// The claim.
    pub claim: &'static str,
    /// The number of repetitions.
    pub repetitions: usize,
}

/// Every area.
pub const AREAS: [Area; 4] = [deferred::AREA, stores::AREA, killed_hosts::AREA, postgres::AREA];
