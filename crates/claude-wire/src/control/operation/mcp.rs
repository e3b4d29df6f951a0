//! MCP servers.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::control::PermissionMode;
use crate::json::{Extra, Json, List, Nullable, Number};
use crate::message::McpServerStatus;

wire_struct! {
    /// Returns the status of the MCP servers.
    #[derive(Default)]
    pub struct McpStatus ["subtype" = "mcp_status"] {
        /// Whether the CLI may respond before all servers are connected.
        live_reply: Option<bool> as "liveReply",
    }
}

wire_struct! {
    /// The MCP servers.
    #[derive(Default)]
    pub struct McpStatusResponse {
        /// One entry for each.
        mcp_servers: List<McpServerInfo> as "mcpServers",
    }
}

wire_struct! {
    /// An MCP server.
    #[derive(Default)]
    pub struct McpServerInfo {
        /// Its name.
        name: Option<String>,
        /// Whether it is connected.
        status: Option<McpServerStatus>,
        /// The server information.
        server_info: Option<Json> as "serverInfo",
        /// The error.
        error: Option<String>,
        /// Its settings.
        config: Option<Json>,
        /// The transport.
        transport: Option<String>,
        /// The scope.
        scope: Option<String>,
        /// The scope of its configuration.
        source: Option<String>,
        /// Its tools.
        tools: List<McpToolInfo>,
    }
}

wire_struct! {
    /// A tool of an MCP server.
    #[derive(Default)]
    pub struct McpToolInfo {
        /// Its name.
        name: Option<String>,
        /// What it does.
        description: Option<String>,
        /// Hints about it.
        annotations: Option<McpToolAnnotations>,
        /// The metadata of the server.
        meta: Option<Json> as "_meta",
    }
}

wire_struct! {
    /// Reconnects an MCP server.
    pub struct McpReconnect ["subtype" = "mcp_reconnect"] {
        /// The server.
        server_name: String as "serverName",
    }
}

impl McpReconnect {
    /// Creates a request for this server.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server_name: server.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Enables or disables an MCP server.
    pub struct McpToggle ["subtype" = "mcp_toggle"] {
        /// The server.
        server_name: String as "serverName",
        /// Whether it is enabled.
        enabled: bool,
    }
}

impl McpToggle {
    /// Creates a request for this server.
    pub fn new(server: impl Into<String>, enabled: bool) -> Self {
        Self { server_name: server.into(), enabled, extra: Extra::default() }
    }
}

silent_wire_struct! {
    /// Replaces the MCP servers.
    pub struct McpSetServers ["subtype" = "mcp_set_servers"] {
        /// The servers by name.
        servers: Json,
    }
}

impl McpSetServers {
    /// Creates a request with these servers.
    pub fn new(servers: impl Into<Json>) -> Self {
        Self { servers: servers.into(), extra: Extra::default() }
    }
}

impl fmt::Debug for McpSetServers {
    /// Formats the names only, because headers and variables contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Extra = self.servers.decode().unwrap_or_default();
        let extra: Vec<&str> = self.extra.iter().map(|(name, _)| name).collect();
        f.debug_struct("McpSetServers")
            .field("servers", &servers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("extra", &extra)
            .finish()
    }
}

wire_struct! {
    /// The outcome for the new MCP servers.
    #[derive(Default)]
    pub struct McpSetServersResponse {
        /// The added servers.
        added: List<String>,
        /// The removed servers.
        removed: List<String>,
        /// The errors, by server.
        errors: Option<Json>,
    }
}

wire_struct! {
    /// Hints about a tool.
    #[derive(Default)]
    pub struct McpToolAnnotations {
        /// Whether it is read-only.
        read_only: Option<bool> as "readOnly",
        /// Whether it may be destructive.
        destructive: Option<bool>,
        /// Whether it interacts with external systems.
        open_world: Option<bool> as "openWorld",
    }
}

request! {
    /// Overrides the permission mode for one MCP server.
    SetMcpPermissionModeOverride = "set_mcp_permission_mode_override" {
        /// The server.
        server_name: String as "serverName",
        /// `default` or `auto`; `null` removes the override.
        mode: Nullable<PermissionMode>,
    }
}

impl SetMcpPermissionModeOverride {
    /// Creates a request for the tools of this server; `None` returns to the mode of the session.
    pub fn new(server: impl Into<String>, mode: impl Into<Option<PermissionMode>>) -> Self {
        let mode: Option<PermissionMode> = mode.into();
        Self { server_name: server.into(), mode: mode.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// The outcome of the change.
    #[derive(Default)]
    pub struct McpPermissionModeOverrideResponse {
        /// The warning.
        warning: Option<String>,
    }
}

request! {
    /// Reads a resource of an MCP server.
    McpReadResource = "mcp_read_resource" {
        /// The server.
        server_name: String as "serverName",
        /// The resource.
        uri: String,
    }
}

impl McpReadResource {
    /// Creates a request for this resource of a server.
    pub fn new(server: impl Into<String>, uri: impl Into<String>) -> Self {
        Self { server_name: server.into(), uri: uri.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// A resource of an MCP server.
    #[derive(Default)]
    pub struct McpReadResourceResponse {
        /// Its parts.
        contents: List<McpResourceContents>,
    }
}

wire_struct! {
    /// A part of a resource.
    #[derive(Default)]
    pub struct McpResourceContents {
        /// The URI.
        uri: Option<String>,
        /// The MIME type.
        mime_type: Option<String> as "mimeType",
        /// The content as text.
        text: Option<String>,
        /// The content as base64.
        blob: Option<String>,
        /// The metadata of the server.
        meta: Option<Json> as "_meta",
    }
}

request! {
    /// Calls a tool of an MCP server, without the model.
    McpCall = "mcp_call" {
        /// The tool, as `mcp__server__tool`.
        tool: String,
        /// Its arguments.
        arguments: Option<Json>,
        /// The time when the call expires.
        expires_at: Option<Json>,
        /// The timeout in milliseconds.
        timeout_ms: Option<Number>,
        /// Whether the result is hidden from the model.
        result_not_for_model: Option<bool>,
        /// Whether the permission rules of the session apply.
        check_permissions: Option<bool>,
        /// The input files.
        input_files: Option<Json>,
        /// The output files.
        output_files: Option<Json>,
    }
}

impl McpCall {
    /// Calls `tool` of the MCP server `server`, without arguments.
    ///
    /// ```
    /// use claude_wire::control::McpCall;
    ///
    /// let call = McpCall::new("calc", "add").argument("a", 2).argument("b", 3);
    /// ```
    pub fn new(server: &str, tool: &str) -> Self {
        Self { tool: format!("mcp__{server}__{tool}"), ..Self::default() }
    }

    /// Sets one argument, replacing the one of that name.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let all = self.arguments.as_ref().and_then(|all| all.decode::<Extra>().ok());
        let mut all = all.unwrap_or_default();
        all.set(name, value.into());
        self.arguments = Some(Json::from(&all));
        self
    }

    /// Sets the timeout of the call. Default: the timeout of the CLI.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.timeout_ms = Some(Number::from(millis));
        self
    }
}

wire_struct! {
    /// The result of a tool of an MCP server.
    #[derive(Default)]
    pub struct McpCallResponse {
        /// A text or content blocks.
        content: Option<Json>,
        /// The structured content.
        structured_content: Option<Json> as "structuredContent",
        /// The metadata of the server.
        meta: Option<Json> as "_meta",
        /// The outcome of the rewind.
        staging: Option<Json>,
    }
}
