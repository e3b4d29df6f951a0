//! Options about agents, skills and plugins.

use claude_wire::control::AgentDefinition;
use claude_wire::launch::{Plugin, Skills};
use claude_wire::settings::PluginDelivery;

use super::Options;

impl Options {
    /// Sets the agent of the main conversation, by name: one of [`agents`](Self::agents), of the
    /// user's settings or of a plugin. Sent as `--agent`. Default: none.
    pub fn agent(self, name: impl Into<String>) -> Self {
        self.change_settings("agent", |settings| settings.agent = Some(name.into()))
    }

    /// Sets the agents, by name, to which the model can delegate tasks. Replaces earlier ones. Agents
    /// of the user's settings remain available. Sent as `agents` in the handshake, and `--agents` in
    /// print mode. Default: none.
    ///
    /// ```
    /// use claude_agent_kit::{AgentDefinition, Options};
    ///
    /// let reviewer = AgentDefinition::new("Reviews changes", "You find mistakes in changes.")
    ///     .tools(["Read", "Grep"])
    ///     .model("haiku");
    /// let options = Options::new().agents([("reviewer", reviewer)]);
    /// ```
    pub fn agents(
        self,
        agents: impl IntoIterator<Item = (impl Into<String>, AgentDefinition)>,
    ) -> Self {
        self.change_settings("agents", |settings| settings.agents = agents.into_iter().collect())
    }

    /// Sets whether background tasks keep running when a turn is interrupted. The host can stop each of
    /// them with [`Session::stop_task`](crate::Session::stop_task). Not supported in print mode. Sent as
    /// `perTaskStopAffordance` in the handshake. Default: false.
    pub fn per_task_stop_affordance(self, each: bool) -> Self {
        self.change_settings("per_task_stop_affordance", |settings| {
            settings.per_task_stop_affordance = Some(each);
        })
    }

    /// Sets the skills that the model may use without permission: a list of names, or [`Skills::All`].
    /// With a list, other skills are not offered to the model. Print mode does not support a list. Sent
    /// as rules in `--allowedTools`, and `skills` in the handshake. Default: all skills that the CLI
    /// finds, and the CLI decides which of them require permission.
    pub fn skills(self, skills: impl Into<Skills>) -> Self {
        self.change_settings("skills", |settings| settings.skills = Some(skills.into()))
    }

    /// Sets the plugins, each as a directory or a [`Plugin`]. Replaces earlier ones. Plugins of the
    /// user's settings remain enabled. Sent as `--plugin-dir`, `--plugin-dir-no-mcp` without its MCP
    /// servers, or `plugins` in the handshake. Default: none.
    pub fn plugins(self, plugins: impl IntoIterator<Item = impl Into<Plugin>>) -> Self {
        self.change_settings("plugins", |settings| {
            settings.plugins = plugins.into_iter().map(Into::into).collect();
        })
    }

    /// Sets how plugins are passed to the CLI. In the handshake they do not appear in the process list;
    /// print mode does not support that. Sent as `--plugin-dir`, or `plugins` in the handshake. Default:
    /// on the command line.
    pub fn plugin_delivery(self, delivery: PluginDelivery) -> Self {
        self.change_settings("plugin_delivery", |settings| settings.plugin_delivery = delivery)
    }
}
