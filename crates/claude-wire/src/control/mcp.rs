//! MCP messages between the CLI and in-process servers.

use crate::json::{Extra, Json};

wire_struct! {
    /// A JSON-RPC message to or from an in-process MCP server.
    pub struct McpMessage ["subtype" = "mcp_message"] {
        /// The server.
        server_name: String,
        /// The message.
        message: Json,
    }
}

impl McpMessage {
    /// Creates a message of this server.
    pub fn new(server_name: impl Into<String>, message: impl Into<Json>) -> Self {
        Self { server_name: server_name.into(), message: message.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The response to an MCP message.
    pub struct McpResponse {
        /// The JSON-RPC response of the server.
        mcp_response: Json,
    }
}

impl McpResponse {
    /// The JSON-RPC response of the server.
    pub fn new(response: impl Into<Json>) -> Self {
        Self { mcp_response: response.into(), extra: Extra::default() }
    }
}
