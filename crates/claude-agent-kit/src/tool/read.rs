//! From JSON to types, with the place of what does not fit; and from types to schemas.

use std::fmt;

use claude_wire::Json;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

/// Where a value does not fit its type, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// None if it is the whole.
    pub(crate) path: Option<String>,
    /// May quote the value.
    pub(crate) reason: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "`{path}`: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

pub(crate) fn read<T: DeserializeOwned>(json: &Json) -> Result<T, Unfit> {
    let value: serde_json::Value =
        json.deserialize().map_err(|error| Unfit { path: None, reason: error.to_string() })?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        Unfit { path: (path != ".").then_some(path), reason: error.inner().to_string() }
    })
}

/// What a model is told of a type.
pub(crate) fn schema<T: JsonSchema>() -> Json {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    // A schema is JSON already.
    Json::from_serialize(&schema).unwrap_or_default()
}

/// Whether all values of a schema are objects, as those of tools must be.
pub(crate) fn is_object(schema: &Json) -> bool {
    let schema: serde_json::Value = schema.deserialize().unwrap_or_default();
    schema["type"] == "object"
}
