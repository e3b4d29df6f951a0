//! Responses of a scenario to the requests of the CLI.

use serde_json::{Value, json};

/// The response to a control request.
#[derive(Debug, Clone)]
pub(super) enum Response {
    /// Success, with this payload.
    Success(Value),
    /// An error, with this message.
    Error(String),
    /// No response.
    Ignore,
}

/// Chooses the response, from the `request` object of a control request.
pub(super) type Handler = Box<dyn FnMut(&Value) -> Response + Send>;

/// Responds with an empty hook output, allows every tool, and serves the server `calc`.
pub(super) fn default_response(request: &Value) -> Response {
    match request["subtype"].as_str().unwrap_or_default() {
        "hook_callback" => Response::Success(json!({})),
        "can_use_tool" => {
            Response::Success(json!({"behavior": "allow", "updatedInput": request["input"]}))
        }
        "mcp_message" => calc(&request["message"]),
        other => Response::Error(format!("Unsupported control request subtype: {other}")),
    }
}

/// An in-process MCP server with the tools `add`, `look` (read-only) and `fail`.
pub(super) fn calc(message: &Value) -> Response {
    let id = &message["id"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": false}},
            "serverInfo": {"name": "calc", "version": "1.0.0"},
        }),
        "tools/list" => json!({"tools": tools()}),
        "tools/call" => call(&message["params"]),
        // A notification, or the CLI's reply to the server: the control request needs a response anyway.
        _ if id.is_null() || message["method"].is_null() => {
            return Response::Success(json!({"mcp_response": {"jsonrpc": "2.0", "result": {}}}));
        }
        other => {
            let error = json!({"code": -32601, "message": format!("Method not found: {other}")});
            let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return Response::Success(json!({"mcp_response": response}));
        }
    };
    Response::Success(json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}))
}

fn tools() -> Value {
    let numbers = json!({
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    });
    json!([
        {"name": "add", "description": "Adds two numbers", "inputSchema": numbers},
        {"name": "look", "description": "Looks at two numbers", "inputSchema": numbers,
         "annotations": {"readOnlyHint": true}},
        {"name": "fail", "description": "Fails", "inputSchema": {"type": "object", "properties": {}}},
    ])
}

fn call(params: &Value) -> Value {
    let arguments = &params["arguments"];
    if params["name"] == "fail" {
        return json!({"content": [{"type": "text", "text": "it failed"}], "isError": true});
    }
    let sum = arguments["a"].as_f64().unwrap_or(0.0) + arguments["b"].as_f64().unwrap_or(0.0);
    json!({"content": [{"type": "text", "text": sum.to_string()}], "isError": false})
}
