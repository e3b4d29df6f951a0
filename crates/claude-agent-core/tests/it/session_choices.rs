//! Choices of a random harness.

use std::collections::VecDeque;

/// Where choices come from: given bytes while there are some, then numbers that a seed gives
/// (splitmix64), which is enough randomness for a test.
pub(crate) struct Choices {
    given: VecDeque<u8>,
    seed: u64,
}

impl Choices {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { given: VecDeque::new(), seed }
    }

    /// Two bytes for each choice.
    pub(crate) fn given(bytes: &[u8]) -> Self {
        Self { given: bytes.iter().copied().collect(), seed: 0 }
    }

    fn next(&mut self) -> u64 {
        if let Some(low) = self.given.pop_front() {
            return u64::from(low) | u64::from(self.given.pop_front().unwrap_or(0)) << 8;
        }
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    pub(crate) fn one_in(&mut self, most: u64) -> bool {
        self.below(most) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() {
            return None;
        }
        let place = self.below(u64::try_from(from.len()).unwrap());
        from.get(usize::try_from(place).unwrap())
    }
}
