//! The state of an MCP server.

use std::sync::Mutex;

use serde_json::Value;

use super::json::{Object, array, text};
use super::mcp_stdio::StdioConnection;
use super::state::lock;

/// A configured MCP server.
pub(super) struct McpServer {
    pub(super) name: String,
    /// The configuration from the host.
    config: Value,
    /// Whether it was added by `mcp_set_servers`.
    is_dynamic: bool,
    /// `None` for a server in the host.
    pub(super) command: Option<Value>,
    inner: Mutex<ConnectionState>,
    pub(super) connection: tokio::sync::Mutex<Option<StdioConnection>>,
}

#[derive(Debug, Default)]
struct ConnectionState {
    status: McpStatus,
    info: Value,
    tools: Option<Vec<Value>>,
    next_id: u64,
    initializing: bool,
    initialized: bool,
    has_resources: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum McpStatus {
    #[default]
    Pending,
    Connected,
    Failed,
    Disabled,
}

impl McpStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
        }
    }
}

impl McpServer {
    pub(super) fn new(name: &str, config: &Value) -> Self {
        let command = (config["type"] != "sdk").then(|| config.clone());
        Self {
            name: name.to_owned(),
            config: config.clone(),
            is_dynamic: false,
            command,
            inner: Mutex::default(),
            connection: tokio::sync::Mutex::default(),
        }
    }

    /// Creates a server that was added by `mcp_set_servers`.
    pub(super) fn new_dynamic(name: &str, config: &Value) -> Self {
        Self { is_dynamic: true, ..Self::new(name, config) }
    }

    /// Returns whether `mcp_set_servers` may replace or remove it. External servers of the command
    /// line stay.
    pub(super) fn is_replaceable(&self) -> bool {
        self.is_dynamic || self.is_sdk()
    }

    pub(super) fn is_configured_as(&self, config: &Value) -> bool {
        self.config == *config
    }

    pub(super) fn is_sdk(&self) -> bool {
        self.command.is_none()
    }

    pub(super) fn status(&self) -> McpStatus {
        lock(&self.inner).status
    }

    pub(super) fn set_status(&self, status: McpStatus) {
        lock(&self.inner).status = status;
    }

    pub(super) fn next_id(&self) -> u64 {
        let mut inner = lock(&self.inner);
        inner.next_id += 1;
        inner.next_id - 1
    }

    /// Returns the next id without using it.
    pub(super) fn peek_id(&self) -> u64 {
        lock(&self.inner).next_id
    }

    pub(super) fn mark_initializing(&self) {
        lock(&self.inner).initializing = true;
    }

    pub(super) fn is_initializing(&self) -> bool {
        lock(&self.inner).initializing
    }

    /// Returns whether `notifications/initialized` must be sent; `true` only once.
    pub(super) fn take_initialized_due(&self) -> bool {
        let mut inner = lock(&self.inner);
        let due = inner.status == McpStatus::Connected && !inner.initialized;
        inner.initialized |= due;
        due
    }

    pub(super) fn set_connected(&self, info: &Value) {
        let mut inner = lock(&self.inner);
        inner.status = McpStatus::Connected;
        inner.info = info["serverInfo"].clone();
        inner.has_resources = info["capabilities"]["resources"].is_object();
    }

    pub(super) fn set_tools(&self, result: &Value) {
        lock(&self.inner).tools = result["tools"].as_array().cloned().or(Some(Vec::new()));
    }

    pub(super) fn needs_tool_list(&self) -> bool {
        let inner = lock(&self.inner);
        inner.tools.is_none() && matches!(inner.status, McpStatus::Pending | McpStatus::Connected)
    }

    pub(super) fn tool_names(&self) -> Vec<String> {
        let inner = lock(&self.inner);
        if inner.status != McpStatus::Connected {
            return Vec::new();
        }
        let tools = inner.tools.iter().flatten();
        tools.map(|tool| format!("mcp__{}__{}", self.name, text(&tool["name"]))).collect()
    }

    pub(super) fn has_resources(&self) -> bool {
        let inner = lock(&self.inner);
        inner.has_resources && inner.status == McpStatus::Connected
    }

    pub(super) fn is_read_only(&self, tool: &str) -> bool {
        let inner = lock(&self.inner);
        let found = inner.tools.iter().flatten().find(|known| known["name"] == tool);
        found.is_some_and(|tool| tool["annotations"]["readOnlyHint"] == true)
    }

    /// Returns its entry in `mcp_status`.
    pub(super) fn status_entry(&self) -> String {
        let inner = lock(&self.inner);
        let mut entry = Object::new().str("name", &self.name).str("status", inner.status.name());
        if inner.info.is_object() {
            let info = Object::new()
                .str("name", text(&inner.info["name"]))
                .str("version", text(&inner.info["version"]));
            entry = entry.raw("serverInfo", &info.done());
        }
        let transport = if self.is_sdk() { "sdk" } else { "stdio" };
        let tools = inner.tools.iter().flatten().map(|tool| {
            let mut annotations = Object::new();
            if tool["annotations"]["readOnlyHint"] == true {
                annotations = annotations.plain("readOnly", true);
            }
            let entry = Object::new().str("name", text(&tool["name"]));
            entry.raw("annotations", &annotations.done()).done()
        });
        entry
            .str("transport", transport)
            .str("scope", "dynamic")
            .str("source", self.source())
            .raw("tools", &array(tools))
            .done()
    }

    pub(super) fn source(&self) -> &'static str {
        if self.is_sdk() { "sdk" } else { "dynamic" }
    }

    /// Returns its entry in `system/init`.
    pub(super) fn init_entry(&self) -> String {
        Object::new()
            .str("name", &self.name)
            .str("status", self.status().name())
            .str("source", self.source())
            .done()
    }
}
