//! Structured values of a config file.

use std::path::PathBuf;

use claude_wire::Json;
use claude_wire::control::AgentDefinition;
use claude_wire::launch::{
    Agents, Include, McpServers, Origin, Plugin, Secret, Skills, Start, Thinking, ToolSet,
};
use claude_wire::settings::SystemPromptBase;
use claude_wire::settings::{
    DebugLog, EnvironmentPolicy, PluginDelivery, Sandbox, SandboxCredential, SandboxCredentials,
    SandboxFilesystem, SandboxNetwork, SandboxRipgrep, SandboxTls, SettingsSource, ThinkingDisplay,
};
use serde::de::DeserializeOwned;

use super::nearest::nearest;
use super::node::{Entry, Node, Value, Wrong};
use super::take::{Take, Taken, all, type_mismatch};
use crate::options::{Background, OsUser, VersionCheck};

/// Describes an unknown key.
pub(super) fn unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown key {name:?}; help: did you mean {near:?}?"),
        None => format!("unknown key {name:?}"),
    }
}

/// Reports the keys of a table that are not known.
fn check_keys(node: &Node, known: &[&str]) -> Taken<()> {
    let Value::Table(entries) = &node.value else { return Ok(()) };
    let others = entries.iter().filter(|entry| !known.contains(&entry.name.as_str()));
    let wrong: Vec<Wrong> =
        others.map(|entry| Wrong::new(entry.at, unknown(&entry.name, known))).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Parses one of these words.
fn word<T: Clone>(node: &Node, text: &str, words: &[(&str, T)]) -> Taken<T> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| value.clone()).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        vec![Wrong::new(node.at, format!("expected one of {}", words.join(", ")))]
    })
}

/// Reads a required key of a table.
fn field<T: Take>(node: &Node, name: &str) -> Taken<T> {
    optional(node, name)?.ok_or_else(|| vec![Wrong::new(node.at, format!("missing key {name:?}"))])
}

/// Reads an optional key of a table.
fn optional<T: Take>(node: &Node, name: &str) -> Taken<Option<T>> {
    node.get(name).map(T::take).transpose()
}

/// Reads a wire type, of which every key must be known.
fn typed<T: DeserializeOwned>(node: &Node, known: &[&str]) -> Taken<T> {
    check_keys(node, known)?;
    let json = node.json().map_err(|wrong| vec![wrong])?;
    // The error of the decoder would contain values.
    serde_json::from_value(json).map_err(|_| {
        vec![Wrong::new(node.at, "a value has the wrong type, or a required key is missing")]
    })
}

impl Take for SystemPromptBase {
    const EXPECTED: &'static str =
        "a string, a list of parts, `{ file = … }` or `{ preset = \"claude_code\" }`";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(text) => Ok(Self::Text(text.clone())),
            Value::List(_) => Vec::take(node).map(Self::Parts),
            Value::Table(_) => {
                check_keys(node, &["file", "preset"])?;
                match (node.get("file"), node.get("preset")) {
                    (Some(file), None) => PathBuf::take(file).map(Self::File),
                    (None, Some(preset)) => {
                        let text = String::take(preset)?;
                        word(preset, &text, &[("claude_code", Self::ClaudeCode)])
                    }
                    _ => Err(type_mismatch::<Self>(node)),
                }
            }
            _ => Err(type_mismatch::<Self>(node)),
        }
    }
}

impl Take for Thinking {
    const EXPECTED: &'static str =
        "`adaptive`, `disabled`, or `{ mode = … }` or `{ budget = … }` with `display`";

    fn take(node: &Node) -> Taken<Self> {
        let mode = |node: &Node, text: &str| {
            word(node, text, &[("adaptive", Self::adaptive()), ("disabled", Self::disabled())])
        };
        let thinking = match &node.value {
            Value::Text(text) => return mode(node, text),
            Value::Table(_) => {
                check_keys(node, &["mode", "budget", "display"])?;
                match (node.get("mode"), node.get("budget")) {
                    (Some(chosen), None) => mode(chosen, &String::take(chosen)?)?,
                    (None, Some(tokens)) => Self::budget(u32::take(tokens)?),
                    _ => return Err(type_mismatch::<Self>(node)),
                }
            }
            _ => return Err(type_mismatch::<Self>(node)),
        };
        let display: Option<String> = optional(node, "display")?;
        Ok(match display {
            Some(display) => thinking.display(ThinkingDisplay::from(display)),
            None => thinking,
        })
    }
}

impl Take for Start {
    const EXPECTED: &'static str = "a table with one of `with_id`, `latest`, `resume`, \
        `resume_or_start`, `fork` and `fork_latest`, and with `fork_id`, `at` and `dropping_turn`";

