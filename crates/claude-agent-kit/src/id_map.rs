//! Values by number.

/// Values by a number, in the order of the numbers, which mostly grow.
///
/// A hash table is compiled for each type of value; here only the access to the vector is.
#[derive(Debug)]
pub(crate) struct IdMap<T> {
    ids: Vec<u64>,
    /// In the order of the numbers.
    values: Vec<T>,
}

impl<T> Default for IdMap<T> {
    fn default() -> Self {
        Self { ids: Vec::new(), values: Vec::new() }
    }
}

impl<T> IdMap<T> {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        find(&self.ids, id).ok().map(|at| &self.values[at])
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        find(&self.ids, id).ok().map(|at| &mut self.values[at])
    }

    /// Sets the value of a number.
    pub(crate) fn insert(&mut self, id: u64, value: T) {
        match find(&self.ids, id) {
            Ok(at) => self.values[at] = value,
            Err(at) => {
                self.ids.insert(at, id);
                self.values.insert(at, value);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<T> {
        let at = find(&self.ids, id).ok()?;
        self.ids.remove(at);
        Some(self.values.remove(at))
    }

    /// Returns the numbers in their order.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Returns the values in the order of their numbers.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
}

/// Returns the place of a number in a sorted list, or where it belongs.
pub(crate) fn find(ids: &[u64], id: u64) -> Result<usize, usize> {
    ids.binary_search(&id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_replaced_and_removed_by_number() {
        let mut map = IdMap::default();
        for (id, value) in [(3, "c"), (1, "a"), (2, "x"), (2, "b")] {
            map.insert(id, value);
        }
        assert_eq!((map.ids(), map.values(), map.len()), (&[1, 2, 3][..], &["a", "b", "c"][..], 3));
        assert_eq!((map.get(2), map.get(4)), (Some(&"b"), None));
        assert_eq!(map.get_mut(1).map(|value| std::mem::replace(value, "z")), Some("a"));
        assert_eq!((map.remove(1), map.remove(1)), (Some("z"), None));
    }
}
