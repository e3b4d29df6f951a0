//! JSON values as the wire types hold them: opaque text, any number, unknown fields, lists that
//! know whether they were present.

mod access;
mod extra;
mod list;
mod map;
mod nullable;
mod number;

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::DecodeError;
use crate::repair;
use crate::schema::{self, Decode, Encode, Placeholder, Reader, Slot, View};

pub use extra::Extra;
pub use list::List;
pub use map::Map;
pub use nullable::Nullable;
pub use number::Number;
pub(crate) use number::{count, dollars, millis};

/// A JSON value kept as text and parsed on request: tool inputs and results, structured output,
/// settings, MCP messages.
///
/// Read one member with [`get`](Self::get) or [`pointer`](Self::pointer), the whole value with
/// [`deserialize`](Self::deserialize), the text itself with [`text`](Self::text).
///
/// Two values are equal when their texts are.
///
/// ```
/// use claude_wire::Json;
///
/// let input = Json::from_text(r#"{"command": "cargo test", "timeout": 60000}"#)?;
/// let command = input.get("command");
/// assert_eq!(command.as_ref().and_then(Json::as_str).as_deref(), Some("cargo test"));
/// assert_eq!(input.get("timeout").and_then(|timeout| timeout.as_u64()), Some(60_000));
/// # Ok::<(), claude_wire::DecodeError>(())
/// ```
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The value `null`.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Serializes `value` as JSON.
    ///
    /// # Errors
    /// If `value` cannot be represented in JSON, such as a map whose keys are not strings.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, DecodeError> {
        serde_json::value::to_raw_value(value).map(Self).map_err(DecodeError::from_json)
    }

    /// Writes a wire type. Such a type has keys that are strings and values that are JSON, so this cannot
    /// fail.
    pub(crate) fn from_view(view: View<'_>) -> Self {
        Self::from_serialize(&view).unwrap_or_default()
    }

    /// Creates a value from JSON text, which is kept unchanged.
    ///
    /// # Errors
    /// If `text` is not one JSON value.
    pub fn from_text(text: impl Into<String>) -> Result<Self, DecodeError> {
        RawValue::from_string(text.into()).map(Self).map_err(DecodeError::from_json)
    }

    /// Returns the JSON text, exactly as it was received.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Deserializes the value into `T`. Lone surrogate escapes, which models sometimes write, become
    /// U+FFFD.
    ///
    /// # Errors
    /// If the value cannot be deserialized into `T`.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, DecodeError> {
        let error = match serde_json::from_str(self.text()) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match self.repaired() {
            Some(text) => serde_json::from_str(&text).map_err(DecodeError::from_json),
            None => Err(DecodeError::from_json(error)),
        }
    }

    /// Does the same as [`Self::deserialize`] for a wire type, with less code for each.
    pub(crate) fn decode<T: Decode + Placeholder>(&self) -> Result<T, DecodeError> {
        let mut value = T::placeholder();
        self.decode_into(&mut value)?;
        Ok(value)
    }

    /// Does the same as [`Self::decode`], without code for each type.
    pub(crate) fn decode_into(&self, slot: &mut dyn Slot) -> Result<(), DecodeError> {
        let Err(error) = schema::fill_all(slot, Reader::new(self.text())) else {
            return Ok(());
        };
        let Some(text) = self.repaired() else { return Err(DecodeError::from_json(error)) };
        slot.reset();
        schema::fill_all(slot, Reader::new(&text)).map_err(DecodeError::from_json)
    }

    #[cold]
    fn repaired(&self) -> Option<String> {
        repair::repaired(self.text().as_bytes())
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
        // A `Value` has string keys and finite numbers, so encoding it cannot fail.
        Self::from_serialize(&value).unwrap_or_default()
    }
}

impl From<&str> for Json {
    /// Creates a JSON string.
    fn from(text: &str) -> Self {
        Self::from_view(View::Text(text))
    }
}

impl From<&Extra> for Json {
    /// Creates a JSON object.
    fn from(fields: &Extra) -> Self {
        Self::from_view(fields.view())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
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
