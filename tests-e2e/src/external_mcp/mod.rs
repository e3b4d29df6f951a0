//! An MCP server outside the host, for tests: over pipes and over HTTP.

mod http;

use std::io::{self, BufRead as _, Write as _};

use serde_json::{Value, json};

pub use http::HttpServer;

/// The variable, and the header, whose value the tool `echo` tells.
pub const MARK: &str = "MARK";

/// A server over pipes as a shell script: its only tool asks the user for a name.
pub const ELICITATION_SERVER: &str = include_str!("elicitation_server.sh");

/// A server with three tools: `echo` tells the mark and the text that it is given, `wait` never
/// answers, `ask` asks the user for a name and tells what came of that.
#[derive(Debug, Default)]
pub struct ExternalServer {
    /// The call that waits for the user.
    asking: Value,
}

impl ExternalServer {
    /// What it says to a message, if anything.
    pub fn handle(&mut self, message: &Value, mark: &str) -> Option<Value> {
        let (id, params) = (&message["id"], &message["params"]);
        if id == "question" && message["method"].is_null() {
            let call = self.asking.take();
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
                let said = params["arguments"]["text"].as_str().unwrap_or_default();
                text(&format!("{mark}: {said}"))
            }
            ("tools/call", Some("ask")) => {
                self.asking = id.clone();
                return Some(question());
            }
            ("tools/call", _) => return None,
            _ if id.is_null() => return None,
            _ => json!({}),
        };
        Some(answer(id, &result))
    }
}

/// Serves a client over the pipes of this process, until that is gone.
///
/// # Errors
/// When the pipes break.
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
