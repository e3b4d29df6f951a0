//! Results of tools.

use std::error::Error as StdError;
use std::fmt;

use claude_wire::{Extra, Json};
use serde::Serialize;

/// A return value of a tool: every type that implements `Serialize`, and [`ToolResult`].
///
/// A string becomes a text block, `()` and `None` become an empty result. Other values become their JSON
/// as a text block, and objects also become structured content.
pub trait ToolOutput: Send + 'static {
    #[doc(hidden)]
    fn into_result(self) -> Result<ToolResult, ToolError>;
}

impl<T: Serialize + Send + 'static> ToolOutput for T {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        let json = Json::from_serialize(&self).map_err(|error| {
            ToolError::new(format!("The result cannot be encoded as JSON: {error}"))
        })?;
        Ok(match json.text().as_bytes().first() {
            Some(b'"') => ToolResult::new().text(json.deserialize::<String>().unwrap_or_default()),
            Some(b'n') => ToolResult::new(),
            Some(b'{') => ToolResult::new().text(json.text()).structured_json(json),
            _ => ToolResult::new().text(json.text()),
        })
    }
}

impl ToolOutput for ToolResult {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

/// The result of a tool call: a list of content blocks and optional structured content.
///
/// ```
/// use claude_agent_kit::ToolResult;
///
/// let result = ToolResult::new().text("Here it is:").image("image/png", "iVBORw0KGgo=");
/// ```
#[derive(Clone, Default)]
#[must_use = "a result does nothing until the tool returns it"]
pub struct ToolResult {
    content: Vec<Json>,
    structured: Option<Json>,
    is_error: bool,
}

impl ToolResult {
    /// Creates an empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a text block.
    pub fn text(self, text: impl Into<String>) -> Self {
        let mut block = typed("text");
        block.set("text", text.into().as_str());
        self.block(&block)
    }

    /// Appends an image; `data` is encoded in base64.
    pub fn image(self, media_type: impl Into<String>, data: impl Into<String>) -> Self {
        let mut block = typed("image");
        block.set("data", data.into().as_str());
        block.set("mimeType", media_type.into().as_str());
        self.block(&block)
    }

    /// Appends an MCP content block unchanged: audio, a resource, a link to a resource.
    pub fn block(mut self, block: impl Into<Json>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets the structured content, which must be an object. The blocks are for models that do not see
    /// it.
    ///
    /// # Errors
    /// When the value cannot be encoded as JSON, or is not an object.
    pub fn structured(self, value: &(impl Serialize + ?Sized)) -> Result<Self, ToolError> {
        let json = Json::from_serialize(value)?;
        if !json.text().starts_with('{') {
            return Err(ToolError::new("The structured content is not an object."));
        }
        Ok(self.structured_json(json))
    }

    fn structured_json(mut self, json: Json) -> Self {
        self.structured = Some(json);
        self
    }

    pub(super) fn encode(&self) -> Json {
        let mut result = Extra::default();
        result.set("content", Json::from_serialize(&self.content).unwrap_or_default());
        if let Some(structured) = &self.structured {
            result.set("structuredContent", structured.clone());
        }
        result.set("isError", Json::from_serialize(&self.is_error).unwrap_or_default());
        Json::from(&result)
    }
}

/// The failure of a tool. The model receives it, and may try something else.
///
/// `?` converts every error with its sources. `ToolError` does not implement `Error` itself, which would
/// prevent this conversion.
#[derive(Clone)]
pub struct ToolError(ToolResult);

impl ToolError {
    /// Creates a failure with a text for the model.
    pub fn new(text: impl Into<String>) -> Self {
        ToolResult::new().text(text).into()
    }
}

impl From<ToolResult> for ToolError {
    /// Creates a failure with these blocks.
    fn from(mut result: ToolResult) -> Self {
        result.is_error = true;
        Self(result)
    }
}

impl From<ToolError> for ToolResult {
    fn from(error: ToolError) -> Self {
        error.0
    }
}

impl<E: StdError> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let more = error.to_string();
            // Many errors repeat their source.
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        Self::new(text)
    }
}

impl fmt::Debug for ToolResult {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResult")
            .field("blocks", &self.content.len())
            .field("structured", &self.structured.is_some())
            .field("is_error", &self.is_error)
            .finish()
    }
}

impl fmt::Debug for ToolError {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.0).finish()
    }
}

fn typed(kind: &str) -> Extra {
    let mut block = Extra::default();
    block.set("type", kind);
    block
}
