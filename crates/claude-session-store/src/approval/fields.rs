//! Reads the fields of a JSON object.

use claude_wire::Json;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};

/// The fields of an object, parsed on request. Unknown fields are ignored.
pub(super) struct Fields(Json);

impl Fields {
    pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <Json as Deserialize>::deserialize(deserializer)?;
        if !json.is_object() {
            return Err(D::Error::custom("expected an object"));
        }
        Ok(Self(json))
    }

    pub(super) fn optional<T: DeserializeOwned, E: Error>(
        &self,
        name: &str,
    ) -> Result<Option<T>, E> {
        let Some(value) = self.0.get(name).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let read = value.deserialize();
        read.map(Some).map_err(|error| E::custom(format!("invalid field `{name}`: {error}")))
    }

    pub(super) fn required<T: DeserializeOwned, E: Error>(
        &self,
        name: &'static str,
    ) -> Result<T, E> {
        self.optional(name)?.ok_or_else(|| E::missing_field(name))
    }
}
