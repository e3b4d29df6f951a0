//! Structured values of a config file.

use std::path::PathBuf;

use claude_wire::Json;
use claude_wire::control::AgentDefinition;
use claude_wire::launch::{
    Agents, Include, McpServers, Origin, Plugin, Secret, Skills, Start, Thinking, ToolSet,
};
use claude_wire::settings::SystemPromptBase;
use claude_wire::settings::{
    DebugLog, EnvironmentPolicy, McpDelivery, PluginDelivery, Sandbox, SandboxCredential,
    SandboxCredentials, SandboxFilesystem, SandboxNetwork, SandboxRipgrep, SandboxTls,
    SettingsSource, ThinkingDisplay,
};
use serde::de::DeserializeOwned;

use super::nearest::nearest;
use super::node::{Entry, Node, Value, Wrong};
use super::take::{Take, Taken, each, items, mismatch, names_node, table, text, text_node, values};
use crate::list;
use crate::options::{Background, OsUser, VersionCheck};

/// Describes an unknown key.
pub(super) fn unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown key {name:?}; help: did you mean {near:?}?"),
        None => format!("unknown key {name:?}"),
    }
}

/// Reports the keys of a table that are not known.
fn check_keys(node: &Node, known: &[&str]) -> Taken<()> {
    let Value::Table(entries) = &node.value else { return Ok(()) };
    each(entries, &mut |entry| {
        if known.contains(&entry.name.as_str()) {
            return Ok(());
        }
        Err(vec![Wrong::new(entry.at, unknown(&entry.name, known))])
    })
}

/// Returns which of these words a text is.
fn word(node: &Node, text: &str, words: &[&str]) -> Taken<usize> {
    words.iter().position(|word| *word == text).ok_or_else(|| {
        let words = list::map(words, &|word| format!("`{word}`"));
        node.wrong(&format!("expected one of {}", words.join(", ")))
    })
}

/// Reads a required key of a table.
fn field<T: Take>(node: &Node, name: &str) -> Taken<T> {
    match node.get(name) {
        Some(value) => T::take(value),
        None => Err(node.wrong(&format!("missing key {name:?}"))),
    }
}

/// Reads an optional key of a table.
fn optional<T: Take>(node: &Node, name: &str) -> Taken<Option<T>> {
    match node.get(name) {
        Some(value) => T::take(value).map(Some),
        None => Ok(None),
    }
}

/// Reads a wire type, of which every key must be known. `name` is the name of the table in texts.
fn typed<T: DeserializeOwned>(
    node: &Node,
    name: &str,
    known: &[&str],
    required: &[&str],
) -> Taken<T> {
    check_keys(node, known)?;
    if let Some(key) = required.iter().find(|key| node.get(key).is_none()) {
        return Err(node.wrong(&format!("{name}: missing key {key:?}")));
    }
    // The error of the decoder would contain values.
    serde_json::from_str(&node.json()?.to_string())
        .map_err(|_| node.wrong(&format!("{name}: a value has the wrong type")))
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
                        word(preset, text(preset, String::EXPECTED)?, &["claude_code"])?;
                        Ok(Self::ClaudeCode)
                    }
                    _ => Err(mismatch(node, Self::EXPECTED)),
                }
            }
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

impl Take for Thinking {
    const EXPECTED: &'static str =
        "`adaptive`, `disabled`, or `{ mode = … }` or `{ budget = … }` with `display`";

    fn take(node: &Node) -> Taken<Self> {
        let mode = |node: &Node, text: &str| match word(node, text, &["adaptive", "disabled"])? {
            0 => Ok(Self::adaptive()),
            _ => Ok(Self::disabled()),
        };
        let thinking = match &node.value {
            Value::Text(text) => return mode(node, text),
            Value::Table(_) => {
                check_keys(node, &["mode", "budget", "display"])?;
                match (node.get("mode"), node.get("budget")) {
                    (Some(chosen), None) => mode(chosen, text(chosen, String::EXPECTED)?)?,
                    (None, Some(tokens)) => Self::budget(u32::take(tokens)?),
                    _ => return Err(mismatch(node, Self::EXPECTED)),
                }
            }
            _ => return Err(mismatch(node, Self::EXPECTED)),
        };
        Ok(match optional::<String>(node, "display")? {
            Some(display) => thinking.display(ThinkingDisplay::from(display)),
            None => thinking,
        })
    }
}

