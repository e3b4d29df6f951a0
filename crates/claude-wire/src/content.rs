//! Content blocks: what prompts, answers and tool results are made of.

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
        /// Thinking that the API gives only in encrypted form.
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
        /// A tool call.
        ToolUse(ToolUseBlock) = "tool_use",
        /// The result of a tool call.
        ToolResult(ToolResultBlock) = "tool_result",
        /// An image.
        Image(ImageBlock) = "image",
        /// A document.
        Document(DocumentBlock) = "document",
        /// A call of a tool that the API itself runs.
        ServerToolUse(ServerToolUseBlock) = "server_tool_use",
        /// The API's own web search came back.
        WebSearchToolResult(ServerToolResultBlock) = "web_search_tool_result",
        /// The API's own fetch of a page came back.
        WebFetchToolResult(ServerToolResultBlock) = "web_fetch_tool_result",
        /// The API's own code execution came back.
        CodeExecutionToolResult(ServerToolResultBlock) = "code_execution_tool_result",
        /// The API's own shell came back.
        BashCodeExecutionToolResult(ServerToolResultBlock) = "bash_code_execution_tool_result",
        /// The API's own editor came back.
        TextEditorCodeExecutionToolResult(ServerToolResultBlock) = "text_editor_code_execution_tool_result",
        /// The API's own tool search came back.
        ToolSearchToolResult(ServerToolResultBlock) = "tool_search_tool_result",
        /// A call of a tool of an MCP server that the API itself talks to.
        McpToolUse(ServerToolUseBlock) = "mcp_tool_use",
        /// The result of such a call.
        McpToolResult(ServerToolResultBlock) = "mcp_tool_result",
    }
}

impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock::new(text))
    }

    /// The text of a text block.
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
        /// Where the text has its facts from.
        citations: Option<Json>,
    }
}

impl TextBlock {
    /// A block of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

wire_struct! {
    /// The model's thinking.
    #[derive(Default)]
    pub struct ThinkingBlock ["type" = "thinking"] {
        /// The thinking; empty where the API withholds it.
        thinking: String,
        /// The API's proof that the thinking is its own.
        signature: Option<String>,
    }
}

wire_struct! {
    /// Thinking in encrypted form.
    #[derive(Default)]
    pub struct RedactedThinkingBlock ["type" = "redacted_thinking"] {
        /// The encrypted thinking.
        data: String,
    }
}

wire_struct! {
    /// A tool call.
    pub struct ToolUseBlock ["type" = "tool_use"] {
        /// The call's id; its result names it.
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
        /// What the tool gave back.
        content: Option<Content>,
        /// Whether the tool failed.
        failed: Option<bool> as "is_error",
    }
}

impl ToolResultBlock {
    /// Returns whether the tool failed; false if the CLI does not say.
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
        /// The bytes, or where they are.
        source: Source,
    }
}

impl ImageBlock {
    /// An image given as base64, with its media type (`image/png`).
    pub fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self { source: Source::base64(media_type, data), extra: Extra::default() }
    }
}

wire_struct! {
    /// A document.
    pub struct DocumentBlock ["type" = "document"] {
        /// The bytes, or where they are.
        source: Source,
        /// Its title.
        title: Option<String>,
        /// What the model should know about it.
        context: Option<String>,
        /// Whether the model may cite it.
        citations: Option<Json>,
    }
}

impl DocumentBlock {
    /// A document given as base64, with its media type (`application/pdf`).
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
    /// Where the bytes of an image or a document come from.
    pub enum Source by "type" {
        /// In the message.
        Base64(Base64Source) = "base64",
        /// At an address.
        Url(UrlSource) = "url",
        /// Plain text in the message.
        Text(TextSource) = "text",
        /// Uploaded before.
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
    /// Bytes in the message.
    pub struct Base64Source ["type" = "base64"] {
        /// The media type.
        media_type: String,
        /// The bytes as base64.
        data: String,
    }
}

wire_struct! {
    /// Bytes at an address.
    pub struct UrlSource ["type" = "url"] {
        /// The address.
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
    /// A file uploaded before.
    pub struct FileSource ["type" = "file"] {
        /// Its id.
        file_id: String,
    }
}

wire_struct! {
    /// A call of a tool that the API runs.
    pub struct ServerToolUseBlock {
        /// The call's id.
        id: ToolUseId,
        /// The tool.
        name: String,
        /// The arguments.
        input: Json,
    }
}

wire_struct! {
    /// What came back from a tool that the API runs; its shape is the tool's own.
    pub struct ServerToolResultBlock {
        /// The call.
        tool_use_id: ToolUseId,
        /// The result.
        content: Option<Json>,
    }
}

/// Content that is either one text or a list of blocks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// One text.
    Text(String),
    /// Blocks.
    Blocks(Vec<ContentBlock>),
}

impl Content {
    /// The texts of the content, joined.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => text_of(blocks),
        }
    }

    /// The blocks; none if the content is one text.
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
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        match reader.peek() {
            Some(b'"') => String::decode(reader).map(Self::Text),
            Some(b'[') => reader.nested_content(Vec::decode).map(Self::Blocks),
            _ => Err(reader.mismatch("a string or a list of content blocks")),
        }
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

crate::schema::wire_traits!(Content);

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
