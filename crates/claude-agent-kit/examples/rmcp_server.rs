//! An in-process MCP server written with the official Rust MCP SDK, with tools defined by its macros and
//! a resource.

#![allow(clippy::print_stdout, reason = "an example prints")]

use claude_agent_kit::mcp::RmcpServer;
use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{Session, json};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    ErrorData, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{Json, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};

const LOG: &str = "weather://log";

/// Where and when. The model reads these comments.
#[derive(Deserialize, JsonSchema)]
struct Place {
    /// The city.
    city: String,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    degrees: i32,
    sky: String,
}

#[derive(Clone)]
struct Station {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Station {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Tells the weather of a city", annotations(read_only_hint = true))]
    async fn weather(&self, place: Parameters<Place>) -> Result<Json<Weather>, String> {
        match place.0.city.as_str() {
            "Oslo" => Ok(Json(Weather { degrees: -3, sky: "clear".to_owned() })),
            city => Err(format!("There is no station in {city}.")),
        }
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Station {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities).with_instructions("Weather of cities with a station.")
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(LOG, "The station's log")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != LOG {
            return Err(ErrorData::resource_not_found("there is no such log", None));
        }
        let text = ResourceContents::text("Snow since Tuesday.", LOG);
        Ok(ReadResourceResult::new(vec![text]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    // A function, because each session needs its own server.
    let server = RmcpServer::new(Station::new);
    let options = demo_options(script())
        .cwd(folder)
        .mcp("weather", server)
        .allowed_tools(["mcp__weather", "ReadMcpResourceTool"]);
    let session = Session::start(options).await?;
    let outcome = session.send("What is the weather in Oslo?").await?.finish().await?;
    println!("answer: {}", outcome.text);
    session.stop().await?;
    Ok(())
}

fn script() -> Script {
    let log = json!({"server": "weather", "uri": LOG});
    Script::new().when(
        "What is",
        [
            Reply::tool("mcp__weather__weather", json!({"city": "Oslo"}))
                .and_tool("ReadMcpResourceTool", log),
            Reply::text("It is -3 degrees and clear; it has snowed since Tuesday."),
        ],
    )
}
