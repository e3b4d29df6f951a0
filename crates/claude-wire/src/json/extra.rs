//! The fields that a type does not name.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Json;
use crate::schema::Key;

/// Fields of an object in the order in which they came. Empty, it takes no heap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra(Vec<(String, Json)>);

impl Extra {
    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets a field, replacing the one of that name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some(field) => field.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, name: String, value: Json) {
        self.0.push((name, value));
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ExtraVisitor;

        impl<'de> Visitor<'de> for ExtraVisitor {
            type Value = Extra;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Extra, A::Error> {
                let mut extra = Extra::default();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    extra.push(key.into_string(), map.next_value()?);
                }
                Ok(extra)
            }
        }

        deserializer.deserialize_map(ExtraVisitor)
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.write(&mut map)?;
        map.end()
    }
}
