//! JSON values as the wire types hold them: opaque text, any number, kept fields, lists that know
//! whether they came.

mod extra;
mod list;
mod nullable;
mod number;

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::DecodeError;
use crate::repair;

pub use extra::Extra;
pub use list::List;
pub use nullable::Nullable;
pub use number::Number;

/// A JSON value kept as text and parsed on request: tool inputs and results, structured output,
/// settings, MCP messages.
///
/// Two are equal when their texts are.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value `null`.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// The JSON text of `value`.
    ///
    /// # Errors
    /// When `value` cannot be written as JSON (a map with keys that are not strings, say).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, DecodeError> {
        serde_json::value::to_raw_value(value).map(Self).map_err(DecodeError::from_json)
    }

    /// Takes a text that is JSON.
    ///
    /// # Errors
    /// When it is not.
    pub fn from_text(text: impl Into<String>) -> Result<Self, DecodeError> {
        RawValue::from_string(text.into()).map(Self).map_err(DecodeError::from_json)
    }

    /// The text as it came.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Parses the text. Lone surrogate escapes, which the CLI passes on from the model, are read
    /// as U+FFFD.
    ///
    /// # Errors
    /// When the text does not fit `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let error = match serde_json::from_str(self.as_str()) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match repair::repaired(self.as_str().as_bytes()) {
            Some(text) => serde_json::from_slice(&text).map_err(DecodeError::from_json),
            None => Err(DecodeError::from_json(error)),
        }
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::null()
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // A `Value` has string keys and finite numbers, so writing it cannot fail.
        Self::of(&value).unwrap_or_default()
    }
}

impl From<&str> for Json {
    /// The JSON string of this text.
    fn from(text: &str) -> Self {
        // Every text can be written as a JSON string.
        Self::of(text).unwrap_or_default()
    }
}

impl From<&Extra> for Json {
    /// The object of these fields.
    fn from(fields: &Extra) -> Self {
        // Keys are strings and values are JSON already, so writing them cannot fail.
        Self::of(fields).unwrap_or_default()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
