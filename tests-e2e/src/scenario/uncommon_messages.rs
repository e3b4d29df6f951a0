//! Messages that are opt-in or rarely sent.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::cli::user_frame;
use super::response::{Response, default_response};
use super::tools::bash;
use super::{Fixture, Outcome, Plan};

pub(super) async fn startup_marks(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello().env("CLAUDE_CODE_SDK_READS_STARTUP_MARKS", "1");
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.check(cli.saw(|line| line["type"] == "keep_alive"), "a `keep_alive` with a mark")?;
    cli.finish(0).await
}

pub(super) async fn session_mirror(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello().args(&["--session-mirror"])).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    cli.check(cli.saw(|line| line["type"] == "transcript_mirror"), "the transcript is mirrored")?;
    cli.finish(0).await
}

pub(super) async fn refusal(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([Reply::text("I will").stop_reason("refusal")]);
    let mut cli = fixture.start(Plan::session(script)).await?;
    cli.initialize().await?;
    let result = cli.turn("hello").await?;
    cli.check(result["stop_reason"] == "refusal", "the result reports the refusal")?;
    let code = i32::from(result["is_error"] == true);
    cli.finish(code).await
}

pub(super) async fn answer_too_long(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([Reply::text("And then").stop_reason("max_tokens")]);
    let mut cli = fixture.start(Plan::session(script)).await?;
    cli.initialize().await?;
    let result = cli.turn("hello").await?;
    let code = i32::from(result["is_error"] == true);
    cli.finish(code).await
}

pub(super) async fn plan_mode(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("ExitPlanMode", json!({"plan": "Greet everybody."})),
        Reply::text("Done."),
    ]);
    let plan = Plan::session(script).with_permission_prompts().args(&["--permission-mode", "plan"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("plan it").await?;
    cli.check(
        cli.saw(|line| line["request"]["tool_name"] == "ExitPlanMode"),
        "the host is asked whether the plan is good",
    )?;
    cli.finish(0).await
}

pub(super) async fn document_in_prompt(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello().args(&["--replay-user-messages"])).await?;
    cli.initialize().await?;
    let source = json!({"type": "text", "media_type": "text/plain", "data": "Once upon a time."});
    let content = json!([
        {"type": "document", "source": source, "title": "A tale"},
        {"type": "text", "text": "what is this?"},
    ]);
    let uuid = cli.message_id();
    cli.send(&user_frame(&content, Some(&uuid))).await?;
    cli.result().await?;
    cli.idle().await?;
    cli.finish(0).await
}

pub(super) async fn hook_defers(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("hook_callback") => Response::Success(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "defer"}})),
        _ => default_response(request),
    });
    let hooks = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    let result = cli.turn("run it").await?;
    cli.check(result["deferred_tool_use"].is_object(), "the call is handed to the host")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn commands_changed(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    fixture.file(
        ".claude/skills/wave/SKILL.md",
        "---\nname: wave\ndescription: Waves\n---\nWave.\n",
    )?;
    cli.operation("reload_skills", json!({})).await?;
    cli.turn("hello again").await?;
    cli.check(
        cli.saw(|line| line["subtype"] == "commands_changed"),
        "the new commands are reported",
    )?;
    cli.finish(0).await
}

pub(super) async fn mcp_server_notifies(fixture: &Fixture) -> Outcome {
    let config = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
    let mut cli = fixture.start(Plan::hello().args(&["--mcp-config", config])).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    cli.operation("mcp_message", json!({"server_name": "calc", "message": notification})).await?;
    let ping = json!({"jsonrpc": "2.0", "id": 77, "method": "ping"});
    let id = cli.request("mcp_message", json!({"server_name": "calc", "message": ping})).await?;
    let answers = |line: &Value| line["request"]["message"]["id"] == 77;
    cli.until("the answer of the CLI to the server", answers).await?;
    if !cli.saw(|line| line["response"]["request_id"] == *id) {
        cli.response_to(&id).await?;
    }
    cli.turn("hello again").await?;
    cli.finish(0).await
}