impl Take for Start {
    const EXPECTED: &'static str = "a table with one of `with_id`, `latest`, `resume`, \
        `resume_or_start`, `fork` and `fork_latest`, and with `fork_id`, `at` and `dropping_turn`";

    fn take(node: &Node) -> Taken<Self> {
        // The first six tell how the conversation starts.
        const KEYS: [&str; 9] = [
            "with_id",
            "latest",
            "resume",
            "resume_or_start",
            "fork",
            "fork_latest",
            "fork_id",
            "at",
            "dropping_turn",
        ];
        let entries = table(node, Self::EXPECTED)?;
        check_keys(node, &KEYS)?;
        let is_kind = |entry: &&Entry| KEYS[..6].contains(&entry.name.as_str());
        let mut kinds = entries.iter().filter(is_kind);
        let (Some(kind), None) = (kinds.next(), kinds.next()) else {
            return Err(node.wrong(&format!("expected {}", Self::EXPECTED)));
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
            const FROM_VARIABLE: fn(&str) -> Node = names_or_all_node;

            fn take(node: &Node) -> Taken<Self> {
                match &node.value {
                    Value::Text(text) => word(node, text, &["all"]).map(|_| Self::$all),
                    Value::List(_) => Vec::take(node).map(Self::Only),
                    _ => Err(mismatch(node, Self::EXPECTED)),
                }
            }
        }
    )+};
}

fn names_or_all_node(text: &str) -> Node {
    match text.trim() {
        "all" => text_node("all"),
        _ => names_node(text),
    }
}

names_or_all!(ToolSet: ClaudeCode, Skills: All);

impl Take for Agents {
    const EXPECTED: &'static str = "a table of agents";

