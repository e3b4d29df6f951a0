//! Values under increasing keys.

use std::collections::VecDeque;

/// A map whose keys are inserted in increasing order. Values are found by binary search, and mostly
/// removed near the front.
#[derive(Debug)]
pub(super) struct Sequential<K, V>(VecDeque<(K, V)>);

impl<K: Copy + Ord, V> Sequential<K, V> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Adds a value under a key that is greater than all before.
    pub(super) fn push(&mut self, key: K, value: V) {
        debug_assert!(self.0.back().is_none_or(|(last, _)| *last < key), "keys must increase");
        self.0.push_back((key, value));
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        Some(&self.0.get(self.index(key)?)?.1)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let index = self.index(key)?;
        Some(&mut self.0.get_mut(index)?.1)
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let (_, value) = self.0.remove(self.index(key)?)?;
        Some(value)
    }

    /// Returns the keys and values in increasing order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }

    fn index(&self, key: K) -> Option<usize> {
        self.0.binary_search_by_key(&key, |(key, _)| *key).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Sequential;

    #[test]
    fn values_are_found_and_removed_by_key() {
        let mut values = Sequential::new();
        for key in [1, 3, 4, 8] {
            values.push(key, key * 10);
        }
        assert_eq!((values.remove(3), values.remove(3)), (Some(30), None));
        assert_eq!((values.get(4), values.get(5)), (Some(&40), None));
        *values.get_mut(8).unwrap() = 1;
        let left: Vec<_> = values.iter().copied().collect();
        assert_eq!(left, [(1, 10), (4, 40), (8, 1)]);
    }
}
