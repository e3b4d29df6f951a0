//! Plugins, skills and output styles, read anew.

use crate::control::{AgentInfo, McpServerInfo, SlashCommand};
use crate::json::{Json, List, Number};
use crate::message::PluginState;

request! {
    /// Read the plugins anew.
    ReloadPlugins = "reload_plugins" {
        /// Whether to do nothing if the prompt cache would be lost.
        hold_on_cache_impact: Option<bool>,
        /// Plugins to add.
        add_plugins: Option<Json>,
        /// Whether to refuse while a turn runs.
        refuse_if_busy: Option<bool>,
    }
}

wire_struct! {
    /// What there is after the plugins were read anew.
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
        /// How many plugins could not be read.
        error_count: Option<Number>,
        /// Whether nothing was done.
        held: Option<bool>,
        /// What the prompt cache would be lost for.
        cache_impact: Option<CacheImpact>,
    }
}

wire_struct! {
    /// What the prompt cache would be lost for.
    #[derive(Default)]
    pub struct CacheImpact {
        /// MCP servers that come.
        mcp_servers_added: List<String>,
        /// MCP servers that go.
        mcp_servers_removed: List<String>,
        /// Whether the tool for language servers comes or goes.
        lsp_tool_change: Option<Json>,
    }
}

request! {
    /// Read the skills anew.
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
    /// Read the output styles anew.
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
