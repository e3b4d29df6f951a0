//! An object whose keys are data.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;

use serde::ser::{Serialize, Serializer};

use crate::sort::sort_by;

/// Values by name, sorted by name.
///
/// Small enough to be searched and changed in one vector: names of agents, models, variables. A
/// `BTreeMap` for each type of value takes ten times the code.
#[derive(Clone, PartialEq, Eq)]
pub struct Map<T>(Vec<(String, T)>);

impl<T> Map<T> {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    /// Returns the value of a name, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.find(name).ok().map(|at| &mut self.0[at].1)
    }

    /// Returns whether there is a value of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Sets the value of a name and returns the previous one.
    pub fn insert(&mut self, name: impl Into<String>, value: T) -> Option<T> {
        let name = name.into();
        match self.find(&name) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes and returns the value of a name.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        self.find(name).ok().map(|at| self.0.remove(at).1)
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the names in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the values, sorted by name.
    pub fn values(&self) -> impl Iterator<Item = &T> + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    pub(crate) fn entries(&self) -> &[(String, T)] {
        &self.0
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(key, _)| key.as_str().cmp(name))
    }
}

impl<T: fmt::Debug> fmt::Debug for Map<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<T> Default for Map<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<Vec<(String, T)>> for Map<T> {
    /// Sorts the entries. Of entries with one name the last one counts.
    fn from(entries: Vec<(String, T)>) -> Self {
        let Some(order) = sorted_order(&mut entries.iter().map(|(name, _)| name.as_str())) else {
            return Self(entries);
        };
        let mut entries: Vec<Option<(String, T)>> = entries.into_iter().map(Some).collect();
        Self(order.into_iter().filter_map(|at| entries[at].take()).collect())
    }
}

/// Returns the positions of names in sorted order, without those that come again behind; `None` if
/// the names are sorted already.
fn sorted_order(names: &mut dyn Iterator<Item = &str>) -> Option<Vec<usize>> {
    let names: Vec<&str> = names.collect();
    if names.is_sorted_by(|one, other| one < other) {
        return None;
    }
    let mut order: Vec<usize> = (0..names.len()).rev().collect();
    sort_by(&mut order, &|one, other| names[*one].cmp(names[*other]));
    order.dedup_by_key(|at| names[*at]);
    Some(order)
}

impl<N: Into<String>, T> FromIterator<(N, T)> for Map<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(name, value)| (name.into(), value));
        Self::from(entries.collect::<Vec<_>>())
    }
}

impl<N: Into<String>, T, const LENGTH: usize> From<[(N, T); LENGTH]> for Map<T> {
    fn from(entries: [(N, T); LENGTH]) -> Self {
        entries.into_iter().collect()
    }
}

impl<T> From<BTreeMap<String, T>> for Map<T> {
    fn from(entries: BTreeMap<String, T>) -> Self {
        entries.into_iter().collect()
    }
}

impl<N: Into<String>, T> Extend<(N, T)> for Map<T> {
    fn extend<I: IntoIterator<Item = (N, T)>>(&mut self, entries: I) {
        for (name, value) in entries {
            self.insert(name, value);
        }
    }
}

impl<T> IntoIterator for Map<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> Index<&str> for Map<T> {
    type Output = T;

    /// # Panics
    /// If there is no value of this name.
    fn index(&self, name: &str) -> &T {
        self.get(name).expect("no value of this name")
    }
}

impl<'a, T> IntoIterator for &'a Map<T> {
    type Item = (&'a str, &'a T);
    type IntoIter =
        std::iter::Map<std::slice::Iter<'a, (String, T)>, fn(&(String, T)) -> (&str, &T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(name, value)| (name, value))
    }
}

impl<T: Serialize> Serialize for Map<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::Map;

    #[test]
    fn entries_are_sorted_and_the_last_of_a_name_counts() {
        let map = Map::from([("b", 1), ("a", 2), ("b", 3), ("", 4), ("a", 5)]);
        assert_eq!(map.iter().collect::<Vec<_>>(), [("", &4), ("a", &5), ("b", &3)]);
        assert_eq!(Map::from([("a", 1), ("b", 2)]).into_iter().count(), 2);
    }

    #[test]
    fn values_are_found_replaced_and_removed_by_name() {
        let mut map = Map::new();
        for (at, name) in ["m", "z", "a", "m"].into_iter().enumerate() {
            assert_eq!(map.insert(name, at), (at == 3).then_some(0));
        }
        *map.get_mut("z").unwrap() = 7;
        assert_eq!((map["z"], map.get("b"), map.contains_key("a")), (7, None, true));
        assert_eq!((map.remove("a"), map.remove("a"), map.len()), (Some(2), None, 2));
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"m":3,"z":7}"#);
    }
}
