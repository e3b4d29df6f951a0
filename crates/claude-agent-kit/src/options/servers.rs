//! Options about MCP servers.

use std::path::PathBuf;

use claude_wire::settings::McpDelivery;

use super::Options;
use crate::mcp::{McpServer, ServerKind};

impl Options {
    /// Adds an MCP server: a [`StdioServer`](crate::mcp::StdioServer) or a
    /// [`RemoteServer`](crate::mcp::RemoteServer) that the CLI connects to, JSON in the format of the
    /// CLI, or an in-process server (`ToolServer`, `RmcpServer`,
    /// [`RawServer`](crate::mcp::RawServer)). Replaces a server of the same name. Servers of the user's
    /// settings remain available. Sent as `mcpServers` in the handshake, or `--mcp-config` to CLIs before
    /// 2.1.326. Default: none.
    ///
    /// In the CLI, the tool `add` of the server `calc` has the name `mcp__calc__add`. Use this name in
    /// [`allowed_tools`](Self::allowed_tools) to run the tool without permission, or `mcp__calc` for all
    /// tools of the server.
    ///
    /// The name of an in-process server has 1 to 64 letters, digits, `_` and `-`, and the full name of a
    /// tool (`mcp__server__tool`) has at most 128 characters; otherwise the start fails with
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions). If the name of a server contains `__` or
    /// ends with `_`, the rule that allows the whole server is `mcp__server__*`.
    ///
    /// ```
    /// use claude_agent_kit::mcp::{RemoteServer, StdioServer};
    /// use claude_agent_kit::{Json, Options};
    ///
    /// let config = Json::from_text(r#"{"command": "my-server", "args": ["--stdio"]}"#)?;
    /// let options = Options::new()
    ///     .mcp("mine", config)
    ///     .mcp("yours", StdioServer::new("your-server").args(["--stdio"]))
    ///     .mcp("tracker", RemoteServer::http("https://tracker.example/mcp"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mcp(mut self, name: impl Into<String>, server: impl Into<McpServer>) -> Self {
        let name = name.into();
        self.host.callbacks.servers.remove(&name);
        self.settings.mcp_servers.remove(&name);
        match server.into().0 {
            ServerKind::External(config) => {
                self = self.add_settings("mcp", |settings| settings.mcp_servers.set(name, config));
            }
            ServerKind::InProcess(server) => self.host.callbacks.servers.add(name, server),
        }
        self.change(|host| host.needs.servers = host.callbacks.servers.names())
    }

    /// Sets how the servers of [`mcp`](Self::mcp) are passed to the CLI. Command lines are visible to all
    /// users of the machine, with the environment variables and headers of servers; the handshake is not.
    /// Print mode does not support it. Sent as `mcpServers` in the handshake, or `--mcp-config`. Default:
    /// in the handshake if the CLI supports that (2.1.326 and newer), otherwise on the command line.
    ///
    /// The version is unknown with [`VersionCheck::Skip`](crate::VersionCheck::Skip), and with a
    /// [`transport`](Self::transport) that does not report it. Then the default is the handshake if a
    /// server is external, and the command line if all of them are in this process: their names are not
    /// secret.
    ///
    /// If the CLI does not confirm the servers in the handshake, the start fails with
    /// [`InitializeRejected`](crate::ErrorKind::InitializeRejected), so that no server is lost silently.
    pub fn mcp_delivery(self, delivery: McpDelivery) -> Self {
        self.change_settings("mcp_delivery", |settings| settings.mcp_delivery = delivery)
    }

    /// Sets files that configure further MCP servers, in the format of the CLI. Replaces earlier files,
    /// but not the servers of [`mcp`](Self::mcp). A server of [`mcp`](Self::mcp) in the handshake must not
    /// have the name of a server in a file. Sent as `--mcp-config`. Default: none.
    pub fn mcp_config_files(self, files: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.change_settings("mcp_config_files", |settings| {
            settings.mcp_config_files = files.into_iter().map(Into::into).collect();
        })
    }

    /// Sets whether only the MCP servers of these options are used, and those of the user's settings
    /// are ignored. Sent as `--strict-mcp-config`. Default: false.
    pub fn mcp_strict(self, strict: bool) -> Self {
        self.change_settings("mcp_strict", |settings| settings.strict_mcp_config = strict)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::{RawServer, StdioServer};

    #[test]
    fn a_name_is_one_server_and_the_last_one_counts() {
        let inside = || RawServer::new(|message, _| async { Ok(message) });
        let names = |options: &Options| {
            let outside = options.settings.mcp_servers.iter().map(|(name, _)| name.to_owned());
            (outside.collect::<Vec<_>>(), options.host.needs.servers.clone())
        };
        let options = Options::new().mcp("a", json!({})).mcp("b", inside());
        assert_eq!(names(&options), (vec!["a".to_owned()], vec!["b".to_owned()]));
        let options = options.mcp("a", inside()).mcp("b", StdioServer::new("s"));
        assert_eq!(names(&options), (vec!["b".to_owned()], vec!["a".to_owned()]));
        let again = options.mcp("a", inside()).mcp("b", json!({"command": "other"}));
        assert_eq!(names(&again), (vec!["b".to_owned()], vec!["a".to_owned()]));
        let config = again.settings.mcp_servers.iter().next().unwrap().1;
        assert_eq!(config.text(), r#"{"command":"other"}"#);
    }

    #[test]
    fn printing_a_server_shows_no_configuration() {
        let servers: [McpServer; 2] = [
            json!({"headers": {"a": "s3cr3t"}}).into(),
            StdioServer::new("x").env("K", "s3cr3t").into(),
        ];
        assert!(!format!("{servers:?}").contains("s3cr3t"), "{servers:?}");
    }
}