    fn take(node: &Node) -> Taken<Self> {
        const KINDS: [&str; 6] =
            ["with_id", "latest", "resume", "resume_or_start", "fork", "fork_latest"];
        let Value::Table(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        check_keys(node, &[&KINDS[..], &["fork_id", "at", "dropping_turn"]].concat())?;
        let is_kind = |entry: &&Entry| KINDS.contains(&entry.name.as_str());
        let mut kinds = entries.iter().filter(is_kind);
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(vec![Wrong::new(node.at, format!("expected {}", Self::EXPECTED))]);
        };
        let origin = match kind.name.as_str() {
            "latest" | "fork_latest" if bool::take(&kind.node)? => Origin::Latest,
            "with_id" | "latest" | "fork_latest" => Origin::New,
            _ => Origin::Session(Take::take(&kind.node)?),
        };
        let mut start = Self::from_origin(origin);
        start.or_new = kind.name == "resume_or_start";
        start.fork = kind.name.starts_with("fork") && start.origin != Origin::New;
        start.id = match kind.name.as_str() {
            "with_id" => Some(Take::take(&kind.node)?),
            _ => optional(node, "fork_id")?,
        };
        start.at = optional(node, "at")?;
        start.dropping_turn = optional(node, "dropping_turn")?;
        Ok(start)
    }
}

/// Implements `Take` for a list of names, or `all`.
macro_rules! names_or_all {
    ($($type:ty: $all:ident),+) => {$(
        impl Take for $type {
            const EXPECTED: &'static str = "a list of names, or `all`";

            fn take(node: &Node) -> Taken<Self> {
                match &node.value {
                    Value::Text(text) => word(node, text, &[("all", Self::$all)]),
                    Value::List(_) => Vec::take(node).map(Self::Only),
                    _ => Err(type_mismatch::<Self>(node)),
                }
            }

            fn from_variable(text: &str) -> Node {
                match text.trim() {
                    "all" => Node::unplaced(Value::Text("all".to_owned())),
                    _ => Vec::<String>::from_variable(text),
                }
            }
        }
    )+};
}

names_or_all!(ToolSet: ClaudeCode, Skills: All);

impl Take for Agents {
    const EXPECTED: &'static str = "a table of agents";

    fn take(node: &Node) -> Taken<Self> {
        let Value::Table(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        let agents = entries.iter().map(|entry| match entry.node.value {
            Value::Table(_) => {
                let agent = typed(&entry.node, AgentDefinition::FIELDS)?;
                Ok((entry.name.clone(), agent))
            }
            _ => Err(type_mismatch::<Json>(&entry.node)),
        });
        all(agents).map(|agents: Vec<(String, AgentDefinition)>| Self::from_iter(agents))
    }
}

impl Take for Plugin {
    const EXPECTED: &'static str = "a path, or `{ path = …, skip_mcp_discovery = … }`";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(path) => Ok(Self::new(path)),
            Value::Table(_) => {
                check_keys(node, &["path", "skip_mcp_discovery"])?;
                let mut plugin = Self::new(field::<PathBuf>(node, "path")?);
                plugin.skip_mcp_discovery = optional(node, "skip_mcp_discovery")?.unwrap_or(false);
                Ok(plugin)
            }
            _ => Err(type_mismatch::<Self>(node)),
        }
    }
}

impl Take for Vec<Plugin> {
    const EXPECTED: &'static str = "a list of paths, or of `{ path = …, skip_mcp_discovery = … }`";

    fn take(node: &Node) -> Taken<Self> {
        let Value::List(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        all(entries.iter().map(Plugin::take))
    }
}

/// Implements `Take` for enums of words.
macro_rules! of_words {
    ($($type:ty: $what:literal { $($word:literal => $variant:ident),+ }),+ $(,)?) => {$(
        impl Take for $type {
            const EXPECTED: &'static str = $what;

            fn take(node: &Node) -> Taken<Self> {
                match &node.value {
                    Value::Text(text) => word(node, text, &[$(($word, Self::$variant)),+]),
                    _ => Err(type_mismatch::<Self>(node)),
                }
            }
        }
    )+};
}

of_words! {
    PluginDelivery: "`arguments` or `handshake`" {
        "arguments" => Arguments, "handshake" => Handshake
    },
    Background: "`agents` or `all`" { "agents" => Agents, "all" => All },
    VersionCheck: "`required`, `permissive` or `skip`" {
        "required" => Required, "permissive" => Permissive, "skip" => Skip
    },
}

impl Take for Include {
    const EXPECTED: &'static str = "a list of `partial_messages`, `hook_events`, `subagent_text`, \
        `agent_progress_summaries` and `prompt_suggestions`";

