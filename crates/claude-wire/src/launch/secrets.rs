//! Which values must not be shown again, wherever they turn up.

use serde_json::Value;

use super::settings::{Settings, SettingsSource};
use crate::json::Json;

/// The values of these settings that must be masked in whatever the CLI prints: variables, headers
/// of MCP servers, whatever JSON calls a key or a token, and values of flags that nobody knows.
pub fn secrets(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(settings.env.values().map(|value| value.expose().to_owned()));
    let unknown = settings.extra_args.iter().filter_map(|(_, value)| value.as_ref());
    found.extend(unknown.map(|value| value.expose().to_owned()));
    for (_, config) in settings.mcp_servers.iter() {
        read(config, &mut found);
    }
    if let Some(SettingsSource::Value(value)) = &settings.settings {
        read(value, &mut found);
    }
    if let Some(managed) = &settings.managed_settings {
        read(managed.as_json(), &mut found);
    }
    for server in settings.agents.iter().flat_map(|(_, agent)| agent.mcp_servers.iter()) {
        read(server, &mut found);
    }
    found
}

fn read(json: &Json, found: &mut Vec<String>) {
    // What is not JSON is refused before anything starts.
    if let Ok(value) = json.parse::<Value>() {
        walk(value, false, found);
    }
}

/// Looks for texts below `headers` and `env`, and for those whose name tells.
fn walk(value: Value, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if secret => found.push(text),
        Value::Array(entries) => entries.into_iter().for_each(|entry| walk(entry, secret, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, secret || tells(&name), found);
            }
        }
        _ => {}
    }
}

/// Whether what stands below this name is secret.
fn tells(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["key", "token", "secret", "password", "passwd", "credential", "authorization"];
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "headers" | "env") || PARTS.iter().any(|part| name.contains(part))
}
