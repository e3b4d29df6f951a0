//! The random number generator of a run.

use std::time::Duration;

/// A seeded random number generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an independent generator, so that one part of a run does not influence the numbers of another.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        let span = high.saturating_sub(low) as u64 + 1;
        low + usize::try_from(self.next() % span).unwrap_or_default()
    }

    /// Returns `true` with this probability in percent.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.between(0, of.len() - 1)].clone()
    }

    /// Returns a delay: mostly zero, often milliseconds, rarely seconds.
    pub(crate) fn delay(&mut self) -> Duration {
        match self.between(0, 9) {
            0..=4 => Duration::ZERO,
            5..=7 => Duration::from_millis(self.between(1, 50) as u64),
            8 => Duration::from_millis(self.between(50, 2_000) as u64),
            _ => Duration::from_millis(self.between(2_000, 9_000) as u64),
        }
    }

    /// Returns a point in time of a run.
    pub(crate) fn moment(&mut self) -> Duration {
        let most = self.pick(&[20, 200, 2_000, 30_000]);
        Duration::from_micros(self.between(0, most * 1_000) as u64)
    }
}
