//! What the session is made of.

use std::path::Path;

use crate::control::PermissionMode;
use crate::json::{Json, List};

system_message! {
    /// Comes at the beginning of every turn.
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
        /// Commands that only work on a terminal.
        terminal_slash_commands: List<String>,
        /// Where the API key comes from.
        api_key_source: Option<String> as "apiKeySource",
        /// The API's betas that are on.
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
        /// Plugins that failed.
        plugin_errors: List<PluginError>,
        /// What this CLI can do beyond older ones.
        capabilities: List<String>,
        /// The user messages that the turn answers.
        user_message_uuids: List<crate::id::MessageId>,
        /// Where memories are kept.
        memory_paths: Option<Json>,
        /// The directory in which the process began.
        original_cwd: Option<String>,
        /// More directories that tools may use.
        additional_directories: List<String>,
        /// Whether fast mode is on.
        fast_mode_state: Option<String>,
        /// Why it is not.
        fast_mode_disabled_reason: Option<String>,
        /// How hard the model thinks.
        effort: Option<Json>,
        /// How the terminal shows it.
        view_mode: Option<String>,
    }
}

impl InitMessage {
    /// Returns the name of the model; empty if the CLI does not say.
    pub fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or_default()
    }

    /// Returns the working directory; empty if the CLI does not say.
    pub fn directory(&self) -> &Path {
        Path::new(self.cwd.as_deref().unwrap_or_default())
    }

    /// Returns the version of the CLI; empty if the CLI does not say.
    pub fn version(&self) -> &str {
        self.claude_code_version.as_deref().unwrap_or_default()
    }
}

wire_struct! {
    /// A plugin that failed.
    #[derive(Default)]
    pub struct PluginError {
        /// The plugin.
        plugin: Option<String>,
        /// The kind of failure.
        kind: Option<String> as "type",
        /// What went wrong.
        message: Option<String>,
        /// Where.
        path: Option<String>,
        /// What the organisation says of it.
        managed_lock: Option<PluginLock>,
    }
}

wire_struct! {
    /// What the organisation says of a plugin.
    #[derive(Default)]
    pub struct PluginLock {
        /// Whether it is on.
        plugin_enabled: Option<bool>,
        /// Its name.
        name: Option<String>,
        /// Where it comes from.
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
        /// Where it was configured.
        source: Option<String>,
    }
}

open_enum! {
    /// Whether an MCP server is connected.
    pub enum McpServerStatus {
        /// It is.
        Connected = "connected",
        /// It could not be.
        Failed = "failed",
        /// It wants a login.
        NeedsAuth = "needs-auth",
        /// Not yet.
        Pending = "pending",
        /// It is switched off.
        Disabled = "disabled",
    }
}

wire_struct! {
    /// A plugin of the session.
    #[derive(Default)]
    pub struct PluginState {
        /// Its name.
        name: Option<String>,
        /// Where it is.
        path: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// Its version.
        version: Option<String>,
    }
}
