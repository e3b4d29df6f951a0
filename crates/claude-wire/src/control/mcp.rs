//! MCP messages between the CLI and servers inside the host.

use crate::json::{Extra, Json};

wire_struct! {
    /// A JSON-RPC message for, or of, a server inside the host.
    pub struct McpMessage ["subtype" = "mcp_message"] {
        /// The server.
        server_name: String,
        /// The message.
        message: Json,
    }
}

impl McpMessage {
    /// A message of this server.
    pub fn new(server_name: impl Into<String>, message: impl Into<Json>) -> Self {
        Self { server_name: server_name.into(), message: message.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The host's answer to an MCP message.
    pub struct McpResponse {
        /// The server's answer.
        mcp_response: Json,
    }
}

impl McpResponse {
    /// The server's answer.
    pub fn new(response: impl Into<Json>) -> Self {
        Self { mcp_response: response.into(), extra: Extra::default() }
    }
}
