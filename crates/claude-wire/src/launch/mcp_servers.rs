//! The MCP servers that are given by value, and the in-process ones: on the command line or in the
//! handshake.

use super::extensions::McpDelivery;
use super::settings::Settings;
use super::{Form, Needs};
use crate::json::{Extra, Json};

/// Returns whether the servers are sent in the handshake. Their environment variables and headers are
/// often secret, and command lines are public on the machine.
pub(super) fn are_in_handshake(settings: &Settings, form: &Form) -> bool {
    match (form, settings.mcp_delivery) {
        (Form::Print { .. }, _) | (_, McpDelivery::Arguments) => false,
        (Form::Session, McpDelivery::Automatic | McpDelivery::Handshake) => true,
    }
}

/// Returns the servers by name; `None` if there are none.
pub(super) fn by_name(settings: &Settings, needs: &Needs) -> Option<Json> {
    let mut servers = Extra::default();
    for (name, config) in settings.mcp_servers.iter() {
        servers.set(name, config.clone());
    }
    for name in &needs.servers {
        let mut config = Extra::default();
        config.set("type", Json::from("sdk"));
        config.set("name", Json::from(name.as_str()));
        servers.set(name.clone(), Json::from(&config));
    }
    (!servers.is_empty()).then(|| Json::from(&servers))
}

/// Returns the value of `--mcp-config`; `None` if there are no servers.
pub(super) fn config(settings: &Settings, needs: &Needs) -> Option<Json> {
    let servers = by_name(settings, needs)?;
    let mut config = Extra::default();
    config.set("mcpServers", servers);
    Some(Json::from(&config))
}
