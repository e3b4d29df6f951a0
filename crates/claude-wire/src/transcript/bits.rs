//! A set of rows, one bit each.

#[derive(Clone, Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(count: u32) -> Self {
        Self(vec![0; count as usize / 64 + 1])
    }

    pub(super) fn has(&self, at: u32) -> bool {
        self.0[at as usize / 64] >> (at % 64) & 1 == 1
    }

    /// Adds a row and returns whether it is new.
    pub(super) fn add(&mut self, at: u32) -> bool {
        let is_new = !self.has(at);
        self.0[at as usize / 64] |= 1 << (at % 64);
        is_new
    }

    pub(super) fn remove(&mut self, at: u32) {
        self.0[at as usize / 64] &= !(1 << (at % 64));
    }
}
