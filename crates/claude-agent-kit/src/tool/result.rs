//! Results and errors of tool calls.

use std::error::Error as StdError;
use std::fmt;

use claude_wire::{Extra, Json};
use serde::Serialize;

/// The return type of a tool.
///
/// Implemented for [`ToolResult`] and for all types that implement `serde::Serialize`. A string becomes
/// text, and `()` and `None` become an empty result. Everything else becomes JSON text, and objects
/// also become structured content.
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

    /// Appends text.
    pub fn text(self, text: impl Into<String>) -> Self {
        let mut block = typed("text");
        block.set("text", text.into().as_str());
        self.block(&block)
    }

    /// Appends an image with base64-encoded data.
    pub fn image(self, media_type: impl Into<String>, data: impl Into<String>) -> Self {
        let mut block = typed("image");
        block.set("data", data.into().as_str());
        block.set("mimeType", media_type.into().as_str());
        self.block(&block)
    }

    /// Appends any MCP content block, such as audio, a resource or a resource link.
    pub fn block(mut self, block: impl Into<Json>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets the structured content, which must be an object. Replaces an earlier value.
    ///
    /// # Errors
    /// Fails if the value cannot be serialized as JSON or is not an object.
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

/// The error of a tool call. Its text is sent to the model.
///
/// `?` converts any error, including its sources. Because of this conversion, `ToolError` itself does
/// not implement [`std::error::Error`].
#[derive(Clone)]
pub struct ToolError(ToolResult);

impl ToolError {
    /// Creates an error with a text for the model.
    pub fn new(text: impl Into<String>) -> Self {
        ToolResult::new().text(text).into()
    }
}

impl From<ToolResult> for ToolError {
    /// Creates an error with these content blocks.
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
