//! Whether the caller of a function is gone.

use std::fmt;

use super::index::Index;

/// Asks whether the caller is gone: work in proportion to a transcript asks for every entry.
#[derive(Clone, Copy, Default)]
pub(super) struct Cancel<'c>(Option<&'c (dyn Fn() -> bool + Sync)>);

impl<'c> Cancel<'c> {
    pub(super) fn new(is_cancelled: &'c (dyn Fn() -> bool + Sync)) -> Self {
        Self(Some(is_cancelled))
    }

    pub(super) fn is_set(self) -> bool {
        self.0.is_some_and(|is_cancelled| is_cancelled())
    }

    /// The positions of all rows, or fewer if the caller is gone.
    pub(super) fn rows(self, index: &Index) -> RowPositions<'c> {
        RowPositions { cancel: self, next: 0, end: index.row_count() }
    }
}

impl fmt::Debug for Cancel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.0.is_some()).finish()
    }
}

/// The positions of the rows of an index.
#[derive(Clone)]
pub(super) struct RowPositions<'c> {
    cancel: Cancel<'c>,
    next: u32,
    end: u32,
}

impl Iterator for RowPositions<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.next == self.end || self.cancel.is_set() {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}
