//! How many random runs the tests play.

/// Returns `count`, or as many times more as the variable `SEEDS` says.
pub(crate) fn times(count: u64) -> u64 {
    let times = std::env::var("SEEDS").ok().map_or(1, |times| times.parse().unwrap());
    count * times
}
