//! An MCP server outside the host process, for tests: over stdio and over HTTP.

mod http;

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

pub use http::HttpServer;

/// The environment variable, and the HTTP header, whose value the tool `echo` returns.
pub const MARK: &str = "MARK";

/// A server over stdio as a shell script. Its only tool requests a name from the user.
pub const ELICITATION_SERVER: &str = include_str!("elicitation_server.sh");

/// A server with three tools: `echo` returns the mark and its argument, `wait` never responds, and `ask` requests a
/// name from the user and returns the result.
#[derive(Debug, Default)]
pub struct ExternalServer {
    /// The ID of the call that waits for the user.
    pending_call: Value,
}

impl ExternalServer {
    /// Handles a message and returns the reply, if any.
    pub fn handle(&mut self, message: &Value, mark: &str) -> Option<Value> {
        let (id, params) = (&message["id"], &message["params"]);
        if id == "question" && message["method"].is_null() {
            let call = self.pending_call.take();
            return Some(answer(&call, &text(&message["result"].to_string())));
        }
        let result = match (message["method"].as_str()?, params["name"].as_str()) {
            ("initialize", _) => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "outside", "version": "1.0.0"},
            }),
            ("tools/list", _) => json!({"tools": tools()}),
            ("tools/call", Some("echo")) => {
                let argument = params["arguments"]["text"].as_str().unwrap_or_default();
                text(&format!("{mark}: {argument}"))
            }
            ("tools/call", Some("ask")) => {
                self.pending_call = id.clone();
                return Some(question());
            }
            ("tools/call", _) => return None,
            _ if id.is_null() => return None,
            _ => json!({}),
        };
        Some(answer(id, &result))
    }
}

/// Serves a client over stdin and stdout until EOF.
///
/// # Errors
/// Returns an error when reading or writing fails.
pub fn serve_pipes() -> io::Result<()> {
    let mark = std::env::var(MARK).unwrap_or_default();
    let mut server = ExternalServer::default();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message = serde_json::from_str(&line?).unwrap_or_default();
        if let Some(answer) = server.handle(&message, &mark) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
    Ok(())
}

fn tools() -> Value {
    let tool = |name: &str| {
        let properties = json!({"text": {"type": "string"}});
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    };
    json!([tool("echo"), tool("wait"), tool("ask")])
}

fn question() -> Value {
    let name = json!({"type": "string", "title": "Name"});
    let schema = json!({"type": "object", "properties": {"name": name}, "required": ["name"]});
    let params = json!({"message": "Who is it?", "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": "question", "method": "elicitation/create", "params": params})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}
