//! The tools of these tests, and the results that reached the model.

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{Options, ToolServer};
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tests_e2e::harness::Harness;

/// Two numbers.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Pair {
    /// The first.
    pub(crate) a: i64,
    pub(crate) b: i64,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(crate) struct Sum {
    pub(crate) sum: i64,
}

/// Returns a server with one tool that adds.
pub(crate) fn calc() -> ToolServer {
    ToolServer::new().tool(
        "add",
        "Adds two numbers",
        |pair: Pair| async move { Ok(pair.a + pair.b) },
    )
}

/// Returns options with this server, whose tools need no permission.
pub(crate) fn with_server(harness: &Harness, server: ToolServer) -> Options {
    harness.options().mcp("calc", server).allowed_tools(["mcp__calc"])
}

/// Returns a model that makes these calls in one answer and then ends its turn.
pub(crate) fn call_script(calls: &[(&str, Value)]) -> Script {
    let call = |reply: Reply, (tool, input): &(&str, Value)| reply.and_tool(*tool, input.clone());
    Script::new().otherwise([calls.iter().fold(Reply::new(), call), Reply::text("Done.")])
}

/// Returns the tool results that the model received last.
pub(crate) fn results(harness: &Harness) -> Vec<Value> {
    let requests = harness.api().requests();
    let results = requests.iter().rev().map(ApiRequest::tool_results);
    results.into_iter().find(|results| !results.is_empty()).unwrap_or_default()
}

/// Returns the same results as texts, in the order in which they arrived.
pub(crate) fn texts(harness: &Harness) -> Vec<String> {
    results(harness).iter().map(|result| text_of(&result["content"])).collect()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
