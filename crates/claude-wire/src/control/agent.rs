//! Agents that the host defines.

use std::collections::BTreeMap;

use super::PermissionMode;
use crate::json::{Extra, Json, List};
use crate::launch::Effort;

silent_wire_struct! {
    /// An agent that the model, or the host, can give a task to.
    pub struct AgentDefinition {
        /// When to use it.
        description: String,
        /// Its system prompt.
        prompt: String,
        /// The tools that it has; those of the conversation if there is no list.
        tools: List<String>,
        /// The tools that it does not have.
        disallowed_tools: List<String> as "disallowedTools",
        /// Its model: a name, an alias, or `inherit`.
        model: Option<String>,
        /// Its MCP servers: names of servers of the session, or objects that configure some.
        mcp_servers: List<Json> as "mcpServers",
        /// What it is reminded of again and again (experimental).
        critical_system_reminder: Option<String> as "criticalSystemReminder_EXPERIMENTAL",
        /// Skills that it has read from the start.
        skills: List<String>,
        /// What it is told first, as the agent of the main conversation.
        initial_prompt: Option<String> as "initialPrompt",
        /// How often it may answer.
        max_turns: Option<u32> as "maxTurns",
        /// How many tokens are too long a conversation.
        auto_compact_window: Option<u64> as "autoCompactWindow",
        /// Whether it runs in the background.
        background: Option<bool>,
        /// Whether it is not told what stands in `CLAUDE.md`.
        omit_claude_md: Option<bool> as "omitClaudeMd",
        /// Where it remembers things.
        memory: Option<AgentMemory>,
        /// How much effort it makes: a level, or a number.
        effort: Option<Json>,
        /// How permissions are decided for it.
        permission_mode: Option<PermissionMode> as "permissionMode",
        /// The agent that watches it.
        observer: Option<String>,
        /// What that one is told.
        observer_message: Option<String> as "observerMessage",
    }
}

names_only_debug!(AgentDefinition);

open_enum! {
    /// Where an agent remembers things.
    pub enum AgentMemory {
        /// With the user's own files.
        User = "user",
        /// With the project.
        Project = "project",
        /// With the project, on this machine only.
        Local = "local",
    }
}

impl AgentDefinition {
    /// An agent with this system prompt, and when to use it.
    pub fn new(description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            prompt: prompt.into(),
            tools: List::absent(),
            disallowed_tools: List::absent(),
            model: None,
            mcp_servers: List::absent(),
            critical_system_reminder: None,
            skills: List::absent(),
            initial_prompt: None,
            max_turns: None,
            auto_compact_window: None,
            background: None,
            omit_claude_md: None,
            memory: None,
            effort: None,
            permission_mode: None,
            observer: None,
            observer_message: None,
            extra: Extra::default(),
        }
    }

    /// Adds an MCP server of the session, by its name.
    #[must_use]
    pub fn session_mcp_server(mut self, name: impl AsRef<str>) -> Self {
        self.mcp_servers.push(Json::from(name.as_ref()));
        self
    }

    /// Adds an MCP server of its own, configured in the CLI's own shape.
    #[must_use]
    pub fn mcp_server(mut self, name: impl Into<String>, config: impl Into<Json>) -> Self {
        let server = BTreeMap::from([(name.into(), config.into())]);
        // A name and JSON: writing them cannot fail.
        self.mcp_servers.push(Json::from_serialize(&server).unwrap_or_default());
        self
    }

    /// How much effort it makes.
    #[must_use]
    pub fn effort(mut self, effort: impl Into<Effort>) -> Self {
        self.effort = Some(Json::from(effort.into().as_str()));
        self
    }

    /// How much effort it makes, as a number.
    #[must_use]
    pub fn effort_number(mut self, effort: u32) -> Self {
        self.effort = Some(Json::from(serde_json::Value::from(effort)));
        self
    }

    settings_setter! {
        /// The tools that it has. Default: those of the conversation.
        list tools: String
    }
    settings_setter! {
        /// The tools that it does not have.
        list disallowed_tools: String
    }
    settings_setter! {
        /// Its model: a name, an alias, or `inherit`.
        one model: String
    }
    settings_setter! {
        /// What it is reminded of again and again (experimental).
        one critical_system_reminder: String
    }
    settings_setter! {
        /// Skills that it has read from the start.
        list skills: String
    }
    settings_setter! {
        /// What it is told first, as the agent of the main conversation.
        one initial_prompt: String
    }
    settings_setter! {
        /// How often it may answer.
        one max_turns: u32
    }
    settings_setter! {
        /// How many tokens are too long a conversation.
        one auto_compact_window: u64
    }
    settings_setter! {
        /// Whether it runs in the background.
        one background: bool
    }
    settings_setter! {
        /// Whether it is not told what stands in `CLAUDE.md`.
        one omit_claude_md: bool
    }
    settings_setter! {
        /// Where it remembers things.
        one memory: AgentMemory
    }
    settings_setter! {
        /// How permissions are decided for it.
        one permission_mode: PermissionMode
    }
    settings_setter! {
        /// The agent that watches it.
        one observer: String
    }
    settings_setter! {
        /// What the agent that watches it is told.
        one observer_message: String
    }
}
