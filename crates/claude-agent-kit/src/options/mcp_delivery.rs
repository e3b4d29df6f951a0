//! Chooses how MCP servers are passed to the CLI.

use std::collections::BTreeSet;

use claude_wire::Json;
use claude_wire::launch::Problem;
use claude_wire::settings::McpDelivery;

use super::prepare::invalid;
use super::{Options, read_settings};
use crate::cli::CliVersion;
use crate::error::Result;

/// The first CLI that takes MCP servers in the handshake.
pub(crate) const MCP_IN_HANDSHAKE: CliVersion = CliVersion::new(2, 1, 326);

/// Chooses how the MCP servers of a session are passed to a CLI of this version.
///
/// If the version is unknown, external servers are sent in the handshake, because their environment and
/// headers may be secret, and the start fails if the CLI does not confirm them. The names of in-process
/// servers are not secret, and every CLI accepts them as arguments.
///
/// # Errors
/// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) when a configuration file would replace a server.
pub(crate) fn mcp_delivery(options: &Options, version: Option<CliVersion>) -> Result<McpDelivery> {
    let delivery = match (options.settings.mcp_delivery, version) {
        (McpDelivery::Automatic, Some(version)) if version < MCP_IN_HANDSHAKE => {
            McpDelivery::Arguments
        }
        (McpDelivery::Automatic, None) if options.settings.mcp_servers.is_empty() => {
            McpDelivery::Arguments
        }
        (McpDelivery::Automatic, _) => McpDelivery::Handshake,
        (chosen, _) => chosen,
    };
    if delivery == McpDelivery::Handshake && !options.host.print_mode {
        let problems = replaced_servers(options);
        if !problems.is_empty() {
            return Err(invalid(options, problems));
        }
    }
    Ok(delivery)
}

/// Returns the servers that a server of the same name in a configuration file would replace: the CLI
/// prefers a file to the handshake, but the last argument to earlier ones.
fn replaced_servers(options: &Options) -> Vec<Problem> {
    let settings = &options.settings;
    if options.host.transport.as_ref().is_some_and(|transport| !transport.is_local()) {
        return Vec::new();
    }
    let external = settings.mcp_servers.iter().map(|(name, _)| name);
    let in_process = options.host.needs.servers.iter().map(String::as_str);
    let names: BTreeSet<&str> = external.chain(in_process).collect();
    let mut problems = Vec::new();
    // Files are not read if nothing can be replaced.
    let files = if names.is_empty() { &[] } else { settings.mcp_config_files.as_slice() };
    for file in files {
        // The CLI resolves the path from its working directory.
        let path = settings.cwd.as_ref().map_or_else(|| file.clone(), |cwd| cwd.join(file));
        // The CLI reports a file that cannot be read.
        let Ok(config) = read_settings(&path) else { continue };
        for name in server_names(&config).iter().filter(|name| names.contains(name.as_str())) {
            let reason = format!(
                "`{}` also contains the server {name:?}, which the CLI would use instead; help: rename \
                 one of them",
                path.display()
            );
            problems.push(Problem::new(&["mcp", "mcp_config_files"], reason));
        }
    }
    problems
}

fn server_names(config: &Json) -> Vec<String> {
    let config: serde_json::Value = config.deserialize().unwrap_or_default();
    let servers = config["mcpServers"].as_object();
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ErrorKind;
    use crate::mcp::{RawServer, StdioServer};

    fn external() -> Options {
        Options::new().mcp("ext", StdioServer::new("server"))
    }

    fn in_process() -> Options {
        Options::new().mcp("own", RawServer::new(|message, _| async { Ok(message) }))
    }

    fn chosen(options: &Options, version: Option<CliVersion>) -> McpDelivery {
        mcp_delivery(options, version).unwrap()
    }

    #[test]
    fn the_version_of_the_cli_decides() {
        let before = Some(CliVersion::new(2, 1, 325));
        for options in [external(), in_process()] {
            assert_eq!(chosen(&options, before), McpDelivery::Arguments);
            assert_eq!(chosen(&options, Some(MCP_IN_HANDSHAKE)), McpDelivery::Handshake);
            let later = Some(CliVersion::new(2, 2, 0));
            assert_eq!(chosen(&options, later), McpDelivery::Handshake);
        }
    }

    #[test]
    fn a_cli_of_unknown_version_gets_possible_secrets_in_the_handshake() {
        assert_eq!(chosen(&external(), None), McpDelivery::Handshake);
        assert_eq!(chosen(&in_process(), None), McpDelivery::Arguments);
    }

    #[test]
    fn the_option_takes_precedence_over_the_version() {
        for version in [None, Some(CliVersion::new(2, 1, 325)), Some(MCP_IN_HANDSHAKE)] {
            for delivery in [McpDelivery::Arguments, McpDelivery::Handshake] {
                let options = external().mcp_delivery(delivery);
                assert_eq!(chosen(&options, version), delivery);
            }
        }
    }

    #[test]
    fn a_file_cannot_replace_a_server_unnoticed() {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"mcpServers": {"own": {"command": "c"}, "more": {"command": "c"}}});
        std::fs::write(folder.path().join("servers.json"), config.to_string()).unwrap();
        let with_file = |options: Options| {
            options.cwd(folder.path()).mcp_config_files(["missing.json", "servers.json"])
        };
        let newest = Some(MCP_IN_HANDSHAKE);
        assert_eq!(chosen(&with_file(external()), newest), McpDelivery::Handshake);
        let error = mcp_delivery(&with_file(in_process()), newest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        assert!(
            error.to_string().contains("servers.json` also contains the server \"own\""),
            "{error}"
        );
        // On the command line, the server of the options is the last one and takes precedence.
        let older = Some(CliVersion::new(2, 1, 325));
        assert_eq!(chosen(&with_file(in_process()), older), McpDelivery::Arguments);
    }
}
