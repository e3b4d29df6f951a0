//! In-process MCP servers.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use crate::external_mcp;

use super::response::{Response, default_response};
use super::tools::tool_results;
use super::{Fixture, Outcome, Plan};

const CONFIG: &str = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
const ALL: &str = "mcp__calc__add,mcp__calc__look,mcp__calc__fail";

/// Plans a session with the in-process server `calc`, whose tools are all allowed.
fn with_calc(script: Script) -> Plan {
    Plan::session(script).args(&["--mcp-config", CONFIG, "--allowedTools", ALL])
}

fn calls(line: &Value, method: &str) -> bool {
    line["request"]["subtype"] == "mcp_message" && line["request"]["message"]["method"] == method
}

pub(super) async fn mcp_tool(fixture: &Fixture) -> Outcome {
    let script = Script::new()
        .otherwise([Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})), Reply::text("Five.")]);
    let mut cli = fixture.start(with_calc(script)).await?;
    cli.initialize().await?;
    cli.check(
        cli.saw(|line| calls(line, "initialize")),
        "the server is initialized before the answer",
    )?;
    let result = cli.turn("add 2 and 3").await?;
    cli.check(result["result"] == "Five.", "the turn continues")?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["content"][0]["text"] == "5")),
        "the model gets the sum",
    )?;
    let status = cli.operation("mcp_status", json!({})).await?;
    cli.check(status["mcpServers"][0]["status"] == "connected", "the server is connected")?;
    cli.finish(0).await
}

pub(super) async fn mcp_read_only_tools_in_parallel(fixture: &Fixture) -> Outcome {
    let call = |a: i32| ("mcp__calc__look", json!({"a": a, "b": 1}));
    let (name, input) = call(0);
    let reply = (1..4).fold(Reply::tool(name, input), |reply, a| {
        let (name, input) = call(a);
        reply.and_tool(name, input)
    });
    let script = Script::new().otherwise([reply, Reply::text("Looked.")]);
    let mut cli = fixture.start(with_calc(script)).await?;
    // Responds only when all calls are in flight, which proves that they run concurrently.
    cli.on_request(|request| match request["message"]["method"].as_str() {
        Some("tools/call") => Response::Ignore,
        _ => default_response(request),
    });
    cli.initialize().await?;
    cli.send_prompt("look four times").await?;
    let mut open = Vec::new();
    while open.len() < 4 {
        open.push(cli.until("a call", |line| calls(line, "tools/call")).await?);
    }
    for request in open {
        let Response::Success(payload) = default_response(&request["request"]) else { continue };
        let id = &request["request_id"];
        cli.send(&format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{payload}}}}}"#
        ))
        .await?;
    }
    cli.result().await?;
    cli.idle().await?;
    cli.finish(0).await
}

pub(super) async fn mcp_tool_error(fixture: &Fixture) -> Outcome {
    let script = Script::new()
        .otherwise([Reply::tool("mcp__calc__fail", json!({})), Reply::text("It failed.")]);
    let mut cli = fixture.start(with_calc(script)).await?;
    cli.initialize().await?;
    cli.turn("fail").await?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["is_error"] == true)),
        "the model gets the tool error",
    )?;
    cli.finish(0).await
}

pub(super) async fn mcp_protocol_error(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})),
        Reply::text("It failed."),
    ]);
    let mut cli = fixture.start(with_calc(script)).await?;
    cli.on_request(|request| match request["message"]["method"].as_str() {
        Some("tools/call") => {
            let error = json!({"code": -32602, "message": "no such number"});
            let response =
                json!({"jsonrpc": "2.0", "id": request["message"]["id"], "error": error});
            Response::Success(json!({"mcp_response": response}))
        }
        _ => default_response(request),
    });
    cli.initialize().await?;
    cli.turn("add").await?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["is_error"] == true)),
        "the model gets the error of the call",
    )?;
    cli.finish(0).await
}

pub(super) async fn mcp_call_interrupted(fixture: &Fixture) -> Outcome {
    let script = Script::new()
        .otherwise([Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})), Reply::text("Five.")]);
    let mut cli = fixture.start(with_calc(script)).await?;
    cli.on_request(|request| match request["message"]["method"].as_str() {
        Some("tools/call") => Response::Ignore,
        _ => default_response(request),
    });
    cli.initialize().await?;
    cli.send_prompt("add").await?;
    cli.until("the call", |line| calls(line, "tools/call")).await?;
    cli.request("interrupt", json!({})).await?;
    cli.result().await?;
    cli.idle().await?;
    cli.check(
        cli.saw(|line| calls(line, "notifications/cancelled")),
        "the call is cancelled in the words of MCP",
    )?;
    cli.finish(1).await
}

pub(super) async fn mcp_elicitation(fixture: &Fixture) -> Outcome {
    fixture.file("server.sh", external_mcp::ELICITATION_SERVER)?;
    let servers = json!({"asker": {"command": "sh", "args": [fixture.path("server.sh")]}});
    let config = json!({"mcpServers": servers}).to_string();
    let script = Script::new()
        .otherwise([Reply::tool("mcp__asker__greet", json!({})), Reply::text("Greeted.")]);
    let plan = Plan::session(script).args(&[
        "--mcp-config",
        &config,
        "--allowedTools",
        "mcp__asker__greet",
    ]);
    let mut cli = fixture.start(plan).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("elicitation") => {
            Response::Success(json!({"action": "accept", "content": {"name": "Ada"}}))
        }
        _ => default_response(request),
    });
    let hooks = json!({
        "Elicitation": [{"matcher": null, "hookCallbackIds": ["hook_0"]}],
        "ElicitationResult": [{"matcher": null, "hookCallbackIds": ["hook_1"]}],
    });
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    cli.turn("greet").await?;
    cli.check(
        cli.saw(|line| line["request"]["subtype"] == "elicitation"),
        "an elicitation request",
    )?;
    cli.finish(0).await
}
