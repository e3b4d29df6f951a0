//! What a seed decides.

use std::time::Duration;

/// Numbers that follow from a seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another sequence, so that what one part draws does not move what others draw.
    pub(super) fn branch(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        let span = high.saturating_sub(low) as u64 + 1;
        low + usize::try_from(self.next() % span).unwrap_or_default()
    }

    /// True so many times out of a hundred.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.between(0, of.len() - 1)].clone()
    }

    /// Mostly none, often some milliseconds, seldom seconds.
    pub(super) fn delay(&mut self) -> Duration {
        match self.between(0, 9) {
            0..=4 => Duration::ZERO,
            5..=7 => Duration::from_millis(self.between(1, 50) as u64),
            8 => Duration::from_millis(self.between(50, 2_000) as u64),
            _ => Duration::from_millis(self.between(2_000, 9_000) as u64),
        }
    }

    /// A moment in a run.
    pub(super) fn moment(&mut self) -> Duration {
        let most = self.pick(&[20, 200, 2_000, 30_000]);
        Duration::from_micros(self.between(0, most * 1_000) as u64)
    }
}
