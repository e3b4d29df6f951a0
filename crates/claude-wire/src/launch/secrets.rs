//! Finds the values that must be masked in all texts.

use serde_json::{Map, Value};

use super::settings::{Settings, SettingsSource};
use crate::json::Json;

/// Returns the values of these settings that must be masked in texts of the CLI: environment
/// variables, values of extra arguments, headers of MCP servers, user information and query values
/// in their URLs, and values that JSON or an argument calls a key or a token.
///
/// The value of a variable or extra argument is not secret if its name is not secret and the value is
/// the working directory, an absolute path or a list of them, or a URL of only a scheme, a host
/// and a port.
pub fn secrets(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let variables = settings.env.iter().map(|(name, value)| (name, value.expose()));
    let flags = settings.extra_args.iter();
    let flags = flags.filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?.expose())));
    let is_cwd = |value: &str| settings.cwd.as_ref().is_some_and(|cwd| cwd.as_os_str() == value);
    for (name, value) in variables.chain(flags) {
        if is_secret(name, value) && (names_a_secret(name) || !is_cwd(value)) {
            found.push(value.to_owned());
        }
    }
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

/// Returns the secrets in JSON that is sent later, such as new MCP servers.
pub fn secrets_in(json: &Json) -> Vec<String> {
    let mut found = Vec::new();
    read(json, &mut found);
    found
}

fn read(json: &Json, found: &mut Vec<String>) {
    // Values that are not JSON are rejected before the start.
    if let Ok(value) = json.deserialize::<Value>() {
        walk(value, false, found);
    }
}

/// Finds texts below `headers` and `env`, texts with a secret name, and secrets in arguments and
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
                match value {
                    Value::Object(variables) if name == "env" => environment(variables, found),
                    value => walk(value, secret || names_a_secret(&name), found),
                }
            }
        }
        _ => {}
    }
}

fn environment(variables: Map<String, Value>, found: &mut Vec<String>) {
    for (name, value) in variables {
        match value {
            Value::String(value) if !is_secret(&name, &value) => {}
            value => walk(value, true, found),
        }
    }
}

/// Returns whether the value of a variable or extra argument with this name is secret.
fn is_secret(name: &str, value: &str) -> bool {
    if name.to_ascii_lowercase().ends_with("tokens") && value.parse::<u64>().is_ok() {
        // A limit of tokens.
        return false;
    }
    names_a_secret(name) || !(is_path_list(value) || is_origin(value))
}

/// Returns whether this is an absolute path or a list of them, on any platform.
fn is_path_list(value: &str) -> bool {
    let is_windows = |path: &str| {
        let drive = path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
        (drive && path.get(1..3).is_some_and(|rest| matches!(rest, ":\\" | ":/")))
            || path.starts_with("\\\\")
    };
    value.split(':').all(|path| path.starts_with('/')) || value.split(';').all(is_windows)
}

/// Returns whether this is a URL of only a scheme, a host and a port.
fn is_origin(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let host = rest.strip_suffix('/').unwrap_or(rest);
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '+')
        && !host.is_empty()
        && host.chars().all(is_host)
}

/// Finds credentials in an address: `user:password@` before the host, and query values.
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

/// Finds arguments with a secret name: `--token=x`, `TOKEN=x`, and `x` after `--token`.
fn arguments(entries: &[Value], found: &mut Vec<String>) {
    let mut is_value = false;
    for entry in entries.iter().filter_map(Value::as_str) {
        match entry.split_once('=') {
            _ if is_value => found.push(entry.to_owned()),
            Some((name, value)) if names_a_secret(name) => found.push(value.to_owned()),
            _ => {}
        }
        is_value = entry.starts_with('-') && !entry.contains('=') && names_a_secret(entry);
    }
}

/// Returns whether the values below this name are secret.
fn names_a_secret(name: &str) -> bool {
    const PARTS: [&str; 7] =
        ["key", "token", "secret", "password", "passwd", "credential", "authorization"];
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "headers" | "env") || PARTS.iter().any(|part| name.contains(part))
}
