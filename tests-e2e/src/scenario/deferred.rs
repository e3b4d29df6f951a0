//! Deferred tool calls, and their replay when the session is resumed.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::response::{Response, default_response};
use super::tools::tool_results;
use super::{Cli, Failure, Fixture, Outcome, Plan};

/// Starts the CLI with two `PreToolUse` hooks. Bash is allowed, so its calls would run without them.
async fn hooked(
    fixture: &Fixture,
    plan: Plan,
    decide: impl Fn(&Value) -> Value + Send + 'static,
) -> Result<Cli, Failure> {
    let plan = plan.args(&["--allowedTools", "Bash,Agent"]).with_permission_prompts();
    let mut cli = fixture.start(plan).await?;
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("hook_callback") => Response::Success(decide(request)),
        _ => default_response(request),
    });
    let matcher = |id: &str| json!({"matcher": null, "hookCallbackIds": [id]});
    let hooks = json!({"PreToolUse": [matcher("hook_0"), matcher("hook_1")]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    Ok(cli)
}

/// Resumes a session without a prompt.
async fn resumed(
    fixture: &Fixture,
    session: &str,
    decide: fn(&Value) -> Value,
) -> Result<Cli, Failure> {
    let script = Script::new().otherwise([Reply::text("Done.")]);
    let plan = Plan::session(script).args(&["--resume", session, "--await-initialize"]);
    hooked(fixture, plan, decide).await
}

/// Runs a session whose only call is deferred, and returns its ID.
async fn one_deferred(fixture: &Fixture) -> Result<String, Failure> {
    let plan = Plan::session(Script::new().otherwise([calls(&["touch made"])]));
    let mut cli = hooked(fixture, plan, |_| decision("defer")).await?;
    let result = cli.turn("run it").await?;
    cli.check(result["stop_reason"] == "tool_deferred", "the call is deferred")?;
    cli.finish(0).await?;
    Ok(session_of(&result))
}

fn session_of(result: &Value) -> String {
    result["session_id"].as_str().unwrap_or_default().to_owned()
}

fn decision(decision: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": "so it is"}})
}

/// Returns an answer with a Bash call for each command.
fn calls(commands: &[&str]) -> Reply {
    let call = |reply: Reply, command: &&str| {
        reply.and_tool("Bash", json!({"command": command, "description": "Run it"}))
    };
    commands.iter().fold(Reply::new(), call)
}

/// Returns whether the call of a hook callback has this part in its input.
fn has(request: &Value, part: &str) -> bool {
    request["input"]["tool_input"].to_string().contains(part)
}

/// The hooks of one call disagree: deny, defer, ask, allow, in this order.
pub(super) async fn hook_decisions_ranked(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        calls(&["touch allow-deny"]),
        calls(&["touch defer-deny"]),
        calls(&["touch allow-ask"]),
        calls(&["touch ask-defer"]),
    ]);
    let mut cli = hooked(fixture, Plan::session(script), |request| {
        let command = request["input"]["tool_input"]["command"].as_str().unwrap_or_default();
        let (first, second) =
            command.trim_start_matches("touch ").split_once('-').unwrap_or_default();
        decision(if request["callback_id"] == "hook_0" { first } else { second })
    })
    .await?;
    let result = cli.turn("run it").await?;
    let denied =
        cli.history().iter().flat_map(tool_results).filter(|block| block["is_error"] == true);
    cli.check(denied.count() == 2, "`deny` wins twice")?;
    let asked = cli.saw(|line| line["request"]["subtype"] == "can_use_tool");
    cli.check(asked && fixture.text_of("allow-ask").is_some(), "`ask` wins over `allow`")?;
    let denials = result["permission_denials"].as_array().map_or(0, Vec::len);
    cli.check(denials == 2, "the result lists the calls that hooks denied")?;
    cli.check(result["stop_reason"] == "tool_deferred", "`defer` wins over `ask`")?;
    cli.finish(0).await
}

/// One call of two is deferred: the other one runs, then the turn ends.
pub(super) async fn deferred_and_allowed(fixture: &Fixture) -> Outcome {
    one_of_two(fixture, "allow").await
}

