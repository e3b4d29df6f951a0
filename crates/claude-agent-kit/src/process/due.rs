//! What is due at which time.

use std::time::Duration;

/// IDs by the time at which they are due, sorted. There are a few for each child.
#[derive(Debug, Default)]
pub(super) struct DueTimes(Vec<(Duration, u64)>);

impl DueTimes {
    pub(super) fn insert(&mut self, at: Duration, id: u64) {
        if let Err(place) = self.0.binary_search(&(at, id)) {
            self.0.insert(place, (at, id));
        }
    }

    pub(super) fn remove(&mut self, at: Duration, id: u64) {
        if let Ok(place) = self.0.binary_search(&(at, id)) {
            self.0.remove(place);
        }
    }

    /// Returns what is due first, and when.
    pub(super) fn first(&self) -> Option<(Duration, u64)> {
        self.0.first().copied()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
