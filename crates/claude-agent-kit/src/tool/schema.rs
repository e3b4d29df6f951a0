//! JSON schemas of types, and deserialization with the path of an error.

use std::fmt;

use claude_wire::Json;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

/// A deserialization error with the path of the invalid value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathError {
    /// `None` for the root.
    pub(crate) path: Option<String>,
    /// The reason, which may quote the value.
    pub(crate) reason: String,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "`{path}`: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

pub(crate) fn deserialize<T: DeserializeOwned>(json: &Json) -> Result<T, PathError> {
    let value: serde_json::Value =
        json.deserialize().map_err(|error| PathError { path: None, reason: error.to_string() })?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        PathError { path: (path != ".").then_some(path), reason: error.inner().to_string() }
    })
}

/// Returns the JSON schema of a type, for the model.
pub(crate) fn schema<T: JsonSchema>() -> Json {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    // A schema can always be serialized.
    Json::from_serialize(&schema).unwrap_or_default()
}

/// Returns whether a schema describes objects, as MCP requires of arguments and structured content.
pub(crate) fn is_object(schema: &Json) -> bool {
    let schema: serde_json::Value = schema.deserialize().unwrap_or_default();
    schema["type"] == "object"
}
