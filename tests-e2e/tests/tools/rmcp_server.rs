//! Servers that are written with the official Rust MCP SDK.

use std::time::Duration;

use claude_agent_kit::Options;
use claude_agent_kit::mcp::RmcpServer;
use claude_agent_kit::schemars::{self, JsonSchema};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ListPromptsResult,
    ListResourcesResult, PaginatedRequestParams, PingRequest, Prompt, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities,
    ServerConfig, ServerNotification, ServerRequest, ToolListChangedNotification,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{Json, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde_json::{Value, json};

use crate::bridge::{call, read_response, send_mcp};
use crate::calc::{Pair, Sum, call_script, results, texts};
use crate::calls::Dropped;
use crate::fake_cli::{FakeCli, connect};
use crate::helpers::{Notes, on_both, one_turn};
use crate::support::{on_all, record_warnings, run, until};

const NOTE: &str = "note://one";

#[derive(Clone)]
struct Handler {
    tool_router: ToolRouter<Self>,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Nothing {}

#[tool_router]
impl Handler {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Adds")]
    async fn sum(&self, pair: Parameters<Pair>) -> Json<Sum> {
        Json(Sum { sum: pair.0.a + pair.0.b })
    }

    #[tool(description = "Fails")]
    async fn fail(&self, _: Parameters<Nothing>) -> Result<String, String> {
        Err("not today".to_owned())
    }

    #[tool(description = "Panics")]
    async fn panic(&self, _: Parameters<Nothing>) -> String {
        panic!("on purpose")
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(NOTE, "A note")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != NOTE {
            return Err(ErrorData::resource_not_found("Note not found", None));
        }
        Ok(ReadResourceResult::new(vec![ResourceContents::text("Buy milk.", NOTE)]).into())
    }
}

#[test]
fn rmcp_macro_tools_return_structured_content_failures_and_panics() {
    let script = || {
        call_script(&[
            ("mcp__calc__sum", json!({"a": 4, "b": 5})),
            ("mcp__calc__sum", json!({"a": 4})),
            ("mcp__calc__fail", json!({})),
            ("mcp__calc__panic", json!({})),
        ])
    };
    on_all(script, async |harness| {
        let server = RmcpServer::new(Handler::new);
        let (options, _noted) = record_warnings(harness.options().mcp("calc", server));
        one_turn(options.allowed_tools(["mcp__calc"])).await;
        let texts = texts(&harness);
        for (text, expected) in
            texts.iter().zip([r#"{"sum":9}"#, "missing field `b`", "not today", "panicked"])
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let errors: Vec<bool> =
            results(&harness).iter().map(|result| result["is_error"] == true).collect();
        assert_eq!(errors, [false, true, true, true]);
    });
}

#[test]
fn model_can_list_and_read_resources() {
    let script = || {
        call_script(&[
            ("ListMcpResourcesTool", json!({"server": "calc"})),
            ("ReadMcpResourceTool", json!({"server": "calc", "uri": NOTE})),
            ("ReadMcpResourceTool", json!({"server": "calc", "uri": "note://two"})),
        ])
    };
    on_both(script, async |harness| {
        let server = RmcpServer::new(Handler::new);
        let tools = ["ListMcpResourcesTool", "ReadMcpResourceTool"];
        one_turn(harness.options().mcp("calc", server).allowed_tools(tools)).await;
        // The real CLI reads them concurrently, in any order.
        let texts = texts(&harness);
        for expected in ["A note", "Buy milk.", "not found"] {
            assert!(texts.iter().any(|text| text.contains(expected)), "{texts:?}");
        }
    });
}

/// A server that sends messages to the CLI while it is called, or never returns.
struct TalkingServer(Notes<&'static str>);

impl ServerHandler for TalkingServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().build();
        ServerConfig::new(capabilities)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("greet", Some("Greets"), None)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "wait" {
            let _dropped = Dropped(self.0.clone());
            std::future::pending::<()>().await;
        }
        let internal = |error: ServiceError| ErrorData::internal_error(error.to_string(), None);
        let changed = ToolListChangedNotification::default();
        let changed = ServerNotification::ToolListChangedNotification(changed);
        context.peer.send_notification(changed).await.map_err(internal)?;
        self.0.add("notified");
        let ping = ServerRequest::PingRequest(PingRequest::default());
        context.peer.send_request(ping).await.map_err(internal)?;
        self.0.add("answered");
        Ok(CallToolResult::success(Vec::new()).into())
    }
}

/// Starts a session and completes the MCP handshake with its server.
async fn connect_server(server: RmcpServer) -> (claude_agent_kit::Session, FakeCli) {
    let (session, mut cli) = connect(Options::new().mcp("calc", server)).await;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    send_mcp(&mut cli, "hello", "calc", hello).await;
    let (_, greeting) = read_response(&mut cli).await;
    assert!(greeting["result"].is_object(), "{greeting}");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send_mcp(&mut cli, "note", "calc", note).await;
    assert_eq!(read_response(&mut cli).await.0, "note");
    (session, cli)
}

/// Returns the next message of the server and acknowledges it.
async fn server_message(cli: &mut FakeCli) -> Value {
    let request = cli.expect_request("mcp_message").await;
    assert_eq!(request["request"]["server_name"], "calc");
    cli.respond(&request, json!({})).await;
    request["request"]["message"].clone()
}

#[test]
fn rmcp_handler_can_notify_ping_and_list_prompts() {
    run(async {
        let notes = Notes::new();
        let noted = notes.clone();
        let server = RmcpServer::new(move || TalkingServer(noted.clone()));
        let (_session, mut cli) = connect_server(server).await;
        let list = json!({"jsonrpc": "2.0", "id": "p", "method": "prompts/list"});
        send_mcp(&mut cli, "list", "calc", list).await;
        let (_, list) = read_response(&mut cli).await;
        assert_eq!(list["result"]["prompts"][0]["name"], "greet", "{list}");
        send_mcp(&mut cli, "call", "calc", call(1, "talk", json!({}))).await;
        assert_eq!(server_message(&mut cli).await["method"], "notifications/tools/list_changed");
        let ping = server_message(&mut cli).await;
        assert_eq!(ping["method"], "ping");
        assert_eq!(notes.all(), ["notified"]);
        let pong = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
        send_mcp(&mut cli, "pong", "calc", pong).await;
        // The response to the ping is acknowledged and the call completes, in any order.
        let mut answers = [read_response(&mut cli).await, read_response(&mut cli).await];
        answers.sort_by(|one, other| one.0.cmp(&other.0));
        let [(call, answered), (pong, _)] = answers;
        assert_eq!([call, pong], ["call", "pong"]);
        assert_eq!((&answered["id"], &answered["result"]["isError"]), (&json!(1), &json!(false)));
        assert_eq!(notes.all(), ["notified", "answered"]);
    });
}

#[test]
fn rmcp_handler_that_exceeds_its_timeout_is_dropped() {
    run(async {
        let notes = Notes::new();
        let noted = notes.clone();
        let server = RmcpServer::new(move || TalkingServer(noted.clone()));
        let server = server.timeout(Duration::from_secs(5));
        let (_session, mut cli) = connect_server(server).await;
        send_mcp(&mut cli, "call", "calc", call(1, "wait", json!({}))).await;
        let (_, late) = read_response(&mut cli).await;
        assert_eq!((&late["id"], &late["error"]["code"]), (&json!(1), &json!(-32603)), "{late}");
        until("the call is dropped", || notes.all() == ["dropped"]).await;
    });
}