    fn take(node: &Node) -> Taken<Self> {
        let Value::List(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        let taken = entries.iter().map(|entry| {
            let name = String::take(entry)?;
            let known: Vec<&str> = Self::names().collect();
            Self::from_name(&name).ok_or_else(|| vec![Wrong::new(entry.at, unknown(&name, &known))])
        });
        Ok(all(taken)?.into_iter().fold(Self::NONE, |all, include| all | include))
    }

    fn from_variable(text: &str) -> Node {
        Vec::<String>::from_variable(text)
    }
}

impl Take for DebugLog {
    const EXPECTED: &'static str = "a Boolean, or the path of a file";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Flag(true) => Ok(Self::Default),
            Value::Flag(false) => Ok(Self::Off),
            Value::Text(path) => Ok(Self::file(path)),
            _ => Err(type_mismatch::<Self>(node)),
        }
    }
}

impl Take for McpServers {
    const EXPECTED: &'static str = "a table of servers";

    fn take(node: &Node) -> Taken<Self> {
        let Value::Table(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        let taken = entries.iter().map(|entry| Ok((&entry.name, Json::take(&entry.node)?)));
        let mut servers = Self::default();
        for (name, config) in all(taken)? {
            servers.set(name, config);
        }
        Ok(servers)
    }
}

impl Take for EnvironmentPolicy {
    const EXPECTED: &'static str =
        "`inherit`, `clean`, `{ only = […] }` or `{ inherit_except = […] }`";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(text) => {
                word(node, text, &[("inherit", Self::Inherit), ("clean", Self::Clean)])
            }
            Value::Table(_) => {
                check_keys(node, &["only", "inherit_except"])?;
                match (node.get("only"), node.get("inherit_except")) {
                    (Some(names), None) => Vec::take(names).map(Self::Only),
                    (None, Some(names)) => Vec::take(names).map(Self::InheritExcept),
                    _ => Err(type_mismatch::<Self>(node)),
                }
            }
            _ => Err(type_mismatch::<Self>(node)),
        }
    }
}

impl Take for Vec<(String, Option<Secret>)> {
    const EXPECTED: &'static str = "a list of flags, each a string or a list of flag and value";

    fn take(node: &Node) -> Taken<Self> {
        let Value::List(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        all(entries.iter().map(|entry| match &entry.value {
            Value::Text(flag) => Ok((flag.clone(), None)),
            Value::List(parts) if parts.len() == 2 => {
                Ok((String::take(&parts[0])?, Some(Secret::take(&parts[1])?)))
            }
            _ => Err(type_mismatch::<Self>(entry)),
        }))
    }
}

impl Take for SettingsSource {
    const EXPECTED: &'static str = "a table, or the path of a file";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(path) => Ok(Self::File(path.into())),
            Value::Table(_) => Json::take(node).map(Self::Value),
            _ => Err(type_mismatch::<Self>(node)),
        }
    }

    fn from_variable(text: &str) -> Node {
        if text.trim_start().starts_with('{') {
            // Null matches no type, so invalid JSON is rejected.
            if let Ok(node) = super::json::parse(text) {
                return node;
            }
            return Node::unplaced(Value::Null);
        }
        Node::unplaced(Value::Text(text.to_owned()))
    }
}

impl Take for Sandbox {
    const EXPECTED: &'static str = "a table";

    fn take(node: &Node) -> Taken<Self> {
        let Value::Table(_) = node.value else { return Err(type_mismatch::<Self>(node)) };
        let parts: [(&[&str], &[&str]); 7] = [
            (&["network"], SandboxNetwork::FIELDS),
            (&["network", "tlsTerminate"], SandboxTls::FIELDS),
            (&["filesystem"], SandboxFilesystem::FIELDS),
            (&["credentials"], SandboxCredentials::FIELDS),
            (&["credentials", "files"], SandboxCredential::FIELDS),
            (&["credentials", "envVars"], SandboxCredential::FIELDS),
            (&["ripgrep"], SandboxRipgrep::FIELDS),
        ];
        let below = parts.into_iter().flat_map(|(path, known)| {
            let part = path.iter().try_fold(node, |node, name| node.get(name));
            let entries = match part.map(|part| (&part.value, part)) {
                Some((Value::List(entries), _)) => entries.as_slice(),
                Some((_, part)) => std::slice::from_ref(part),
                None => &[],
            };
            entries.iter().map(move |entry| check_keys(entry, known))
        });
        let own = check_keys(node, Self::FIELDS);
        all(below.chain([own]))?;
        typed(node, Self::FIELDS)
    }
}

impl Take for OsUser {
    const EXPECTED: &'static str = "a name, or `{ user = …, group = … }`";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(name) => Ok(name.as_str().into()),
            Value::Table(_) => {
                check_keys(node, &["user", "group"])?;
                Ok(Self::ids(field(node, "user")?, field(node, "group")?))
            }
            _ => Err(type_mismatch::<Self>(node)),
        }
    }
}
