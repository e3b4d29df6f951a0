//! A field that is always encoded.

use std::ops::{Deref, DerefMut};

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// An optional field that is encoded as `null` if it is empty, because the CLI requires it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nullable<T>(Option<T>);

impl<T> Nullable<T> {
    /// The field's value.
    pub fn into_option(self) -> Option<T> {
        self.0
    }
}

impl<T> Default for Nullable<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Option<T>> for Nullable<T> {
    fn from(value: Option<T>) -> Self {
        Self(value)
    }
}

impl<T> Deref for Nullable<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T> DerefMut for Nullable<T> {
    fn deref_mut(&mut self) -> &mut Option<T> {
        &mut self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Nullable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

impl<T: Serialize> Serialize for Nullable<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
