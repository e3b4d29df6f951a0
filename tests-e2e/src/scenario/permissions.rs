//! `can_use_tool` and every way to answer it.

use serde_json::{Value, json};

use super::{
    Cli, Failure, Fixture, Outcome, Plan,
    answer::{Answer, agreeable},
    tools::{bash, tool_results},
};

/// Plays one turn in which the model wants to touch `made` and the host answers like this.
async fn asked(
    fixture: &Fixture,
    answer: impl Fn(&Value) -> Answer + Send + 'static,
) -> Result<(Cli, Value), Failure> {
    let mut cli = fixture.start(Plan::session(bash("touch made")).asking()).await?;
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

pub(super) async fn permission_allow(fixture: &Fixture) -> Outcome {
    let (cli, result) = asked(fixture, agreeable).await?;
    cli.check(result["result"] == "Done.", "the turn goes on")?;
    cli.check(fixture.text_of("made").is_some(), "the tool ran")?;
    cli.finish(0).await
}

pub(super) async fn permission_allow_changed_input(fixture: &Fixture) -> Outcome {
    let (cli, _) = asked(fixture, |_| {
        let input = json!({"command": "touch other", "description": "Run it"});
        Answer::Success(json!({"behavior": "allow", "updatedInput": input}))
    })
    .await?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run as asked")?;
    cli.check(fixture.text_of("other").is_some(), "the tool ran as changed")?;
    cli.finish(0).await
}

pub(super) async fn permission_allow_updated_permissions(fixture: &Fixture) -> Outcome {
    let (mut cli, _) = asked(fixture, |request| {
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
    cli.check(fixture.text_of("made").is_some(), "the tool ran")?;
    cli.turn("run it again").await?;
    let asked = cli.history().iter().filter(|line| line["request"]["subtype"] == "can_use_tool");
    let asked = asked.count();
    cli.check(asked == 1, "with the new rule the host is not asked again")?;
    cli.finish(0).await
}

pub(super) async fn permission_deny(fixture: &Fixture) -> Outcome {
    let (cli, result) =
        asked(fixture, |_| Answer::Success(json!({"behavior": "deny", "message": "not here"})))
            .await?;
    cli.check(result["result"] == "Done.", "the turn goes on")?;
    cli.check(result["permission_denials"][0]["tool_name"] == "Bash", "the denial is told")?;
    cli.check(cli.saw(failed_tool), "the tool failed")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_deny_interrupt(fixture: &Fixture) -> Outcome {
    let (cli, result) = asked(fixture, |_| {
        Answer::Success(json!({"behavior": "deny", "message": "stop", "interrupt": true}))
    })
    .await?;
    cli.check(result["result"] != "Done.", "the turn ends")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    let code = i32::from(result["is_error"] == true);
    cli.finish(code).await
}

pub(super) async fn permission_ask_is_invalid(fixture: &Fixture) -> Outcome {
    let (cli, _) = asked(fixture, |_| Answer::Success(json!({"behavior": "ask"}))).await?;
    cli.check(cli.saw(failed_tool), "the answer is rejected and the tool fails")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_error_answer(fixture: &Fixture) -> Outcome {
    let (cli, _) = asked(fixture, |_| Answer::Error("the host is confused".to_owned())).await?;
    cli.check(cli.saw(failed_tool), "the tool fails")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn permission_several_at_once(fixture: &Fixture) -> Outcome {
    use claude_agent_testkit::mock_api::{Reply, Script};
    let reply = Reply::tool("Bash", json!({"command": "touch one"}))
        .and_tool("Bash", json!({"command": "touch two"}));
    let script = Script::new().otherwise([reply, Reply::text("Done.")]);
    let mut cli = fixture.start(Plan::session(script).asking()).await?;
    cli.initialize().await?;
    cli.turn("run both").await?;
    cli.check(fixture.text_of("one").is_some(), "the first ran")?;
    cli.check(fixture.text_of("two").is_some(), "the second ran")?;
    cli.finish(0).await
}
