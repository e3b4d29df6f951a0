//! `interrupt` in each state of a session.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::response::{Response, default_response};
use super::tools::bash;
use super::{Fixture, Outcome, Plan};

fn cancels(line: &Value) -> bool {
    line["type"] == "control_cancel_request"
}

pub(super) async fn interrupt_idle(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let receipt = cli.operation("interrupt", json!({})).await?;
    cli.check(receipt["still_queued"] == json!([]), "the interrupt is acknowledged")?;
    let result = cli.turn("hello").await?;
    cli.check(result["subtype"] == "success", "the next turn is not touched")?;
    cli.finish(0).await
}

pub(super) async fn interrupt_streaming(fixture: &Fixture) -> Outcome {
    let text = "A long answer that never ends.";
    let script = Script::new().otherwise([Reply::text(text).deltas_of(5).hold()]);
    let plan = Plan::session(script).args(&["--include-partial-messages"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.send_prompt("hello").await?;
    cli.until("the first piece", |line| line["event"]["type"] == "content_block_delta").await?;
    cli.operation("interrupt", json!({})).await?;
    let result = cli.result().await?;
    cli.check(result["is_error"] == true, "the turn ends with an error result")?;
    cli.idle().await?;
    cli.finish(1).await
}

pub(super) async fn interrupt_tool(fixture: &Fixture) -> Outcome {
    let plan =
        Plan::session(bash("touch begun; sleep 60; touch ended")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.send_prompt("run it").await?;
    cli.until("the call", |line| line["message"]["content"][0]["type"] == "tool_use").await?;
    cli.wait("the tool runs", fixture.appears("begun")).await?;
    cli.operation("interrupt", json!({})).await?;
    let result = cli.result().await?;
    cli.check(result["is_error"] == true, "the turn ends with an error result")?;
    cli.idle().await?;
    cli.check(fixture.text_of("ended").is_none(), "the tool was ended")?;
    cli.finish(1).await
}

pub(super) async fn interrupt_permission(fixture: &Fixture) -> Outcome {
    let mut cli =
        fixture.start(Plan::session(bash("touch made")).with_permission_prompts()).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("can_use_tool") => Response::Ignore,
        _ => default_response(request),
    });
    cli.initialize().await?;
    cli.send_prompt("run it").await?;
    let open = cli.next_request("can_use_tool").await?;
    cli.operation("interrupt", json!({})).await?;
    let result = cli.result().await?;
    cli.check(result["is_error"] == true, "the turn ends with an error result")?;
    cli.check(
        cli.saw(|line| cancels(line) && line["request_id"] == open["request_id"]),
        "the open question is withdrawn",
    )?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.idle().await?;
    cli.finish(1).await
}

pub(super) async fn interrupt_hook(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("hook_callback") => Response::Ignore,
        _ => default_response(request),
    });
    let hooks = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    cli.send_prompt("run it").await?;
    let open = cli.next_request("hook_callback").await?;
    cli.operation("interrupt", json!({})).await?;
    cli.result().await?;
    cli.check(
        cli.saw(|line| cancels(line) && line["request_id"] == open["request_id"]),
        "the open hook is withdrawn",
    )?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.idle().await?;
    cli.finish(1).await
}
