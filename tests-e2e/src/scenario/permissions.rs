//! `can_use_tool` with every kind of response.

use serde_json::{Value, json};

use super::response::{Response, default_response};
use super::tools::{bash, tool_results};
use super::{Cli, Failure, Fixture, Outcome, Plan};

/// Runs one turn in which the model calls a tool that touches `made`, and the host responds like this.
async fn run_with_response(
    fixture: &Fixture,
    answer: impl Fn(&Value) -> Response + Send + 'static,
) -> Result<(Cli, Value), Failure> {
    let mut cli =
        fixture.start(Plan::session(bash("touch made")).with_permission_prompts()).await?;
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("can_use_tool") => answer(request),
        _ => default_response(request),
    });
    cli.initialize().await?;
    let result = cli.turn("run it").await?;
    cli.check(
        cli.saw(|line| {
            line["request"]["subtype"] == "can_use_tool" && line["request"]["tool_name"] == "Bash"
        }),
        "the host is asked",
    )?;
    Ok((cli, result))
}

fn failed_tool(line: &Value) -> bool {
    tool_results(line).any(|block| block["is_error"] == true)
}

pub(super) async fn permission_allow(fixture: &Fixture) -> Outcome {
    let (cli, result) = run_with_response(fixture, default_response).await?;
    cli.check(result["result"] == "Done.", "the turn continues")?;
    cli.check(fixture.text_of("made").is_some(), "the tool ran")?;
    cli.finish(0).await
}

pub(super) async fn permission_allow_changed_input(fixture: &Fixture) -> Outcome {
    let (cli, _) = run_with_response(fixture, |_| {
        let input = json!({"command": "touch other", "description": "Run it"});
        Response::Success(json!({"behavior": "allow", "updatedInput": input}))
    })
    .await?;
    cli.check(fixture.text_of("made").is_none(), "the original input is not executed")?;
    cli.check(fixture.text_of("other").is_some(), "the tool ran as changed")?;
    cli.finish(0).await
}

pub(super) async fn permission_allow_updated_permissions(fixture: &Fixture) -> Outcome {
    let (mut cli, _) = run_with_response(fixture, |request| {
        Response::Success(json!({
            "behavior": "allow",
            "updatedInput": request["input"],
            "updatedPermissions": [{
                "type": "addRules",
                "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}],
                "behavior": "allow",
                "destination": "session",
            }],
        }))
    })
    .await?;
    cli.check(fixture.text_of("made").is_some(), "the tool ran")?;
    cli.turn("run it again").await?;
    let asked = cli.history().iter().filter(|line| line["request"]["subtype"] == "can_use_tool");
    let asked = asked.count();
    cli.check(asked == 1, "no second request after the new rule")?;
    cli.finish(0).await
}

pub(super) async fn permission_deny(fixture: &Fixture) -> Outcome {
    let (cli, result) = run_with_response(fixture, |_| {
        Response::Success(json!({"behavior": "deny", "message": "not here"}))
    })
    .await?;
    cli.check(result["result"] == "Done.", "the turn continues")?;
    cli.check(
        result["permission_denials"][0]["tool_name"] == "Bash",
        "the result lists the denial",
    )?;
    cli.check(cli.saw(failed_tool), "the tool failed")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_deny_interrupt(fixture: &Fixture) -> Outcome {
    let (cli, result) = run_with_response(fixture, |_| {
        Response::Success(json!({"behavior": "deny", "message": "stop", "interrupt": true}))
    })
    .await?;
    cli.check(result["result"] != "Done.", "the turn ends")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    let code = i32::from(result["is_error"] == true);
    cli.finish(code).await
}

pub(super) async fn permission_ask_is_invalid(fixture: &Fixture) -> Outcome {
    let (cli, _) =
        run_with_response(fixture, |_| Response::Success(json!({"behavior": "ask"}))).await?;
    cli.check(cli.saw(failed_tool), "the answer is rejected and the tool fails")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_error_answer(fixture: &Fixture) -> Outcome {
    let (cli, _) =
        run_with_response(fixture, |_| Response::Error("the host is confused".to_owned())).await?;
    cli.check(cli.saw(failed_tool), "the tool fails")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_several_at_once(fixture: &Fixture) -> Outcome {
    use claude_agent_testkit::mock_api::{Reply, Script};
    let reply = Reply::tool("Bash", json!({"command": "touch one"}))
        .and_tool("Bash", json!({"command": "touch two"}));
    let script = Script::new().otherwise([reply, Reply::text("Done.")]);
    let mut cli = fixture.start(Plan::session(script).with_permission_prompts()).await?;
    cli.initialize().await?;
    cli.turn("run both").await?;
    cli.check(fixture.text_of("one").is_some(), "the first ran")?;
    cli.check(fixture.text_of("two").is_some(), "the second ran")?;
    cli.finish(0).await
}
