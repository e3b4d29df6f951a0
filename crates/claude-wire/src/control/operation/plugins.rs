//! Reloading plugins, skills and output styles.

use crate::control::{AgentInfo, McpServerInfo, SlashCommand};
use crate::json::{Json, List, Number};
use crate::message::PluginState;

request! {
    /// Reloads the plugins.
    ReloadPlugins = "reload_plugins" {
        /// Whether to skip the reload if it would invalidate the prompt cache.
        hold_on_cache_impact: Option<bool>,
        /// The plugins to add.
        add_plugins: Option<Json>,
        /// Whether to reject the request while a turn is running.
        refuse_if_busy: Option<bool>,
    }
}

wire_struct! {
    /// The state after the plugins were reloaded.
    #[derive(Default)]
    pub struct ReloadPluginsResponse {
        /// The commands.
        commands: List<SlashCommand>,
        /// The agents.
        agents: List<AgentInfo>,
        /// The plugins.
        plugins: List<PluginState>,
        /// The MCP servers.
        mcp_servers: List<McpServerInfo> as "mcpServers",
        /// The number of plugins that failed to load.
        error_count: Option<Number>,
        /// Whether the reload was skipped.
        held: Option<bool>,
        /// The changes that would invalidate the prompt cache.
        cache_impact: Option<CacheImpact>,
    }
}

wire_struct! {
    /// The changes that would invalidate the prompt cache.
    #[derive(Default)]
    pub struct CacheImpact {
        /// The added MCP servers.
        mcp_servers_added: List<String>,
        /// The removed MCP servers.
        mcp_servers_removed: List<String>,
        /// Whether the tool for language servers is added or removed.
        lsp_tool_change: Option<Json>,
    }
}

request! {
    /// Reloads the skills.
    ReloadSkills = "reload_skills" {}
}

wire_struct! {
    /// The skills.
    #[derive(Default)]
    pub struct ReloadSkillsResponse {
        /// The skills.
        skills: List<SlashCommand>,
    }
}

request! {
    /// Reloads the output styles.
    ReloadOutputStyles = "reload_output_styles" {}
}

wire_struct! {
    /// The output styles.
    #[derive(Default)]
    pub struct ReloadOutputStylesResponse {
        /// The styles to choose from.
        available_output_styles: List<String>,
    }
}
