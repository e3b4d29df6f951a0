//! Agents, skills and plugins.

use std::fmt;
use std::path::PathBuf;

use crate::control::AgentDefinition;
use crate::json::{Json, Map};
use crate::schema::Encode;

/// Agents by name.
#[derive(Clone, Default, PartialEq)]
pub struct Agents(Map<AgentDefinition>);

impl Agents {
    /// Sets an agent, replacing the one of that name.
    pub fn set(&mut self, name: impl Into<String>, agent: AgentDefinition) {
        self.0.insert(name.into(), agent);
    }

    /// Returns the agents with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AgentDefinition)> {
        self.0.iter()
    }

    /// Returns whether there are no agents.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the agents for the handshake; `None` if there are none.
    pub(super) fn by_name(&self) -> Option<Map<AgentDefinition>> {
        (!self.is_empty()).then(|| self.0.clone())
    }

    /// Returns the agents for print mode; `None` if there are none.
    pub(super) fn json(&self) -> Option<Json> {
        (!self.is_empty()).then(|| Json::from_view(self.0.view()))
    }
}

impl fmt::Debug for Agents {
    /// Formats without the prompts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<N: Into<String>> FromIterator<(N, AgentDefinition)> for Agents {
    fn from_iter<I: IntoIterator<Item = (N, AgentDefinition)>>(agents: I) -> Self {
        Self(agents.into_iter().collect())
    }
}

/// The skills that the model may use without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skills {
    /// All skills that the CLI finds.
    All,
    /// Only these; the model does not see others. None if the list is empty.
    Only(Vec<String>),
}

impl Skills {
    /// Returns the rules that allow these skills.
    pub(super) fn rules(&self) -> Vec<String> {
        match self {
            Self::All => vec!["Skill".to_owned()],
            Self::Only(names) => names.iter().map(|name| format!("Skill({name})")).collect(),
        }
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Skills {
    fn from(names: [T; N]) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<String>> From<Vec<T>> for Skills {
    fn from(names: Vec<T>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

/// A plugin in a directory of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plugin {
    /// Where it is.
    pub path: PathBuf,
    /// Whether its MCP servers are skipped.
    pub skip_mcp_discovery: bool,
}

impl Plugin {
    /// Creates a plugin from this directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), skip_mcp_discovery: false }
    }

    /// Skips the MCP servers of the plugin.
    #[must_use]
    pub fn without_mcp(mut self) -> Self {
        self.skip_mcp_discovery = true;
        self
    }

    /// Returns the plugin for the handshake.
    pub(super) fn json(&self) -> Json {
        let mut plugin = serde_json::json!({"type": "local", "path": self.path.to_string_lossy()});
        if self.skip_mcp_discovery {
            plugin["skipMcpDiscovery"] = true.into();
        }
        plugin.into()
    }
}

impl<T: Into<PathBuf>> From<T> for Plugin {
    fn from(path: T) -> Self {
        Self::new(path)
    }
}

/// How MCP servers that are given by value are passed to the CLI. Files are passed by their path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpDelivery {
    /// In the handshake if the CLI supports that (2.1.326 and newer), otherwise on the command line.
    #[default]
    Automatic,
    /// On the command line, which all users of the machine can read.
    Arguments,
    /// In the handshake. The start fails if the CLI does not confirm that it uses them.
    Handshake,
}

/// How plugins are passed to the CLI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginDelivery {
    /// On the command line.
    #[default]
    Arguments,
    /// In the handshake; the CLI loads them after it.
    Handshake,
}
