//! The effects of hook responses.

use claude_agent_testkit::recording::Recording;
use serde_json::{Value, json};

use super::response::{Response, default_response};
use super::tools::{bash, tool_results};
use super::{Cli, Failure, Fixture, Outcome, Plan};

/// Runs one turn in which Bash may touch `made` and the hook for this event responds like this.
async fn hooked(
    fixture: &Fixture,
    event: &'static str,
    answer: Response,
) -> Result<(Cli, Value), Failure> {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("hook_callback") => answer.clone(),
        _ => default_response(request),
    });
    let hooks = json!({event: [{"matcher": null, "hookCallbackIds": ["hook_0"], "timeout": 30}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    let result = cli.turn("run it").await?;
    let asked = cli.saw(|line| line["request"]["input"]["hook_event_name"] == event);
    cli.check(asked, &format!("a callback for {event}"))?;
    Ok((cli, result))
}

fn pre_tool_use(fields: &Value) -> Response {
    let mut output = json!({"hookEventName": "PreToolUse"});
    if let (Some(output), Some(fields)) = (output.as_object_mut(), fields.as_object()) {
        output.extend(fields.clone());
    }
    Response::Success(json!({"hookSpecificOutput": output}))
}

/// Ends the scenario after checking whether the tool ran.
async fn tool_ran(fixture: &Fixture, cli: Cli, ran: bool) -> Result<Recording, Failure> {
    let did = fixture.text_of("made").is_some();
    cli.check(did == ran, if ran { "the tool ran" } else { "the tool did not run" })?;
    cli.finish(0).await
}

pub(super) async fn hook_denies(fixture: &Fixture) -> Outcome {
    let answer = pre_tool_use(
        &json!({"permissionDecision": "deny", "permissionDecisionReason": "not here"}),
    );
    let (cli, result) = hooked(fixture, "PreToolUse", answer).await?;
    cli.check(result["result"] == "Done.", "the turn continues")?;
    tool_ran(fixture, cli, false).await
}

pub(super) async fn hook_denies_and_stops(fixture: &Fixture) -> Outcome {
    let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny",
                        "permissionDecisionReason": "not here"});
    let answer = json!({"continue": false, "stopReason": "enough", "hookSpecificOutput": output});
    let (cli, result) = hooked(fixture, "PreToolUse", Response::Success(answer)).await?;
    cli.check(result["terminal_reason"] == "hook_stopped", "the turn ends")?;
    tool_ran(fixture, cli, false).await
}

pub(super) async fn hook_blocks(fixture: &Fixture) -> Outcome {
    let answer = Response::Success(json!({"decision": "block", "reason": "not here"}));
    let (cli, result) = hooked(fixture, "PreToolUse", answer).await?;
    cli.check(result["result"] == "Done.", "the turn continues")?;
    tool_ran(fixture, cli, false).await
}

pub(super) async fn hook_stops(fixture: &Fixture) -> Outcome {
    let answer = Response::Success(json!({"continue": false, "stopReason": "enough"}));
    let (cli, result) = hooked(fixture, "PreToolUse", answer).await?;
    cli.check(result["terminal_reason"] == "hook_stopped", "the turn ends")?;
    // Surprisingly, the tool runs first.
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_allows(fixture: &Fixture) -> Outcome {
    // Nothing else allows the tool, and there is no permission callback.
    let mut cli = fixture.start(Plan::session(bash("touch made"))).await?;
    let answer = pre_tool_use(
        &json!({"permissionDecision": "allow", "permissionDecisionReason": "it is fine"}),
    );
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("hook_callback") => answer.clone(),
        _ => default_response(request),
    });
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    cli.turn("run it").await?;
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_updates_input(fixture: &Fixture) -> Outcome {
    let answer = pre_tool_use(&json!({"updatedInput": {"command": "touch other"}}));
    let (cli, _) = hooked(fixture, "PreToolUse", answer).await?;
    cli.check(fixture.text_of("other").is_some(), "the tool ran as changed")?;
    tool_ran(fixture, cli, false).await
}

