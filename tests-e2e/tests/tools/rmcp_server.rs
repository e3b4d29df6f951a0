//! Servers that were written with the official Rust MCP SDK, in its own words.

use claude_agent_kit::mcp::RmcpServer;
use claude_agent_kit::schemars::{self, JsonSchema};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    ErrorData, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{Json, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde_json::json;

use crate::calc::{Pair, Sum, calling, results, texts};
use crate::play::{on_both, one_turn};
use crate::support::{noting, on_all};

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
fn tools_made_by_macros_are_called_with_structured_content_failures_and_panics() {
    let script = || {
        calling(&[
            ("mcp__calc__sum", json!({"a": 4, "b": 5})),
            ("mcp__calc__sum", json!({"a": 4})),
            ("mcp__calc__fail", json!({})),
            ("mcp__calc__panic", json!({})),
        ])
    };
    on_all(script, async |stage| {
        let server = RmcpServer::new("calc", Handler::new);
        let (options, _noted) = noting(stage.options().rmcp_server(server));
        one_turn(options.allowed_tools(["mcp__calc"])).await;
        let texts = texts(&stage);
        for (text, expected) in
            texts.iter().zip([r#"{"sum":9}"#, "missing field `b`", "not today", "panicked"])
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let errors: Vec<bool> =
            results(&stage).iter().map(|result| result["is_error"] == true).collect();
        assert_eq!(errors, [false, true, true, true]);
    });
}

#[test]
fn resources_are_listed_and_read_by_the_model() {
    let script = || {
        calling(&[
            ("ListMcpResourcesTool", json!({"server": "calc"})),
            ("ReadMcpResourceTool", json!({"server": "calc", "uri": NOTE})),
            ("ReadMcpResourceTool", json!({"server": "calc", "uri": "note://two"})),
        ])
    };
    on_both(script, async |stage| {
        let server = RmcpServer::new("calc", Handler::new);
        let tools = ["ListMcpResourcesTool", "ReadMcpResourceTool"];
        one_turn(stage.options().rmcp_server(server).allowed_tools(tools)).await;
        // The real CLI reads them at the same time, so they come in any order.
        let texts = texts(&stage);
        for expected in ["A note", "Buy milk.", "not found"] {
            assert!(texts.iter().any(|text| text.contains(expected)), "{texts:?}");
        }
    });
}
