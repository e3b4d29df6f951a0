//! `can_use_tool` and every way to answer it.

use serde_json::{Value, json};

use super::{
    Cli, Failure, Outcome, Plan, Stage,
    answer::{Answer, agreeable},
    tools::{bash, tool_results},
};

/// Plays one turn in which the model wants to touch `made` and the host answers like this.
async fn asked(
    stage: &Stage,
    answer: impl Fn(&Value) -> Answer + Send + 'static,
) -> Result<(Cli, Value), Failure> {
    let mut cli = stage.start(Plan::session(bash("touch made")).asking()).await?;
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("can_use_tool") => answer(request),
        _ => agreeable(request),
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

pub(super) async fn permission_allow(stage: &Stage) -> Outcome {
    let (cli, result) = asked(stage, agreeable).await?;
    cli.check(result["result"] == "Done.", "the turn goes on")?;
    cli.check(stage.text_of("made").is_some(), "the tool ran")?;
    cli.finish(0).await
}

pub(super) async fn permission_allow_changed_input(stage: &Stage) -> Outcome {
    let (cli, _) = asked(stage, |_| {
        let input = json!({"command": "touch other", "description": "Run it"});
        Answer::Success(json!({"behavior": "allow", "updatedInput": input}))
    })
    .await?;
    cli.check(stage.text_of("made").is_none(), "the tool did not run as asked")?;
    cli.check(stage.text_of("other").is_some(), "the tool ran as changed")?;
    cli.finish(0).await
}

pub(super) async fn permission_allow_updated_permissions(stage: &Stage) -> Outcome {
    let (mut cli, _) = asked(stage, |request| {
        Answer::Success(json!({
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
    cli.check(stage.text_of("made").is_some(), "the tool ran")?;
    cli.turn("run it again").await?;
    let asked = cli.history().iter().filter(|line| line["request"]["subtype"] == "can_use_tool");
    let asked = asked.count();
    cli.check(asked == 1, "with the new rule the host is not asked again")?;
    cli.finish(0).await
}

pub(super) async fn permission_deny(stage: &Stage) -> Outcome {
    let (cli, result) =
        asked(stage, |_| Answer::Success(json!({"behavior": "deny", "message": "not here"})))
            .await?;
    cli.check(result["result"] == "Done.", "the turn goes on")?;
    cli.check(result["permission_denials"][0]["tool_name"] == "Bash", "the denial is told")?;
    cli.check(cli.saw(failed_tool), "the tool failed")?;
    cli.check(stage.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_deny_interrupt(stage: &Stage) -> Outcome {
    let (cli, result) = asked(stage, |_| {
        Answer::Success(json!({"behavior": "deny", "message": "stop", "interrupt": true}))
    })
    .await?;
    cli.check(result["result"] != "Done.", "the turn ends")?;
    cli.check(stage.text_of("made").is_none(), "the tool did not run")?;
    let code = i32::from(result["is_error"] == true);
    cli.finish(code).await
}

pub(super) async fn permission_ask_is_invalid(stage: &Stage) -> Outcome {
    let (cli, _) = asked(stage, |_| Answer::Success(json!({"behavior": "ask"}))).await?;
    cli.check(cli.saw(failed_tool), "the answer is rejected and the tool fails")?;
    cli.check(stage.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_error_answer(stage: &Stage) -> Outcome {
    let (cli, _) = asked(stage, |_| Answer::Error("the host is confused".to_owned())).await?;
    cli.check(cli.saw(failed_tool), "the tool fails")?;
    cli.check(stage.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_several_at_once(stage: &Stage) -> Outcome {
    use claude_agent_testkit::mock_api::{Reply, Script};
    let reply = Reply::tool("Bash", json!({"command": "touch one"}))
        .and_tool("Bash", json!({"command": "touch two"}));
    let script = Script::new().otherwise([reply, Reply::text("Done.")]);
    let mut cli = stage.start(Plan::session(script).asking()).await?;
    cli.initialize().await?;
    cli.turn("run both").await?;
    cli.check(stage.text_of("one").is_some(), "the first ran")?;
    cli.check(stage.text_of("two").is_some(), "the second ran")?;
    cli.finish(0).await
}