pub(super) async fn hook_adds_context(fixture: &Fixture) -> Outcome {
    let output = json!({"hookEventName": "UserPromptSubmit", "additionalContext": "It is noon."});
    let answer = Response::Success(json!({"hookSpecificOutput": output}));
    let (cli, _) = hooked(fixture, "UserPromptSubmit", answer).await?;
    let reached = cli
        .api()?
        .requests()
        .iter()
        .any(|request| request.body.to_string().contains("It is noon."));
    cli.check(reached, "the context reaches the model")?;
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_says_something(fixture: &Fixture) -> Outcome {
    let answer = Response::Success(json!({"systemMessage": "look out", "suppressOutput": true}));
    let (cli, _) = hooked(fixture, "PostToolUse", answer).await?;
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_answers_later(fixture: &Fixture) -> Outcome {
    let answer = Response::Success(json!({"async": true, "asyncTimeout": 1000}));
    let (cli, result) = hooked(fixture, "PostToolUse", answer).await?;
    cli.check(result["result"] == "Done.", "the turn continues")?;
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_answers_with_an_error(fixture: &Fixture) -> Outcome {
    let answer = Response::Error("the host is confused".to_owned());
    let (cli, _) = hooked(fixture, "PreToolUse", answer).await?;
    cli.check(
        cli.saw(|line| line["tag"] == "hook_callback_failed"),
        "the failure of the hook is reported",
    )?;
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_blocks_prompt(fixture: &Fixture) -> Outcome {
    let answer = Response::Success(json!({"decision": "block", "reason": "not today"}));
    let (cli, _) = hooked(fixture, "UserPromptSubmit", answer).await?;
    cli.check(
        cli.api()?
            .requests()
            .iter()
            .all(|request| request.last_prompt().is_none_or(|p| !p.contains("run it"))),
        "the model is not asked",
    )?;
    tool_ran(fixture, cli, false).await
}

pub(super) async fn hook_continues_after_stop(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello();
    let mut cli = fixture.start(plan).await?;
    cli.on_request(|request| match request["input"]["stop_hook_active"].as_bool() {
        Some(false) => Response::Success(json!({"decision": "block", "reason": "say it again"})),
        _ => default_response(request),
    });
    let hooks = json!({"Stop": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    let result = cli.turn("hello").await?;
    cli.check(result["num_turns"] == 2, "the model is called again")?;
    cli.finish(0).await
}

pub(super) async fn hook_times_out(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.on_request(|_| Response::Ignore);
    let matcher = json!({"matcher": null, "hookCallbackIds": ["hook_0"], "timeout": 1});
    cli.operation("initialize", json!({"hooks": {"PreToolUse": [matcher]}})).await?;
    cli.send_prompt("run it").await?;
    let open = cli.next_request("hook_callback").await?;
    cli.until("the hook is withdrawn", |line| {
        line["type"] == "control_cancel_request" && line["request_id"] == open["request_id"]
    })
    .await?;
    cli.result().await?;
    cli.idle().await?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["is_error"] == true)),
        "the tool fails",
    )?;
    tool_ran(fixture, cli, false).await
}

pub(super) async fn hook_matchers(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    let hooks = json!({"PreToolUse": [
        {"matcher": "Bash", "hookCallbackIds": ["hook_0", "hook_1"]},
        {"matcher": "Write|Edit", "hookCallbackIds": ["hook_2"]},
        {"matcher": null, "hookCallbackIds": ["hook_3"]},
    ]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    cli.turn("run it").await?;
    for (id, fires) in [("hook_0", true), ("hook_1", true), ("hook_2", false), ("hook_3", true)] {
        let fired = cli.saw(|line| line["request"]["callback_id"] == id);
        cli.check(fired == fires, &format!("{id} is called: {fires}"))?;
    }
    tool_ran(fixture, cli, true).await
}

pub(super) async fn hook_events_included(fixture: &Fixture) -> Outcome {
    // Only commands from a settings file are reported like this, not callbacks.
    let command = json!({"type": "command", "command": "echo checked"});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [command]}]}});
    fixture.file(".claude/settings.json", &settings.to_string())?;
    let plan =
        Plan::session(bash("echo hi")).args(&["--allowedTools", "Bash", "--include-hook-events"]);
    let mut cli = fixture.start(plan).await?;
    let hooks = json!({"PreToolUse": [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    cli.turn("run it").await?;
    for subtype in ["hook_started", "hook_response"] {
        cli.check(cli.saw(|line| line["subtype"] == subtype), &format!("a `{subtype}`"))?;
    }
    cli.finish(0).await
}