    fn take(node: &Node) -> Taken<Self> {
        let mut agents = Self::default();
        each(table(node, Self::EXPECTED)?, &mut |entry| {
            table(&entry.node, Json::EXPECTED)?;
            let (name, required) = (format!("agent {:?}", entry.name), ["description", "prompt"]);
            let agent = typed(&entry.node, &name, AgentDefinition::FIELDS, &required)?;
            agents.set(&entry.name, agent);
            Ok(())
        })?;
        Ok(agents)
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
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

impl Take for Vec<Plugin> {
    const EXPECTED: &'static str = "a list of paths, or of `{ path = …, skip_mcp_discovery = … }`";

    fn take(node: &Node) -> Taken<Self> {
        values(node, Self::EXPECTED)
    }
}

/// Implements `Take` for enums of words.
macro_rules! of_words {
    ($($type:ty: $what:literal { $($word:literal => $variant:ident),+ }),+ $(,)?) => {$(
        impl Take for $type {
            const EXPECTED: &'static str = $what;

            fn take(node: &Node) -> Taken<Self> {
                let text = text(node, Self::EXPECTED)?;
                Ok([$(Self::$variant),+][word(node, text, &[$($word),+])?])
            }
        }
    )+};
}

of_words! {
    McpDelivery: "`automatic`, `arguments` or `handshake`" {
        "automatic" => Automatic, "arguments" => Arguments, "handshake" => Handshake
    },
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

    const FROM_VARIABLE: fn(&str) -> Node = names_node;

    fn take(node: &Node) -> Taken<Self> {
        let mut all = Self::NONE;
        each(items(node, Self::EXPECTED)?, &mut |entry| {
            let name = text(entry, String::EXPECTED)?;
            let Some(include) = Self::from_name(name) else {
                let known: Vec<&str> = Self::names().collect();
                return Err(entry.wrong(&unknown(name, &known)));
            };
            all |= include;
            Ok(())
        })?;
        Ok(all)
    }
}

impl Take for DebugLog {
    const EXPECTED: &'static str = "a Boolean, or the path of a file";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Flag(true) => Ok(Self::Default),
            Value::Flag(false) => Ok(Self::Off),
            Value::Text(path) => Ok(Self::file(path)),
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

impl Take for McpServers {
    const EXPECTED: &'static str = "a table of servers";

    fn take(node: &Node) -> Taken<Self> {
        let mut servers = Self::default();
        each(table(node, Self::EXPECTED)?, &mut |entry| {
            servers.set(&entry.name, Json::take(&entry.node)?);
            Ok(())
        })?;
        Ok(servers)
    }
}

impl Take for EnvironmentPolicy {
    const EXPECTED: &'static str =
        "`inherit`, `clean`, `{ only = […] }` or `{ inherit_except = […] }`";

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(text) => Ok(match word(node, text, &["inherit", "clean"])? {
                0 => Self::Inherit,
                _ => Self::Clean,
            }),
            Value::Table(_) => {
                check_keys(node, &["only", "inherit_except"])?;
                match (node.get("only"), node.get("inherit_except")) {
                    (Some(names), None) => Vec::take(names).map(Self::Only),
                    (None, Some(names)) => Vec::take(names).map(Self::InheritExcept),
                    _ => Err(mismatch(node, Self::EXPECTED)),
                }
            }
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

impl Take for Vec<(String, Option<Secret>)> {
    const EXPECTED: &'static str = "a list of flags, each a string or a list of flag and value";

    fn take(node: &Node) -> Taken<Self> {
        let mut flags = Self::new();
        each(items(node, Self::EXPECTED)?, &mut |entry| {
            flags.push(match &entry.value {
                Value::Text(flag) => (flag.clone(), None),
                Value::List(parts) if parts.len() == 2 => {
                    (String::take(&parts[0])?, Some(Secret::take(&parts[1])?))
                }
                _ => return Err(mismatch(entry, Self::EXPECTED)),
            });
            Ok(())
        })?;
        Ok(flags)
    }
}

impl Take for SettingsSource {
    const EXPECTED: &'static str = "a table, or the path of a file";
    const FROM_VARIABLE: fn(&str) -> Node = settings_node;

    fn take(node: &Node) -> Taken<Self> {
        match &node.value {
            Value::Text(path) => Ok(Self::File(path.into())),
            Value::Table(_) => Json::take(node).map(Self::Value),
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

fn settings_node(text: &str) -> Node {
    if text.trim_start().starts_with('{') {
        // Null matches no type, so invalid JSON is rejected.
        return super::json::parse(text).unwrap_or_else(|_| Node::unplaced(Value::Null));
    }
    text_node(text)
}

impl Take for Sandbox {
    const EXPECTED: &'static str = "a table";

    fn take(node: &Node) -> Taken<Self> {
        table(node, Self::EXPECTED)?;
        let parts: [(&[&str], &[&str]); 8] = [
            (&["network"], SandboxNetwork::FIELDS),
            (&["network", "tlsTerminate"], SandboxTls::FIELDS),
            (&["filesystem"], SandboxFilesystem::FIELDS),
            (&["credentials"], SandboxCredentials::FIELDS),
            (&["credentials", "files"], SandboxCredential::FIELDS),
            (&["credentials", "envVars"], SandboxCredential::FIELDS),
            (&["ripgrep"], SandboxRipgrep::FIELDS),
            (&[], Self::FIELDS),
        ];
        each(&parts, &mut |(path, known)| {
            let part = path.iter().try_fold(node, |node, name| node.get(name));
            match part.map(|part| (&part.value, part)) {
                Some((Value::List(entries), _)) => {
                    each(entries, &mut |entry| check_keys(entry, known))
                }
                Some((_, part)) => check_keys(part, known),
                None => Ok(()),
            }
        })?;
        typed(node, "sandbox", Self::FIELDS, &[])
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
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}
