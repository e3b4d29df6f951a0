//! A tool server at work: the methods of MCP that tools need.

use std::sync::Arc;
use std::time::Duration;

use claude_wire::id::ToolUseId;
use claude_wire::{Extra, Json};

use super::{ToolContext, ToolServer, Tools, changing};
use crate::mcp::{
    Connection, INVALID_PARAMS, Incoming, Kind, METHOD_NOT_FOUND, McpClient, McpContext, Reply,
    Server, Serving,
};

/// The versions of MCP that are spoken. What of them tools need is the same in all.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

impl Server for ToolServer {
    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn tools(&self) -> Vec<String> {
        self.look(|tools| tools.iter().map(|tool| tool.name.clone()).collect())
    }

    fn problems(&self) -> Vec<String> {
        self.look(changing::problems)
    }

    fn connect(&self, client: &McpClient) -> Arc<dyn Connection> {
        let client = Arc::new(client.clone());
        if let Tools::Changing(changing) = &self.tools {
            changing.subscribe(&client);
        }
        Arc::new(Connected { server: self.clone(), client })
    }
}

/// A server of one session. Its client is told of changes for as long as the session lasts.
struct Connected {
    server: ToolServer,
    client: Arc<McpClient>,
}

impl Connection for Connected {
    fn serve(&self, message: Incoming, context: McpContext) -> Serving {
        let Kind::Request { method, params, .. } = message.kind else {
            return said(Reply::Nothing);
        };
        match method.as_str() {
            "initialize" => {
                said(Reply::Result(self.server.greeting(self.client.server(), &params)))
            }
            "ping" => said(Reply::Result(Json::from(&Extra::default()))),
            "tools/list" => said(Reply::Result(self.server.list())),
            "tools/call" => self.server.call(&params, context),
            _ => said(Reply::error(METHOD_NOT_FOUND, format!("there is no method {method}"))),
        }
    }
}

impl ToolServer {
    fn greeting(&self, name: &str, params: &Json) -> Json {
        let params: Extra = params.deserialize().unwrap_or_default();
        let asked = text(&params, "protocolVersion");
        let spoken = asked.filter(|version| VERSIONS.contains(&version.as_str()));
        let mut info = Extra::default();
        info.set("name", name);
        info.set("version", self.version.as_str());
        let mut capabilities = Extra::default();
        let mut tools = Extra::default();
        if matches!(self.tools, Tools::Changing(_)) {
            tools.set("listChanged", Json::from_serialize(&true).unwrap_or_default());
        }
        capabilities.set("tools", &tools);
        let mut greeting = Extra::default();
        greeting.set("protocolVersion", spoken.as_deref().unwrap_or(VERSIONS[0]));
        greeting.set("capabilities", &capabilities);
        greeting.set("serverInfo", &info);
        if let Some(instructions) = &self.instructions {
            greeting.set("instructions", instructions.as_str());
        }
        Json::from(&greeting)
    }

    fn list(&self) -> Json {
        let tools: Vec<Json> = self.look(|tools| tools.iter().map(super::Tool::listed).collect());
        let mut list = Extra::default();
        list.set("tools", Json::from_serialize(&tools).unwrap_or_default());
        Json::from(&list)
    }

    fn call(&self, params: &Json, context: McpContext) -> Serving {
        let params: Extra = params.deserialize().unwrap_or_default();
        let name = text(&params, "name").unwrap_or_default();
        let found = self.look(|tools| tools.iter().find(|tool| tool.name == name).cloned());
        let Some(tool) = found else {
            return said(Reply::error(INVALID_PARAMS, format!("Unknown tool: {name}")));
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

fn said(reply: Reply) -> Serving {
    Box::pin(async move { Ok(reply) })
}

fn text(fields: &Extra, name: &str) -> Option<String> {
    fields.get(name)?.deserialize().ok()
}
