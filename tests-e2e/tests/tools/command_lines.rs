//! What other users of the machine can read about MCP servers: the command lines of the CLI and of all
//! processes that it starts.

use std::collections::BTreeSet;

use claude_agent_kit::mcp::{RemoteServer, StdioServer};
use claude_agent_kit::settings::McpDelivery;
use claude_agent_kit::{ErrorKind, Options, Session};
use claude_agent_testkit::mock_api::Script;
use serde_json::json;
use tests_e2e::external_mcp::MARK;
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::CommandLineWatch;

use crate::calc::{calc, call_script, texts};
use crate::external_servers::MCP_SERVER;
use crate::helpers::{start, turn};
use crate::support::{LIMIT, SIM, in_time, real, run};

/// Values of MCP servers that no other process contains.
struct Secrets {
    variable: String,
    header: String,
    query: String,
    argument: String,
}

impl Secrets {
    fn new(test: &str) -> Self {
        let secret = |place: &str| format!("{test}-{place}-{}", std::process::id());
        Self {
            variable: secret("variable"),
            header: secret("header"),
            query: secret("query"),
            argument: secret("argument"),
        }
    }

    fn watch(&self) -> CommandLineWatch {
        let all = [&self.variable, &self.header, &self.query, &self.argument];
        CommandLineWatch::start(all.map(Clone::clone))
    }

    fn servers(&self, options: Options) -> Options {
        let local = StdioServer::new(MCP_SERVER)
            .args([format!("--token={}", self.argument)])
            .env(MARK, self.variable.as_str());
        let remote = RemoteServer::http(format!("http://127.0.0.1:1/mcp?key={}", self.query))
            .header("Authorization", format!("Bearer {}", self.header));
        options.mcp("out", local).mcp("remote", remote).mcp("calc", calc())
    }
}

/// A model that calls the external server and runs a command, which is a further process.
fn script() -> Script {
    let command = json!({"command": "sleep 0.2", "description": "Wait"});
    call_script(&[("mcp__out__echo", json!({"text": "hello"})), ("Bash", command)])
}

/// Runs the same test on the simulated CLI as a process and on the real CLI.
fn on_processes<F: Future<Output = ()>>(play: impl Fn(Harness) -> F) {
    run(async {
        play(Harness::sim_process(script(), SIM).await.unwrap()).await;
        play(Harness::real(script(), real()).await.unwrap()).await;
    });
}

/// Runs a turn that calls the external server, and returns the secrets on command lines.
async fn run_turn(
    harness: &Harness,
    options: Options,
    secrets: &Secrets,
) -> BTreeSet<(String, String)> {
    let watch = secrets.watch();
    let options = secrets.servers(options).allowed_tools(["mcp__out", "Bash"]);
    let session = start(options).await;
    in_time(session.mcp().wait_for(["out", "calc"], LIMIT)).await.unwrap();
    turn(&session, "echo").await;
    let found = watch.found();
    session.stop().await.unwrap();
    let results = texts(harness);
    assert!(results[0].contains(&format!("{}: hello", secrets.variable)), "{results:?}");
    found
}

#[test]
fn no_command_line_contains_a_secret_of_a_server() {
    on_processes(async |harness| {
        let secrets = Secrets::new("handshake");
        let found = run_turn(&harness, harness.options(), &secrets).await;
        // The arguments of a server are on its own command line, whoever starts it.
        let own = (secrets.argument.clone(), "external_mcp".to_owned());
        assert_eq!(found, BTreeSet::from([own]));
    });
}

#[test]
fn secrets_are_on_the_command_line_if_servers_are_passed_as_arguments() {
    on_processes(async |harness| {
        let secrets = Secrets::new("arguments");
        let options = harness.options().mcp_delivery(McpDelivery::Arguments);
        let found = run_turn(&harness, options, &secrets).await;
        let program = harness.program().unwrap().file_name().unwrap().to_string_lossy();
        for secret in [&secrets.variable, &secrets.header, &secrets.query, &secrets.argument] {
            assert!(found.contains(&(secret.clone(), program.to_string())), "{secret}: {found:?}");
        }
    });
}

#[test]
fn server_of_a_file_does_not_replace_one_in_the_handshake_unnoticed() {
    on_processes(async |harness| {
        let config = json!({"mcpServers": {"out": {"command": MCP_SERVER, "env": {MARK: "file"}}}});
        std::fs::write(harness.project().join("servers.json"), config.to_string()).unwrap();
        let server = StdioServer::new(MCP_SERVER).env(MARK, "value");
        let options = harness.options().mcp("out", server).allowed_tools(["mcp__out", "Bash"]);
        let options = options.mcp_config_files(["servers.json"]);
        let error = in_time(Session::start(options.clone())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().contains("servers.json"), "{error}");
    });
}
