//! External MCP servers.

use std::time::Duration;

use claude_agent_kit::mcp::{McpServers, RemoteServer, StdioServer, ToolPolicy};
use claude_agent_kit::{Options, Session};
use claude_agent_testkit::mock_api::Script;
use claude_wire::control::{HostRequest, McpSetServers, McpSetServersResponse};
use serde_json::{Value, json};
use tests_e2e::external_mcp::{HttpServer, MARK};
use tests_e2e::harness::Harness;

use crate::calc::{calc, call_script, results, texts, with_server};
use crate::helpers::{on_both, start, turn};
use crate::support::{LIMIT, hello, in_time, real, run};

/// The path of the MCP server of these tests.
pub(crate) const MCP_SERVER: &str = env!("CARGO_BIN_EXE_external_mcp");

fn echo_script() -> Script {
    call_script(&[("mcp__out__echo", json!({"text": "hello"}))])
}

/// Runs a test on the real CLI; the simulated CLI does not support servers over HTTP and loads all
/// tools.
fn on_real<F: Future<Output = ()>>(script: Script, play: impl FnOnce(Harness) -> F) {
    run(async { play(Harness::real(script, real()).await.unwrap()).await });
}

/// Runs a turn when the server is connected, and returns the text of the tool result.
async fn run_echo(harness: &Harness, options: Options) -> String {
    let session = start(options.allowed_tools(["mcp__out"])).await;
    let servers = in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
    let info = servers[0].server_info.as_ref().unwrap();
    assert!(info.text().contains("outside"), "{info}");
    turn(&session, "echo").await;
    session.stop().await.unwrap();
    texts(harness).join(" ")
}

#[test]
fn stdio_server_is_started_with_its_variables_and_called() {
    on_both(echo_script, async |harness| {
        let server = StdioServer::new(MCP_SERVER).args(["--ignored"]).env(MARK, "stdio");
        let options = harness.options().mcp("out", server);
        assert_eq!(run_echo(&harness, options).await, "stdio: hello");
    });
}

#[test]
fn http_servers_are_called_with_their_headers() {
    on_real(echo_script(), async |harness| {
        let server = HttpServer::start().await.unwrap();
        let http = RemoteServer::http(server.http()).header(MARK, "http");
        assert_eq!(run_echo(&harness, harness.options().mcp("out", http)).await, "http: hello");
        // The value of a variable is never on the command line.
        let sse = RemoteServer::sse(server.sse()).header(MARK, "${SECRET}");
        let options = harness.options().env("SECRET", "sse").mcp("out", sse);
        assert!(run_echo(&harness, options).await.ends_with("sse: hello"));
    });
}

#[test]
fn external_server_call_is_ended_by_its_timeout() {
    on_real(call_script(&[("mcp__out__wait", json!({}))]), async |harness| {
        // Without the timeout the turn would never end.
        let server = StdioServer::new(MCP_SERVER).timeout(Duration::from_millis(1_200));
        let text = run_echo(&harness, harness.options().mcp("out", server)).await;
        assert_eq!(results(&harness)[0]["is_error"], true);
        assert!(text.contains("timed out"), "{text}");
    });
}

