//! The store in memory passes the suite, and stores with typical faults do not.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod faulty_record_stores;
mod faulty_stores;
mod fence_gap;
mod memory;
mod purity;
