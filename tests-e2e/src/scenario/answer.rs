//! What a scenario answers to the requests of the CLI.

use serde_json::{Value, json};

/// The answer to one control request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Done, with this payload.
    Success(Value),
    /// Not done, for this reason.
    Error(String),
    /// No answer, now or ever.
    Silence,
}

/// Decides what is answered, from the `request` object of a control request.
pub(super) type Handler = Box<dyn FnMut(&Value) -> Answer + Send>;

/// Hooks say nothing, every tool is allowed as it is, and the server `calc` calculates.
pub(super) fn agreeable(request: &Value) -> Answer {
    match request["subtype"].as_str().unwrap_or_default() {
        "hook_callback" => Answer::Success(json!({})),
        "can_use_tool" => {
            Answer::Success(json!({"behavior": "allow", "updatedInput": request["input"]}))
        }
        "mcp_message" => calc(&request["message"]),
        other => Answer::Error(format!("Unsupported control request subtype: {other}")),
    }
}

/// An in-process MCP server with the tools `add`, `look` (read-only) and `fail`.
pub(super) fn calc(message: &Value) -> Answer {
    let id = &message["id"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": false}},
            "serverInfo": {"name": "calc", "version": "1.0.0"},
        }),
        "tools/list" => json!({"tools": tools()}),
        "tools/call" => call(&message["params"]),
        // A notification, or the CLI's answer to the server: the control request wants its answer.
        _ if id.is_null() || message["method"].is_null() => {
            return Answer::Success(json!({"mcp_response": {"jsonrpc": "2.0", "result": {}}}));
        }
        other => {
            let error = json!({"code": -32601, "message": format!("Method not found: {other}")});
            let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
            return Answer::Success(json!({"mcp_response": response}));
        }
    };
    Answer::Success(json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}}))
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
