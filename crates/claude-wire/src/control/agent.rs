//! Agents that the host defines.

use super::PermissionMode;
use crate::json::{Extra, Json, List, Map};
use crate::launch::Effort;
use crate::schema::Encode;

silent_wire_struct! {
    /// An agent to which the model or the host can delegate a task.
    pub struct AgentDefinition {
        /// The description of when to use the agent.
        description: String,
        /// Its system prompt.
        prompt: String,
        /// The tools of the agent; those of the conversation if absent.
        tools: List<String>,
        /// The tools that the agent may not use.
        disallowed_tools: List<String> as "disallowedTools",
        /// Its model: a name, an alias, or `inherit`.
        model: Option<String>,
        /// The MCP servers of the agent: names of servers of the session, or configurations.
        mcp_servers: List<Json> as "mcpServers",
        /// The critical reminder that is repeated (experimental).
        critical_system_reminder: Option<String> as "criticalSystemReminder_EXPERIMENTAL",
        /// The skills that are preloaded.
        skills: List<String>,
        /// The first prompt, if it is the agent of the main conversation.
        initial_prompt: Option<String> as "initialPrompt",
        /// The maximum number of turns.
        max_turns: Option<u32> as "maxTurns",
        /// The number of tokens at which the conversation is compacted.
        auto_compact_window: Option<u64> as "autoCompactWindow",
        /// Whether it runs in the background.
        background: Option<bool>,
        /// Whether `CLAUDE.md` is left out.
        omit_claude_md: Option<bool> as "omitClaudeMd",
        /// The scope of its memory.
        memory: Option<AgentMemory>,
        /// The effort: a level or a number.
        effort: Option<Json>,
        /// The permission mode of the agent.
        permission_mode: Option<PermissionMode> as "permissionMode",
        /// The observer agent.
        observer: Option<String>,
        /// The prompt of the observer agent.
        observer_message: Option<String> as "observerMessage",
    }
}

names_only_debug!(AgentDefinition);

open_enum! {
    /// The scope of the memory of an agent.
    pub enum AgentMemory {
        /// The files of the user.
        User = "user",
        /// The project.
        Project = "project",
        /// The project, on this machine only.
        Local = "local",
    }
}

impl AgentDefinition {
    /// Creates an agent with this description and this system prompt.
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

    /// Adds an MCP server for this agent, in the configuration format of the CLI.
    #[must_use]
    pub fn mcp_server(mut self, name: impl Into<String>, config: impl Into<Json>) -> Self {
        let server = Map::from([(name.into(), config.into())]);
        self.mcp_servers.push(Json::from_view(server.view()));
        self
    }

    /// Sets the effort level.
    #[must_use]
    pub fn effort(mut self, effort: impl Into<Effort>) -> Self {
        self.effort = Some(Json::from(effort.into().as_str()));
        self
    }

    /// Sets the effort as a number.
    #[must_use]
    pub fn effort_number(mut self, effort: u32) -> Self {
        self.effort = Some(Json::from(serde_json::Value::from(effort)));
        self
    }

    settings_setter! {
        /// The tools of the agent. Default: those of the conversation.
        list tools: String
    }
    settings_setter! {
        /// The tools that the agent may not use.
        list disallowed_tools: String
    }
    settings_setter! {
        /// Its model: a name, an alias, or `inherit`.
        one model: String
    }
    settings_setter! {
        /// The critical reminder that is repeated (experimental).
        one critical_system_reminder: String
    }
    settings_setter! {
        /// The skills that are preloaded.
        list skills: String
    }
    settings_setter! {
        /// The first prompt, if it is the agent of the main conversation.
        one initial_prompt: String
    }
    settings_setter! {
        /// The maximum number of turns.
        one max_turns: u32
    }
    settings_setter! {
        /// The number of tokens at which the conversation is compacted.
        one auto_compact_window: u64
    }
    settings_setter! {
        /// Whether it runs in the background.
        one background: bool
    }
    settings_setter! {
        /// Whether `CLAUDE.md` is left out.
        one omit_claude_md: bool
    }
    settings_setter! {
        /// The scope of its memory.
        one memory: AgentMemory
    }
    settings_setter! {
        /// The permission mode of the agent.
        one permission_mode: PermissionMode
    }
    settings_setter! {
        /// The observer agent.
        one observer: String
    }
    settings_setter! {
        /// The prompt of the observer agent.
        one observer_message: String
    }
}