/// One call of two is deferred: the other one is denied, then the turn ends.
pub(super) async fn deferred_and_denied(fixture: &Fixture) -> Outcome {
    one_of_two(fixture, "deny").await
}

async fn one_of_two(fixture: &Fixture, other: &'static str) -> Outcome {
    let plan = Plan::session(Script::new().otherwise([calls(&["touch deferred", "touch other"])]));
    let decide =
        move |request: &Value| decision(if has(request, "deferred") { "defer" } else { other });
    let mut cli = hooked(fixture, plan, decide).await?;
    let result = cli.turn("run it").await?;
    let made = |name: &str| fixture.text_of(name).is_some();
    cli.check(!made("deferred") && made("other") == (other == "allow"), "one call is deferred")?;
    let deferred = &result["deferred_tool_use"]["input"]["command"];
    cli.check(*deferred == "touch deferred", "the result names the deferred call")?;
    let recording = cli.finish(0).await?;

    let mut cli = resumed(fixture, &session_of(&result), |_| decision("allow")).await?;
    cli.result().await?;
    cli.check(made("deferred") && made("other") == (other == "allow"), "one call is replayed")?;
    cli.finish(0).await?;
    Ok(recording)
}

/// Of two deferred calls the CLI keeps the last.
pub(super) async fn deferred_twice(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(Script::new().otherwise([calls(&["touch first", "touch second"])]));
    let mut cli = hooked(fixture, plan, |_| decision("defer")).await?;
    let result = cli.turn("run it").await?;
    let recording = cli.finish(0).await?;

    let mut cli = resumed(fixture, &session_of(&result), |_| decision("allow")).await?;
    cli.result().await?;
    let made = |name: &str| fixture.text_of(name).is_some();
    cli.check(made("second") && !made("first"), "only the last call is replayed")?;
    cli.finish(0).await?;
    Ok(recording)
}

/// Calls that can run concurrently: their hooks are called at once.
pub(super) async fn deferred_concurrently(fixture: &Fixture) -> Outcome {
    fixture.file("one.txt", "1\n")?;
    fixture.file("two.txt", "2\n")?;
    let answer = Reply::tool("Read", json!({"file_path": fixture.path("one.txt")}))
        .and_tool("Read", json!({"file_path": fixture.path("two.txt")}));
    let plan = Plan::session(Script::new().otherwise([answer]));
    let mut cli = hooked(fixture, plan, |_| decision("defer")).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("hook_callback") => Response::Ignore,
        _ => default_response(request),
    });
    cli.send_prompt("read it").await?;
    let mut pending = Vec::new();
    while pending.len() < 4 {
        pending.push(cli.next_request("hook_callback").await?);
    }
    for request in &pending {
        let choice = if has(&request["request"], "one.txt") { "defer" } else { "deny" };
        cli.respond(request, &decision(choice)).await?;
    }
    let result = cli.result().await?;
    cli.idle().await?;
    let deferred = result["deferred_tool_use"]["input"].to_string();
    cli.check(deferred.contains("one.txt"), "the result names the deferred call")?;
    cli.finish(0).await
}

/// A deferred call of a subagent is lost.
pub(super) async fn deferred_by_subagent(fixture: &Fixture) -> Outcome {
    let agent = json!({"description": "Work", "prompt": "work for me",
        "subagent_type": "general-purpose", "run_in_background": false});
    let script = Script::new()
        .when("work for me", [calls(&["touch made"]), Reply::text("Worked.")])
        .otherwise([Reply::tool("Agent", agent), Reply::text("Done.")]);
    let mut cli = hooked(fixture, Plan::session(script), |request| {
        decision(if request["input"]["agent_id"].is_string() { "defer" } else { "allow" })
    })
    .await?;
    let result = cli.turn("delegate").await?;
    let asked = cli.saw(|line| line["request"]["input"]["agent_id"].is_string());
    cli.check(asked, "the hook is called for the subagent")?;
    cli.check(result["deferred_tool_use"].is_null(), "the result names no deferred call")?;
    let recording = cli.finish(0).await?;
    cli_replays_nothing(fixture, &session_of(&result)).await?;
    Ok(recording)
}

