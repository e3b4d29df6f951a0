//! Content blocks of prompts, answers and tool results.

use crate::id::ToolUseId;
use crate::json::{Extra, Json};
use crate::schema::{Decode, Encode, Error, Placeholder, Reader, View};
use crate::tool_input::ToolInput;

open_union! {
    /// One block of content.
    pub enum ContentBlock by "type" {
        /// Text.
        Text(TextBlock) = "text",
        /// The model's thinking.
        Thinking(ThinkingBlock) = "thinking",
        /// Encrypted thinking.
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
        /// A tool call.
        ToolUse(ToolUseBlock) = "tool_use",
        /// The result of a tool call.
        ToolResult(ToolResultBlock) = "tool_result",
        /// An image.
        Image(ImageBlock) = "image",
        /// A document.
        Document(DocumentBlock) = "document",
        /// A call of a server-side tool, which the API runs.
        ServerToolUse(ServerToolUseBlock) = "server_tool_use",
        /// The result of a server-side web search.
        WebSearchToolResult(ServerToolResultBlock) = "web_search_tool_result",
        /// The result of a server-side web fetch.
        WebFetchToolResult(ServerToolResultBlock) = "web_fetch_tool_result",
        /// The result of a server-side code execution.
        CodeExecutionToolResult(ServerToolResultBlock) = "code_execution_tool_result",
        /// The result of a server-side shell command.
        BashCodeExecutionToolResult(ServerToolResultBlock) = "bash_code_execution_tool_result",
        /// The result of a server-side text editor.
        TextEditorCodeExecutionToolResult(ServerToolResultBlock) = "text_editor_code_execution_tool_result",
        /// The result of a server-side tool search.
        ToolSearchToolResult(ServerToolResultBlock) = "tool_search_tool_result",
        /// A call of an MCP tool through the MCP connector of the API.
        McpToolUse(ServerToolUseBlock) = "mcp_tool_use",
        /// The result of such a call.
        McpToolResult(ServerToolResultBlock) = "mcp_tool_result",
    }
}

impl ContentBlock {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock::new(text))
    }

    /// Returns the text of a text block; `None` for other blocks.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

wire_struct! {
    /// Text.
    #[derive(Default)]
    pub struct TextBlock ["type" = "text"] {
        /// The text.
        text: String,
        /// The citations of the text.
        citations: Option<Json>,
    }
}

impl TextBlock {
    /// Creates a text block.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

wire_struct! {
    /// The model's thinking.
    #[derive(Default)]
    pub struct ThinkingBlock ["type" = "thinking"] {
        /// The thinking; empty if the API withholds it.
        thinking: String,
        /// The signature of the API.
        signature: Option<String>,
    }
}

wire_struct! {
    /// Encrypted thinking.
    #[derive(Default)]
    pub struct RedactedThinkingBlock ["type" = "redacted_thinking"] {
        /// The encrypted thinking.
        data: String,
    }
}

wire_struct! {
    /// A tool call.
    pub struct ToolUseBlock ["type" = "tool_use"] {
        /// The ID of the call, which its result contains.
        id: ToolUseId,
        /// The tool.
        name: String,
        /// The input.
        input: Json,
    }
}

impl ToolUseBlock {
    /// Reads the input of the tool as a type.
    pub fn tool_input(&self) -> ToolInput {
        ToolInput::new(&self.name, &self.input)
    }
}

wire_struct! {
    /// The result of a tool call.
    pub struct ToolResultBlock ["type" = "tool_result"] {
        /// The call.
        tool_use_id: ToolUseId,
        /// The content of the result.
        content: Option<Content>,
        /// Whether the tool failed.
        failed: Option<bool> as "is_error",
    }
}

impl ToolResultBlock {
    /// Returns whether the tool failed; false if the field is absent.
    pub fn is_error(&self) -> bool {
        self.failed.unwrap_or(false)
    }

    /// Returns the texts of the result, joined; empty if there are none.
    pub fn text(&self) -> String {
        self.content.as_ref().map(Content::to_text).unwrap_or_default()
    }
}

wire_struct! {
    /// An image.
    pub struct ImageBlock ["type" = "image"] {
        /// The data or its location.
        source: Source,
    }
}

impl ImageBlock {
    /// Creates an image from base64 data and its media type, such as `image/png`.
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self { source: Source::base64(media_type, data), extra: Extra::default() }
    }
}

