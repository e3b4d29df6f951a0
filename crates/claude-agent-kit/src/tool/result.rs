//! What a tool gives back.

use std::error::Error as StdError;
use std::fmt;

use claude_wire::{Extra, Json};
use serde::Serialize;

/// What a tool may return.
///
/// That is everything that `serde` can write, and [`ToolResult`]. A text is the text. Nothing (`()`,
/// `None`) is an empty result. Everything else is its JSON as text, and an object is structured
/// content too.
pub trait ToolOutput: Send + 'static {
    #[doc(hidden)]
    fn into_result(self) -> Result<ToolResult, ToolError>;
}

impl<T: Serialize + Send + 'static> ToolOutput for T {
    fn into_result(self) -> Result<ToolResult, ToolError> {
        let json = Json::from_serialize(&self).map_err(|error| {
            ToolError::new(format!("The result cannot be written as JSON: {error}"))
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

/// The result of a call, block by block.
///
/// ```
/// use claude_agent_kit::ToolResult;
///
/// let result = ToolResult::new().text("Here it is:").image("image/png", "iVBORw0KGgo=");
/// ```
#[derive(Clone, Default)]
#[must_use = "it is what the function returns"]
pub struct ToolResult {
    content: Vec<Json>,
    structured: Option<Json>,
    is_error: bool,
}

impl ToolResult {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    pub fn text(self, text: impl Into<String>) -> Self {
        let mut block = typed("text");
        block.set("text", text.into().as_str());
        self.block(&block)
    }

    /// Adds an image, its data in base64.
    pub fn image(self, media_type: impl Into<String>, data: impl Into<String>) -> Self {
        let mut block = typed("image");
        block.set("data", data.into().as_str());
        block.set("mimeType", media_type.into().as_str());
        self.block(&block)
    }

    /// Adds a content block of MCP as it is: audio, a resource, a link to one.
    pub fn block(mut self, block: impl Into<Json>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets the structured content, an object. The blocks are for models that do not see it.
    ///
    /// # Errors
    /// When it cannot be written as JSON, or is no object.
    pub fn structured(self, value: &(impl Serialize + ?Sized)) -> Result<Self, ToolError> {
        let json = Json::from_serialize(value)?;
        if !json.text().starts_with('{') {
            return Err(ToolError::new("The structured content is no object."));
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

/// Why a tool failed. The model is told, and may try something else.
///
/// `?` makes one of every error, with its causes. It is no error itself, or it could not.
#[derive(Clone)]
pub struct ToolError(ToolResult);

impl ToolError {
    /// A failure, in words for the model.
    pub fn new(text: impl Into<String>) -> Self {
        ToolResult::new().text(text).into()
    }
}

impl From<ToolResult> for ToolError {
    /// A failure that these blocks tell of.
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
            // Many errors repeat their cause.
            if !text.contains(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        Self::new(text)
    }
}

impl fmt::Debug for ToolResult {
    /// Without the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResult")
            .field("blocks", &self.content.len())
            .field("structured", &self.structured.is_some())
            .field("is_error", &self.is_error)
            .finish()
    }
}

impl fmt::Debug for ToolError {
    /// Without the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.0).finish()
    }
}

fn typed(kind: &str) -> Extra {
    let mut block = Extra::default();
    block.set("type", kind);
    block
}
