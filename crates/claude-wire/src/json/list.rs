//! A list that distinguishes empty from absent.

use std::ops::{Deref, DerefMut};

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// A list field. Dereferences to a slice, and records whether the field was present, so that encoding a
/// message reproduces it.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(Option<Vec<T>>);

impl<T> List<T> {
    /// Creates the list of an absent field.
    pub fn absent() -> Self {
        Self(None)
    }

    /// Returns whether the field was absent.
    pub fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the entries; empty if the field was absent.
    pub fn as_slice(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn as_vec(&self) -> Option<&Vec<T>> {
        self.0.as_ref()
    }

    pub(crate) fn as_option_mut(&mut self) -> &mut Option<Vec<T>> {
        &mut self.0
    }

    /// Returns the entries as a vector.
    pub fn into_vec(self) -> Vec<T> {
        self.0.unwrap_or_default()
    }

    /// Adds an entry; the field is then present.
    pub fn push(&mut self, entry: T) {
        self.0.get_or_insert_default().push(entry);
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::absent()
    }
}

impl<T> From<Option<Vec<T>>> for List<T> {
    fn from(entries: Option<Vec<T>>) -> Self {
        Self(entries)
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(Some(entries))
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(Some(entries.into_iter().collect()))
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().unwrap_or_default()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
