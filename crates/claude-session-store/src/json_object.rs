//! How this crate's types serialise: one JSON object each, tagged with its `type`.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// An object that is being written.
#[derive(Debug)]
pub struct JsonObject<S: Serializer>(S::SerializeMap);

impl<S: Serializer> JsonObject<S> {
    /// Begins an object of this type.
    pub fn new(serializer: S, kind: &'static str) -> Result<Self, S::Error> {
        let mut object = Self::untagged(serializer)?;
        object.field("type", kind)?;
        Ok(object)
    }

    /// Begins an object that is part of another.
    pub fn untagged(serializer: S) -> Result<Self, S::Error> {
        serializer.serialize_map(None).map(Self)
    }

    pub fn field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.0.serialize_entry(name, value)
    }

    /// Writes a field that is left out if there is no value.
    pub fn optional<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: Option<&T>,
    ) -> Result<(), S::Error> {
        value.map_or(Ok(()), |value| self.field(name, value))
    }

    /// Writes a field that is left out if it is empty.
    pub fn list<T: Serialize>(&mut self, name: &'static str, values: &[T]) -> Result<(), S::Error> {
        self.optional(name, Some(values).filter(|values| !values.is_empty()))
    }

    pub fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}
