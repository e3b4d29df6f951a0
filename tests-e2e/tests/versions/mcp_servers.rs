//! How MCP servers are passed to each version.

use claude_agent_kit::mcp::StdioServer;
use claude_agent_kit::settings::McpDelivery;
use claude_agent_kit::{Cli, CliVersion, ErrorKind, Session, VersionCheck};
use serde_json::json;
use tests_e2e::external_mcp::MARK;
use tests_e2e::harness::processes::CommandLineWatch;

use crate::calc::{calc, call_script, texts, with_server};
use crate::helpers::{start, turn};
use crate::support::{LIMIT, hello, in_time};
use crate::{on_each, on_minimum};

const MCP_SERVER: &str = env!("CARGO_BIN_EXE_external_mcp");

/// The first version that takes servers in the handshake.
const IN_HANDSHAKE: CliVersion = CliVersion::new(2, 1, 326);

#[test]
fn servers_are_in_the_handshake_of_every_cli_that_takes_them_there() {
    let script = || call_script(&[("mcp__out__echo", json!({"text": "hello"}))]);
    on_each(script, async |harness| {
        let version = Cli::find(harness.options()).await.unwrap().version();
        let secret = format!("secret-for-{version}-{}", std::process::id());
        let watch = CommandLineWatch::start([secret.clone()]);
        let server = StdioServer::new(MCP_SERVER).env(MARK, secret.as_str());
        let session = start(harness.options().mcp("out", server).allowed_tools(["mcp__out"])).await;
        in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
        turn(&session, "echo").await;
        let found = watch.found();
        session.stop().await.unwrap();
        assert_eq!(texts(&harness), [format!("{secret}: hello")], "{version}");
        assert_eq!(found.is_empty(), version >= IN_HANDSHAKE, "{version}: {found:?}");
    });
}

#[test]
fn servers_that_the_cli_does_not_confirm_fail_the_start() {
    on_minimum(hello(), async |harness| {
        let options = harness.options().mcp("out", StdioServer::new(MCP_SERVER));
        for options in [
            options.clone().mcp_delivery(McpDelivery::Handshake),
            // External servers may contain secrets, and this CLI could be one that takes them.
            options.clone().version_check(VersionCheck::Skip),
        ] {
            let error = in_time(Session::start(options)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InitializeRejected, "{error}");
            assert!(error.to_string().contains("did not confirm the MCP servers"), "{error}");
            assert!(error.help().is_some_and(|help| help.contains("McpDelivery::Arguments")));
        }
        assert!(harness.api().requests().is_empty());
        let unchecked = options.version_check(VersionCheck::Skip);
        let session = start(unchecked.mcp_delivery(McpDelivery::Arguments)).await;
        in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
        session.stop().await.unwrap();
    });
}

#[test]
fn in_process_servers_work_if_the_version_is_unknown() {
    let script = || call_script(&[("mcp__calc__add", json!({"a": 1, "b": 2}))]);
    on_each(script, async |harness| {
        let options = with_server(&harness, calc()).version_check(VersionCheck::Skip);
        let session = start(options).await;
        turn(&session, "add").await;
        session.stop().await.unwrap();
        assert_eq!(texts(&harness), ["3"]);
    });
}
