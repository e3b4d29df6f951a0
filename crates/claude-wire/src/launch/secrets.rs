//! Which values must not be shown again, wherever they turn up.

use serde_json::Value;

use super::settings::{Settings, SettingsSource};
use crate::json::Json;

/// The values of these settings that must be masked in whatever the CLI prints: variables, headers
/// of MCP servers, whatever JSON or an argument of a server calls a key or a token, who logs in by an
/// address and the values of its query, and values of flags that nobody knows.
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
        Value::Array(entries) => entries.into_iter().for_each(|entry| walk(entry, secret, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &value) {
                    ("args", Value::Array(arguments)) => of_arguments(arguments, found),
                    ("url", Value::String(url)) => of_address(url, found),
                    _ => {}
                }
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

/// What follows a flag whose name tells, as `--api-key x`, `--api-key=x` or `API_KEY=x`; and
/// addresses. A flag is followed by its value, whatever that looks like.
fn of_arguments(arguments: &[Value], found: &mut Vec<String>) {
    let mut after_flag = false;
    for argument in arguments.iter().filter_map(Value::as_str) {
        of_address(argument, found);
        let named = argument.split_once('=').filter(|(name, _)| tells(name));
        if let Some((_, value)) = named {
            found.push(value.to_owned());
        } else if after_flag {
            found.push(argument.to_owned());
        }
        after_flag = argument.starts_with('-') && !argument.contains('=') && tells(argument);
    }
}

/// Who logs in, and the values of the query.
fn of_address(url: &str, found: &mut Vec<String>) {
    let Some((_, rest)) = url.split_once("://") else { return };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((who, _)) = host.rsplit_once('@') {
        found.push(who.to_owned());
        found.extend(who.split_once(':').map(|(_, password)| password.to_owned()));
    }
    let Some((_, query)) = rest.split_once('?') else { return };
    let query = query.split('#').next().unwrap_or_default();
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    found.extend(values.map(|(_, value)| value.to_owned()));
}