wire_struct! {
    /// A document.
    pub struct DocumentBlock ["type" = "document"] {
        /// The data or its location.
        source: Source,
        /// Its title.
        title: Option<String>,
        /// Context about the document for the model.
        context: Option<String>,
        /// Whether the model may cite it.
        citations: Option<Json>,
    }
}

impl DocumentBlock {
    /// Creates a document from base64 data and its media type, such as `application/pdf`.
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self {
            source: Source::base64(media_type, data),
            title: None,
            context: None,
            citations: None,
            extra: Extra::default(),
        }
    }
}

open_union! {
    /// The source of the data of an image or a document.
    pub enum Source by "type" {
        /// Base64 data in the message.
        Base64(Base64Source) = "base64",
        /// A URL.
        Url(UrlSource) = "url",
        /// Plain text in the message.
        Text(TextSource) = "text",
        /// An uploaded file.
        File(FileSource) = "file",
    }
}

impl Source {
    fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self::Base64(Base64Source {
            media_type: media_type.into(),
            data: data.into(),
            extra: Extra::default(),
        })
    }
}

wire_struct! {
    /// Base64 data in the message.
    pub struct Base64Source ["type" = "base64"] {
        /// The media type.
        media_type: String,
        /// The data as base64.
        data: String,
    }
}

wire_struct! {
    /// Data at a URL.
    pub struct UrlSource ["type" = "url"] {
        /// The URL.
        url: String,
    }
}

wire_struct! {
    /// Plain text.
    pub struct TextSource ["type" = "text"] {
        /// The media type.
        media_type: Option<String>,
        /// The text.
        data: String,
    }
}

wire_struct! {
    /// An uploaded file.
    pub struct FileSource ["type" = "file"] {
        /// The file ID.
        file_id: String,
    }
}

wire_struct! {
    /// A call of a server-side tool.
    pub struct ServerToolUseBlock {
        /// The ID of the call.
        id: ToolUseId,
        /// The tool.
        name: String,
        /// The arguments.
        input: Json,
    }
}

wire_struct! {
    /// The result of a server-side tool; its schema depends on the tool.
    pub struct ServerToolResultBlock {
        /// The call.
        tool_use_id: ToolUseId,
        /// The result.
        content: Option<Json>,
    }
}

/// Content that is either a text or a list of blocks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// A text.
    Text(String),
    /// Blocks.
    Blocks(Vec<ContentBlock>),
}

impl Content {
    /// Returns the texts of the content, joined.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => text_of(blocks),
        }
    }

    /// Returns the blocks; empty if the content is a text.
    pub fn blocks(&self) -> &[ContentBlock] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<ContentBlock>> for Content {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self::Blocks(blocks)
    }
}

impl Decode for Content {
    fn decode(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        *self = match reader.peek() {
            Some(b'"') => Self::Text(reader.string()?.into_owned()),
            Some(b'[') => {
                let mut blocks: Vec<ContentBlock> = Vec::new();
                reader.nested_content(&mut blocks)?;
                Self::Blocks(blocks)
            }
            _ => return Err(reader.mismatch("a string or a list of content blocks")),
        };
        Ok(())
    }
}

impl Placeholder for Content {
    fn placeholder() -> Self {
        Self::Text(String::new())
    }
}

impl Encode for Content {
    fn view(&self) -> View<'_> {
        match self {
            Self::Text(text) => View::Text(text),
            Self::Blocks(blocks) => View::List(blocks),
        }
    }
}

crate::schema::serde_traits!(Content);
crate::schema::required_field!(Content);

/// Returns the texts of blocks, joined.
pub(crate) fn text_of(blocks: &[ContentBlock]) -> String {
    blocks.iter().filter_map(ContentBlock::as_text).collect()
}

pub(crate) fn tool_calls(blocks: &[ContentBlock]) -> impl Iterator<Item = &ToolUseBlock> {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call),
        _ => None,
    })
}

pub(crate) fn tool_results(blocks: &[ContentBlock]) -> impl Iterator<Item = &ToolResultBlock> {
    blocks.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}
