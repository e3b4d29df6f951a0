//! The description of the session.

use std::path::Path;

use crate::control::PermissionMode;
use crate::json::{Json, List};

system_message! {
    /// Describes the session. Sent at the start of every turn.
    InitMessage = "init" {
        /// The working directory.
        cwd: Option<String>,
        /// The tools.
        tools: List<String>,
        /// The MCP servers.
        mcp_servers: List<McpServerState>,
        /// The model.
        model: Option<String>,
        /// The permission mode.
        permission_mode: Option<PermissionMode> as "permissionMode",
        /// The commands.
        slash_commands: List<String>,
        /// The commands that require a terminal.
        terminal_slash_commands: List<String>,
        /// The source of the API key.
        api_key_source: Option<String> as "apiKeySource",
        /// The enabled beta features of the API.
        betas: List<String>,
        /// The CLI's version.
        claude_code_version: Option<String>,
        /// The output style.
        output_style: Option<String>,
        /// The agents.
        agents: List<String>,
        /// The skills.
        skills: List<String>,
        /// The plugins.
        plugins: List<PluginState>,
        /// The plugins that failed to load.
        plugin_errors: List<PluginError>,
        /// The capabilities of the CLI.
        capabilities: List<String>,
        /// The IDs of the user messages of the turn.
        user_message_uuids: List<crate::id::MessageId>,
        /// The memory directories.
        memory_paths: Option<Json>,
        /// The initial working directory of the process.
        original_cwd: Option<String>,
        /// Additional directories that tools may use.
        additional_directories: List<String>,
        /// Whether fast mode is on.
        fast_mode_state: Option<String>,
        /// The reason why it is disabled.
        fast_mode_disabled_reason: Option<String>,
        /// The effort level of the model.
        effort: Option<Json>,
        /// The display setting of the terminal.
        view_mode: Option<String>,
    }
}

impl InitMessage {
    /// Returns the name of the model; empty if the field is absent.
    pub fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// Returns the working directory; empty if the field is absent.
    pub fn directory(&self) -> &Path {
        Path::new(self.cwd.as_deref().unwrap_or_default())
    }

    /// Returns the version of the CLI; empty if the field is absent.
    pub fn version(&self) -> &str {
        self.claude_code_version.as_deref().unwrap_or_default()
    }
}

wire_struct! {
    /// A plugin that failed to load.
    #[derive(Default)]
    pub struct PluginError {
        /// The plugin.
        plugin: Option<String>,
        /// The kind of failure.
        kind: Option<String> as "type",
        /// The error.
        message: Option<String>,
        /// Where.
        path: Option<String>,
        /// The policy of the organization for the plugin.
        managed_lock: Option<PluginLock>,
    }
}

wire_struct! {
    /// The policy of the organization for a plugin.
    #[derive(Default)]
    pub struct PluginLock {
        /// Whether it is enabled.
        plugin_enabled: Option<bool>,
        /// Its name.
        name: Option<String>,
        /// The source.
        marketplace: Option<String>,
    }
}

wire_struct! {
    /// An MCP server of the session.
    #[derive(Default)]
    pub struct McpServerState {
        /// Its name.
        name: Option<String>,
        /// Whether it is connected.
        status: Option<McpServerStatus>,
        /// The scope of its configuration.
        source: Option<String>,
    }
}

open_enum! {
    /// The connection state of an MCP server.
    pub enum McpServerStatus {
        /// The server is connected.
        Connected = "connected",
        /// The connection failed.
        Failed = "failed",
        /// The server requires authentication.
        NeedsAuth = "needs-auth",
        /// The connection is pending.
        Pending = "pending",
        /// The server is disabled.
        Disabled = "disabled",
    }
}

wire_struct! {
    /// A plugin of the session.
    #[derive(Default)]
    pub struct PluginState {
        /// Its name.
        name: Option<String>,
        /// The path.
        path: Option<String>,
        /// The source.
        source: Option<String>,
        /// Its version.
        version: Option<String>,
    }
}
