//! Unknown fields of a type.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Json;
use crate::schema;

/// The unknown fields of an object, in their original order.
///
/// Takes one word if empty, because every wire struct contains one.
#[expect(clippy::box_collection, reason = "one word in every struct, not three")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra(Option<Box<Vec<(String, Json)>>>);

impl Extra {
    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Sets a field, replacing the one of that name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.set_field(name.into(), value.into());
    }

    fn set_field(&mut self, name: String, value: Json) {
        let fields = self.0.get_or_insert_default();
        match fields.iter_mut().find(|(key, _)| *key == name) {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        }
    }

    /// Returns the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.fields().iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.fields().len()
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn fields(&self) -> &[(String, Json)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn push(&mut self, name: String, value: Json) {
        self.0.get_or_insert_default().push((name, value));
    }

    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (name, value) in self.fields() {
            map.serialize_entry(name, value)?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        schema::deserialize(deserializer)
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        self.write(&mut map)?;
        map.end()
    }
}