async fn cli_replays_nothing(fixture: &Fixture, session: &str) -> Result<(), Failure> {
    let mut cli = resumed(fixture, session, |_| decision("allow")).await?;
    let asked = cli.turn("hello").await.map(|_| cli.saw(|line| line["request"].is_object()))?;
    cli.check(!asked && fixture.text_of("made").is_none(), "nothing is replayed")?;
    cli.finish(0).await.map(drop)
}

pub(super) async fn replay_allowed(fixture: &Fixture) -> Outcome {
    let session = one_deferred(fixture).await?;
    let mut cli = resumed(fixture, &session, |_| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
            "updatedInput": {"command": "touch other"}}})
    })
    .await?;
    let result = cli.result().await?;
    cli.idle().await?;
    cli.check(result["result"] == "Done.", "the model continues")?;
    cli.check(fixture.text_of("other").is_some(), "the changed call runs")?;
    let recording = cli.finish(0).await?;
    cli_replays_nothing(fixture, &session).await?;
    Ok(recording)
}

pub(super) async fn replay_denied(fixture: &Fixture) -> Outcome {
    let session = one_deferred(fixture).await?;
    let mut cli = resumed(fixture, &session, |_| decision("deny")).await?;
    let result = cli.result().await?;
    cli.idle().await?;
    cli.check(result["result"] == "Done.", "the model continues")?;
    cli.check(fixture.text_of("made").is_none(), "the call does not run")?;
    let recording = cli.finish(0).await?;
    cli_replays_nothing(fixture, &session).await?;
    Ok(recording)
}

pub(super) async fn replay_deferred(fixture: &Fixture) -> Outcome {
    let session = one_deferred(fixture).await?;
    let mut cli = resumed(fixture, &session, |_| decision("defer")).await?;
    let result = cli.result().await?;
    cli.idle().await?;
    cli.check(result["stop_reason"] == "tool_deferred", "the call is deferred again")?;
    cli.check(cli.api()?.requests().is_empty(), "the model does not continue")?;
    cli.finish(0).await
}

pub(super) async fn replay_asked(fixture: &Fixture) -> Outcome {
    let session = one_deferred(fixture).await?;
    let mut cli = resumed(fixture, &session, |_| decision("ask")).await?;
    let result = cli.result().await?;
    cli.idle().await?;
    cli.check(cli.saw(|line| line["request"]["subtype"] == "can_use_tool"), "the host is asked")?;
    cli.check(result["result"] == "Done.", "the model continues")?;
    cli.check(fixture.text_of("made").is_some(), "the call runs")?;
    cli.finish(0).await
}

/// A prompt during a replay waits for its end.
pub(super) async fn replay_and_prompt(fixture: &Fixture) -> Outcome {
    let session = one_deferred(fixture).await?;
    let mut cli = waiting_replay(fixture, &session).await?;
    let request = cli.next_request("hook_callback").await?;
    let other = cli.next_request("hook_callback").await?;
    let prompt = cli.send_prompt("and now?").await?;
    let is_state =
        |line: &Value, state: &str| line["command_uuid"] == prompt && line["state"] == state;
    cli.until("the prompt is queued", |line| is_state(line, "queued")).await?;
    cli.respond(&request, &decision("allow")).await?;
    cli.respond(&other, &decision("allow")).await?;
    let replay = cli.result().await?;
    cli.check(replay["user_message_uuids"].is_null(), "the replay names no message")?;
    let result = cli.result().await?;
    cli.check(result["user_message_uuids"] == json!([prompt]), "the prompt has its own turn")?;
    cli.idle().await?;
    cli.finish(0).await
}

/// Resumes a session without a response to the hooks of the replay.
async fn waiting_replay(fixture: &Fixture, session: &str) -> Result<Cli, Failure> {
    let script = Script::new().otherwise([Reply::text("Done.")]);
    let arguments = ["--resume", session, "--await-initialize", "--allowedTools", "Bash"];
    let mut cli = fixture.start(Plan::session(script).args(&arguments)).await?;
    cli.on_request(|_| Response::Ignore);
    let matcher = |id: &str| json!({"matcher": null, "hookCallbackIds": [id]});
    let hooks = json!({"PreToolUse": [matcher("hook_0"), matcher("hook_1")]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    Ok(cli)
}
