//! A map for few entries.

use std::collections::VecDeque;

/// A map that keeps its entries in order, side by side. Where there are mostly one or two, that is
/// cheaper than a tree, which takes and gives back memory for each; and its room stays. Taking one out
/// of the thousands that there may be moves the others on its shorter side.
#[derive(Debug)]
pub(super) struct FlatMap<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for FlatMap<K, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: Ord, V> FlatMap<K, V> {
    fn find(&self, key: &K) -> Result<usize, usize> {
        // Most come last: keys that count up, and times.
        match self.0.back() {
            Some((last, _)) if last < key => Err(self.0.len()),
            None => Err(0),
            Some(_) => self.0.binary_search_by(|(other, _)| other.cmp(key)),
        }
    }

    /// Puts a value in the place of the one that may be there.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        self.0.remove(at).map(|(_, value)| value)
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key).ok().map(|at| &mut self.0[at].1)
    }

    pub(super) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// The entry with the least key.
    pub(super) fn first(&self) -> Option<(&K, &V)> {
        self.0.front().map(|(key, value)| (key, value))
    }

    /// All entries, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Takes all values out, in order.
    pub(super) fn take_values(&mut self) -> impl Iterator<Item = V> + use<K, V> {
        std::mem::take(&mut self.0).into_iter().map(|(_, value)| value)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_does_what_a_tree_does(steps in prop::collection::vec((0_u8..4, 0_u16..64), 0..200)) {
            let (mut flat, mut tree) = (FlatMap::default(), BTreeMap::new());
            for (number, (step, key)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        flat.insert(key, number);
                        tree.insert(key, number);
                    }
                    2 => prop_assert_eq!(flat.remove(&key), tree.remove(&key)),
                    _ => {
                        if let Some(value) = flat.get_mut(&key) {
                            *value += 1000;
                        }
                        if let Some(value) = tree.get_mut(&key) {
                            *value += 1000;
                        }
                    }
                }
                prop_assert_eq!(flat.get(&key), tree.get(&key));
                prop_assert_eq!(flat.contains_key(&key), tree.contains_key(&key));
                prop_assert_eq!(flat.first(), tree.first_key_value());
                prop_assert_eq!(flat.len(), tree.len());
                prop_assert!(flat.iter().eq(tree.iter()));
            }
            prop_assert!(flat.take_values().eq(tree.into_values()));
            prop_assert_eq!(flat.len(), 0);
        }
    }
}
