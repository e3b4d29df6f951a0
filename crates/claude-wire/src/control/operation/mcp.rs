//! MCP servers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::control::PermissionMode;
use crate::json::{Extra, Json, List, Nullable, Number};
use crate::message::McpServerStatus;

wire_struct! {
    /// Which MCP servers are there?
    #[derive(Default)]
    pub struct McpStatus ["subtype" = "mcp_status"] {
        /// Whether the CLI may answer while it connects, and not only after.
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
        /// What it says of itself.
        server_info: Option<Json> as "serverInfo",
        /// What went wrong.
        error: Option<String>,
        /// Its settings.
        config: Option<Json>,
        /// How it is reached.
        transport: Option<String>,
        /// For whom it was configured.
        scope: Option<String>,
        /// Where it was configured.
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
        /// What else the server says of it.
        meta: Option<Json> as "_meta",
    }
}

wire_struct! {
    /// Connect an MCP server again.
    pub struct McpReconnect ["subtype" = "mcp_reconnect"] {
        /// The server.
        server_name: String as "serverName",
    }
}

impl McpReconnect {
    /// For this server.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server_name: server.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// Switch an MCP server on or off.
    pub struct McpToggle ["subtype" = "mcp_toggle"] {
        /// The server.
        server_name: String as "serverName",
        /// On or off.
        enabled: bool,
    }
}

impl McpToggle {
    /// For this server.
    pub fn new(server: impl Into<String>, enabled: bool) -> Self {
        Self { server_name: server.into(), enabled, extra: Extra::default() }
    }
}

silent_wire_struct! {
    /// Replace the MCP servers.
    pub struct McpSetServers ["subtype" = "mcp_set_servers"] {
        /// The servers by name.
        servers: Json,
    }
}

impl McpSetServers {
    /// These servers by name.
    pub fn new(servers: impl Into<Json>) -> Self {
        Self { servers: servers.into(), extra: Extra::default() }
    }
}

impl fmt::Debug for McpSetServers {
    /// Names only: headers and variables hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers =
            self.servers.deserialize::<BTreeMap<String, IgnoredAny>>().unwrap_or_default();
        let extra: Vec<&str> = self.extra.iter().map(|(name, _)| name).collect();
        f.debug_struct("McpSetServers")
            .field("servers", &servers.into_keys().collect::<Vec<_>>())
            .field("extra", &extra)
            .finish()
    }
}

wire_struct! {
    /// What became of the new MCP servers.
    #[derive(Default)]
    pub struct McpSetServersResponse {
        /// Those that were added.
        added: List<String>,
        /// Those that were removed.
        removed: List<String>,
        /// What went wrong, by server.
        errors: Option<Json>,
    }
}

wire_struct! {
    /// Hints about a tool.
    #[derive(Default)]
    pub struct McpToolAnnotations {
        /// Whether it only reads.
        read_only: Option<bool> as "readOnly",
        /// Whether it may destroy something.
        destructive: Option<bool>,
        /// Whether it reaches beyond this machine.
        open_world: Option<bool> as "openWorld",
    }
}

request! {
    /// Change who decides about the tools of one MCP server.
    SetMcpPermissionModeOverride = "set_mcp_permission_mode_override" {
        /// The server.
        server_name: String as "serverName",
        /// `default` or `auto`; `null` is what the session does.
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
    /// What became of the change.
    #[derive(Default)]
    pub struct McpPermissionModeOverrideResponse {
        /// What is odd about it.
        warning: Option<String>,
    }
}

request! {
    /// Read a resource of an MCP server.
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
        /// Which resource.
        uri: Option<String>,
        /// What it is.
        mime_type: Option<String> as "mimeType",
        /// It as text.
        text: Option<String>,
        /// It as base64.
        blob: Option<String>,
        /// What else the server says of it.
        meta: Option<Json> as "_meta",
    }
}

request! {
    /// Call a tool of an MCP server, without the model.
    McpCall = "mcp_call" {
        /// The tool, as `mcp__server__tool`.
        tool: String,
        /// Its arguments.
        arguments: Option<Json>,
        /// When the call is no longer wanted.
        expires_at: Option<Json>,
        /// Milliseconds that it may take.
        timeout_ms: Option<Number>,
        /// Whether the model never sees the result.
        result_not_for_model: Option<bool>,
        /// Whether the permissions of the session hold for it.
        check_permissions: Option<bool>,
        /// Files that it reads.
        input_files: Option<Json>,
        /// Files that it writes.
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
        let all = self.arguments.as_ref().and_then(|all| all.deserialize::<Extra>().ok());
        let mut all = all.unwrap_or_default();
        all.set(name, value.into());
        self.arguments = Some(Json::from(&all));
        self
    }

    /// Sets how long the call may take. Default: the timeout of the CLI.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.timeout_ms = Some(Number::from(millis));
        self
    }
}

wire_struct! {
    /// What a tool of an MCP server gave.
    #[derive(Default)]
    pub struct McpCallResponse {
        /// Text, or blocks.
        content: Option<Json>,
        /// The same for programs.
        structured_content: Option<Json> as "structuredContent",
        /// What else the server says of it.
        meta: Option<Json> as "_meta",
        /// What became of the files.
        staging: Option<Json>,
    }
}
