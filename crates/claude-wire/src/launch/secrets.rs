//! Which values must not be shown again, wherever they turn up.

use serde_json::Value;

use super::settings::{Settings, SettingsSource};
use crate::json::Json;

/// The values of these settings that must be masked in whatever the CLI prints: variables, headers
/// of MCP servers, what stands in their addresses before the host and behind the path, whatever JSON
/// or an argument calls a key or a token, and values of flags that nobody knows.
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

/// The same of JSON that was given later, such as new MCP servers.
pub fn secrets_in(json: &Json) -> Vec<String> {
    let mut found = Vec::new();
    read(json, &mut found);
    found
}

fn read(json: &Json, found: &mut Vec<String>) {
    // What is not JSON is refused before anything starts.
    if let Ok(value) = json.parse::<Value>() {
        walk(value, false, found);
    }
}

/// Looks for texts below `headers` and `env`, for those whose name tells, and into arguments and
/// addresses.
fn walk(value: Value, secret: bool, found: &mut Vec<String>) {
    match value {
        Value::String(text) if secret => found.push(text),
        Value::String(text) => address(&text, found),
        Value::Array(entries) => {
            arguments(&entries, found);
            for entry in entries {
                walk(entry, secret, found);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, secret || tells(&name), found);
            }
        }
        _ => {}
    }
}

/// Credentials in an address: `user:password@` before the host, and the values behind `?`.
fn address(text: &str, found: &mut Vec<String>) {
    let Some((_, rest)) = text.split_once("://") else { return };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if let Some((user, _)) = authority.rsplit_once('@') {
        found.extend(user.split(':').map(str::to_owned));
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let values = query.split(['&', '#']).filter_map(|pair| pair.split_once('='));
    found.extend(values.map(|(_, value)| value.to_owned()));
}

/// Arguments of a command whose name tells: `--token=x`, `TOKEN=x`, and `x` behind `--token`.
fn arguments(entries: &[Value], found: &mut Vec<String>) {
    let mut is_value = false;
    for entry in entries.iter().filter_map(Value::as_str) {
        match entry.split_once('=') {
            _ if is_value => found.push(entry.to_owned()),
            Some((name, value)) if tells(name) => found.push(value.to_owned()),
            _ => {}
        }
        is_value = entry.starts_with('-') && !entry.contains('=') && tells(entry);
    }
}

/// Whether what stands below this name is secret.
fn tells(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["key", "token", "secret", "password", "passwd", "credential", "authorization"];
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "headers" | "env") || PARTS.iter().any(|part| name.contains(part))
}
