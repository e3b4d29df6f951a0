//! What is added to the CLI: agents, skills, plugins.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::control::AgentDefinition;
use crate::json::Json;

/// Agents by name.
#[derive(Clone, Default, PartialEq)]
pub struct Agents(BTreeMap<String, AgentDefinition>);

impl Agents {
    /// Sets an agent, replacing the one of that name.
    pub fn set(&mut self, name: impl Into<String>, agent: AgentDefinition) {
        self.0.insert(name.into(), agent);
    }

    /// The agents, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AgentDefinition)> {
        self.0.iter().map(|(name, agent)| (name.as_str(), agent))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As the handshake takes them; nothing if there are none.
    pub(super) fn told(&self) -> Option<BTreeMap<String, AgentDefinition>> {
        (!self.is_empty()).then(|| self.0.clone())
    }

    /// As print mode takes them; nothing if there are none.
    pub(super) fn json(&self) -> Option<Json> {
        // Names are strings and definitions are JSON already, so writing them cannot fail.
        (!self.is_empty()).then(|| Json::from_serialize(&self.0).unwrap_or_default())
    }
}

impl fmt::Debug for Agents {
    /// Without what they are told.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl<N: Into<String>> FromIterator<(N, AgentDefinition)> for Agents {
    fn from_iter<I: IntoIterator<Item = (N, AgentDefinition)>>(agents: I) -> Self {
        Self(agents.into_iter().map(|(name, agent)| (name.into(), agent)).collect())
    }
}

/// The skills that the model may use without asking.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skills {
    /// All that the CLI finds.
    All,
    /// These; the model is told of no others. None at all if the list is empty.
    Only(Vec<String>),
}

impl Skills {
    /// What these allow to run without asking.
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
    /// Whether its MCP servers are left alone.
    pub skip_mcp_discovery: bool,
}

impl Plugin {
    /// The plugin in this directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), skip_mcp_discovery: false }
    }

    /// Leaves its MCP servers alone.
    #[must_use]
    pub fn without_mcp(mut self) -> Self {
        self.skip_mcp_discovery = true;
        self
    }

    /// As the handshake takes it.
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

/// How the CLI is told of plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginDelivery {
    /// On the command line.
    #[default]
    Arguments,
    /// In the handshake, which the CLI waits for before it loads them.
    Handshake,
}
