//! The MCP methods of a tool server.

use std::sync::Arc;
use std::time::Duration;

use claude_wire::id::ToolUseId;
use claude_wire::{Extra, Json};

use super::{ToolContext, ToolServer, Tools, handle};
use crate::list;
use crate::mcp::{
    Connection, INVALID_PARAMS, Incoming, Kind, METHOD_NOT_FOUND, McpClient, McpContext, Reply,
    Server, Serving,
};

/// The supported versions of MCP, which do not differ in the methods for tools.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

impl Server for ToolServer {
    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn tools(&self) -> Vec<String> {
        self.with_tools(|tools| list::map(tools, &|tool| tool.name.clone()))
    }

    fn problems(&self) -> Vec<String> {
        self.with_tools(handle::problems)
    }

    fn connect(&self, client: &McpClient) -> Arc<dyn Connection> {
        let client = Arc::new(client.clone());
        if let Tools::Shared(shared) = &self.tools {
            shared.subscribe(&client);
        }
        Arc::new(ToolConnection { server: self.clone(), client })
    }
}

/// A server of one session. It keeps the client subscribed to changes until the session ends.
struct ToolConnection {
    server: ToolServer,
    client: Arc<McpClient>,
}

impl Connection for ToolConnection {
    fn serve(&self, message: Incoming, context: McpContext) -> Serving {
        let Kind::Request { method, params, .. } = message.kind else {
            return reply_with(Reply::Nothing);
        };
        match method.as_str() {
            "initialize" => {
                reply_with(Reply::Result(self.server.initialize(self.client.server(), &params)))
            }
            "ping" => reply_with(Reply::Result(Json::from(&Extra::default()))),
            "tools/list" => reply_with(Reply::Result(self.server.list())),
            "tools/call" => self.server.call(&params, context),
            _ => reply_with(Reply::error(METHOD_NOT_FOUND, format!("Unknown method: {method}"))),
        }
    }
}

impl ToolServer {
    fn initialize(&self, name: &str, params: &Json) -> Json {
        let params: Extra = params.deserialize().unwrap_or_default();
        let requested = text(&params, "protocolVersion");
        let version = requested.filter(|version| VERSIONS.contains(&version.as_str()));
        let mut info = Extra::default();
        info.set("name", name);
        info.set("version", self.version.as_str());
        let mut capabilities = Extra::default();
        let mut tools = Extra::default();
        if matches!(self.tools, Tools::Shared(_)) {
            tools.set("listChanged", Json::from_serialize(&true).unwrap_or_default());
        }
        capabilities.set("tools", &tools);
        let mut result = Extra::default();
        result.set("protocolVersion", version.as_deref().unwrap_or(VERSIONS[0]));
        result.set("capabilities", &capabilities);
        result.set("serverInfo", &info);
        if let Some(instructions) = &self.instructions {
            result.set("instructions", instructions.as_str());
        }
        Json::from(&result)
    }

    fn list(&self) -> Json {
        let tools = self.with_tools(|tools| list::map(tools, &super::Tool::definition));
        let mut list = Extra::default();
        list.set("tools", Json::from_serialize(&tools).unwrap_or_default());
        Json::from(&list)
    }

    fn call(&self, params: &Json, context: McpContext) -> Serving {
        let params: Extra = params.deserialize().unwrap_or_default();
        let name = text(&params, "name").unwrap_or_default();
        let found = self.with_tools(|tools| tools.iter().find(|tool| tool.name == name).cloned());
        let Some(tool) = found else {
            return reply_with(Reply::error(INVALID_PARAMS, format!("Unknown tool: {name}")));
        };
        let meta: Extra =
            params.get("_meta").and_then(|meta| meta.deserialize().ok()).unwrap_or_default();
        let McpContext { session_id, cancel, client } = context;
        let context = ToolContext {
            session_id,
            tool_use_id: text(&meta, "claudecode/toolUseId").map(ToolUseId::from),
            cancel,
            client,
            progress_token: meta.get("progressToken").cloned(),
        };
        let none = || Json::from(&Extra::default());
        let arguments = params.get("arguments").cloned().unwrap_or_else(none);
        Box::pin(async move { Ok(Reply::Result(tool.call(arguments, context).await.encode())) })
    }
}

fn reply_with(reply: Reply) -> Serving {
    Box::pin(async move { Ok(reply) })
}

fn text(fields: &Extra, name: &str) -> Option<String> {
    fields.get(name)?.deserialize().ok()
}