/// Returns the first request to the model, with tool search enabled.
async fn first_request(always_load: bool) -> Value {
    let harness = Harness::real(hello(), real()).await.unwrap();
    let server = StdioServer::new(MCP_SERVER).always_load(always_load);
    let options = harness.options().env("ENABLE_TOOL_SEARCH", "true").mcp("out", server);
    run_echo(&harness, options).await;
    let requests = harness.api().requests();
    let tools = requests[0].body["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == "mcp__out__echo").cloned().unwrap_or_default()
}

#[test]
fn always_loaded_server_is_offered_without_tool_search() {
    run(async {
        let (searched, loaded) = (first_request(false).await, first_request(true).await);
        assert!(searched.is_null(), "{searched}");
        assert!(loaded["input_schema"].is_object(), "{loaded}");
    });
}

#[test]
fn denied_tool_is_not_offered() {
    on_real(hello(), async |harness| {
        let server = HttpServer::start().await.unwrap();
        let http = RemoteServer::http(server.http())
            .always_load(true)
            .tool_policy("echo", ToolPolicy::AlwaysDeny);
        let session = start(harness.options()).await;
        let servers = McpServers::new().with("out", http);
        in_time(session.mcp().set_servers(servers)).await.unwrap();
        in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
        turn(&session, "hello").await;
        let offered = harness.api().requests()[0].tool_names();
        assert!(offered.contains(&"mcp__out__wait".to_owned()), "{offered:?}");
        assert!(!offered.contains(&"mcp__out__echo".to_owned()), "{offered:?}");
        session.stop().await.unwrap();
    });
}

#[test]
fn servers_can_be_set_in_a_running_session() {
    on_both(echo_script, async |harness| {
        let session = start(harness.options().allowed_tools(["mcp__out"])).await;
        let server = StdioServer::new(MCP_SERVER).env(MARK, "set");
        let servers = McpServers::new().with("out", server);
        let response = in_time(session.mcp().set_servers(servers)).await.unwrap();
        assert_eq!(response.added.as_slice(), ["out"]);
        in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
        turn(&session, "echo").await;
        assert_eq!(texts(&harness), ["set: hello"]);
        let response = in_time(session.mcp().set_servers(json!({}))).await.unwrap();
        assert_eq!(response.removed.as_slice(), ["out"]);
        assert!(names(&session).await.is_empty());
        session.stop().await.unwrap();
    });
}

#[test]
fn setting_servers_keeps_those_of_the_options() {
    let adding = || call_script(&[("mcp__calc__add", json!({"a": 2, "b": 3}))]);
    on_both(adding, async |harness| {
        let options = with_server(&harness, calc()).mcp("out", StdioServer::new(MCP_SERVER));
        let session = start(options).await;
        in_time(session.mcp().wait(LIMIT)).await.unwrap();
        let more = || McpServers::new().with("more", StdioServer::new(MCP_SERVER));
        for (servers, added, removed, left) in [
            (more(), vec!["more"], vec![], vec!["calc", "more", "out"]),
            (more(), vec![], vec![], vec!["calc", "more", "out"]),
            (McpServers::new(), vec![], vec!["more"], vec!["calc", "out"]),
        ] {
            let response = in_time(session.mcp().set_servers(servers)).await.unwrap();
            assert_eq!(response.added.as_slice(), added);
            assert_eq!(response.removed.as_slice(), removed);
            let mut names = names(&session).await;
            names.sort();
            assert_eq!(names, left);
        }
        turn(&session, "add").await;
        assert_eq!(texts(&harness), ["5"]);
        session.stop().await.unwrap();
    });
}

/// Sets servers without those that the SDK adds.
async fn set_exactly(session: &Session, servers: Value) -> McpSetServersResponse {
    let request = HostRequest::from(McpSetServers::new(servers));
    in_time(session.request(request)).await.unwrap().unwrap().deserialize().unwrap()
}

/// The behavior of the CLI from which the SDK protects in-process servers.
#[test]
fn cli_replaces_all_servers_except_external_ones_of_the_options() {
    on_both(hello, async |harness| {
        let outside = || json!({"type": "stdio", "command": MCP_SERVER, "args": []});
        let options = with_server(&harness, calc()).mcp("out", StdioServer::new(MCP_SERVER));
        let session = start(options).await;
        in_time(session.mcp().wait(LIMIT)).await.unwrap();
        for (servers, added, removed) in [
            (json!({}), vec![], vec!["calc"]),
            (json!({"calc": {"type": "sdk", "name": "calc"}}), vec!["calc"], vec![]),
            (json!({"calc": outside()}), vec!["calc"], vec!["calc"]),
            // From here on, the server of the options counts as one that was set.
            (json!({"out": outside()}), vec!["out"], vec!["calc"]),
            (json!({}), vec![], vec!["out"]),
        ] {
            let response = set_exactly(&session, servers).await;
            assert_eq!(response.added.as_slice(), added);
            assert_eq!(response.removed.as_slice(), removed);
        }
        assert!(names(&session).await.is_empty());
        session.stop().await.unwrap();
    });
}

async fn names(session: &Session) -> Vec<String> {
    let servers = in_time(session.mcp().status()).await.unwrap().mcp_servers;
    servers.into_iter().filter_map(|server| server.name).collect()
}

#[test]
fn strict_mcp_config_keeps_only_its_own_servers() {
    on_real(hello(), async |harness| {
        let theirs = json!({"mcpServers": {"theirs": {"command": MCP_SERVER}}});
        std::fs::write(harness.project().join(".mcp.json"), theirs.to_string()).unwrap();
        let settings = json!({"enableAllProjectMcpServers": true});
        let options = harness.options().settings(settings);
        let options = options.mcp("ours", StdioServer::new(MCP_SERVER));
        let session = start(options.clone()).await;
        in_time(session.mcp().wait_for(["ours", "theirs"], LIMIT)).await.unwrap();
        session.stop().await.unwrap();
        let session = start(options.mcp_strict(true)).await;
        in_time(session.mcp().wait_for(["ours"], LIMIT)).await.unwrap();
        assert_eq!(names(&session).await, ["ours"]);
        session.stop().await.unwrap();
    });
}
