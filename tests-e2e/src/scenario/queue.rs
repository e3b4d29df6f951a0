//! Several messages at once: the CLI decides which of them share a turn.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::cli::user_frame;
use super::tools::bash;
use super::{Cli, Failure, Fixture, Outcome, Plan};

/// Sends prompts in one write and returns their IDs.
async fn send_together(cli: &mut Cli, prompts: &[&str]) -> Result<Vec<String>, Failure> {
    let ids: Vec<String> = prompts.iter().map(|_| cli.message_id()).collect();
    let frames: Vec<String> =
        prompts.iter().zip(&ids).map(|(prompt, id)| user_frame(&json!(prompt), Some(id))).collect();
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    cli.send_lines(&frames).await?;
    Ok(ids)
}

/// Reads results until each of these messages is named by one, and returns the number of results.
async fn until_all_are_named(cli: &mut Cli, ids: &[String]) -> Result<usize, Failure> {
    let mut named: Vec<Value> = Vec::new();
    let mut results = 0;
    while !ids.iter().all(|id| named.iter().any(|name| name == id)) {
        let result = cli.result().await?;
        named.extend(result["user_message_uuids"].as_array().cloned().unwrap_or_default());
        results += 1;
    }
    cli.idle().await?;
    Ok(results)
}

/// Waits until the CLI reports that a message is queued.
async fn until_queued(cli: &mut Cli, id: &str) -> Result<(), Failure> {
    let queued = |line: &Value| line["type"] == "command_lifecycle" && line["command_uuid"] == *id;
    cli.until("the message is queued", queued).await?;
    Ok(())
}

/// Starts a CLI whose tool runs until the file `go` exists, and returns it with the ID of the message.
async fn start_busy(fixture: &Fixture) -> Result<(Cli, String), Failure> {
    let plan = Plan::session(bash("touch begun; until [ -e go ]; do sleep 0.05; done"))
        .args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let first = cli.send_prompt("run it").await?;
    cli.wait("the tool runs", fixture.appears("begun")).await?;
    Ok((cli, first))
}

fn life(cli: &Cli, id: &str) -> Vec<String> {
    cli.history()
        .iter()
        .filter(|line| line["type"] == "command_lifecycle" && line["command_uuid"] == id)
        .filter_map(|line| line["state"].as_str().map(str::to_owned))
        .collect()
}

pub(super) async fn two_messages_at_once(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let ids = send_together(&mut cli, &["first", "second"]).await?;
    let results = until_all_are_named(&mut cli, &ids).await?;
    cli.check(results == 2, "two messages make two results")?;
    cli.finish(0).await
}

pub(super) async fn three_messages_at_once(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let ids = send_together(&mut cli, &["first", "second", "third"]).await?;
    let results = until_all_are_named(&mut cli, &ids).await?;
    cli.check(results == 2, "the second and the third share a result")?;
    cli.finish(0).await
}

pub(super) async fn message_joins_a_turn(fixture: &Fixture) -> Outcome {
    let (mut cli, first) = start_busy(fixture).await?;
    let second = cli.send_prompt("and hurry").await?;
    until_queued(&mut cli, &second).await?;
    fixture.file("go", "")?;
    let result = cli.result().await?;
    cli.check(result["user_message_uuids"] == json!([first, second]), "both share the result")?;
    cli.idle().await?;
    cli.finish(0).await
}

pub(super) async fn message_joins_a_turn_of_the_cli(fixture: &Fixture) -> Outcome {
    let wait_for = |file: &str| format!("until [ -e {file} ]; do sleep 0.05; done");
    let background = json!({"command": wait_for("end"), "run_in_background": true});
    let busy = json!({"command": format!("touch begun; {}", wait_for("go"))});
    let script = Script::new().when("and hurry", [Reply::text("Hurried.")]).otherwise([
        Reply::tool("Bash", background),
        Reply::text("Started."),
        Reply::tool("Bash", busy),
        Reply::text("It is done."),
    ]);
    let mut cli = fixture.start(Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    cli.initialize().await?;
    cli.turn("start it").await?;
    fixture.file("end", "")?;
    cli.wait("the tool of the CLI's own turn runs", fixture.appears("begun")).await?;
    let joined = cli.send_prompt("and hurry").await?;
    until_queued(&mut cli, &joined).await?;
    fixture.file("go", "")?;
    let result = cli.result().await?;
    cli.check(result["origin"]["kind"] == "task-notification", "the turn is the CLI's own")?;
    cli.check(result["user_message_uuids"] == json!([joined]), "its result names who joined it")?;
    cli.idle().await?;
    cli.finish(0).await
}

pub(super) async fn queued_message_and_interrupt(fixture: &Fixture) -> Outcome {
    let script = Script::new().when("second", [Reply::text("Two.")]).otherwise([Reply::text(
        "A long answer.",
    )
    .deltas_of(3)
    .hold()]);
    let plan = Plan::session(script).args(&["--include-partial-messages"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.send_prompt("first").await?;
    cli.until("the first piece", |line| line["event"]["type"] == "content_block_delta").await?;
    let second = cli.send_prompt("second").await?;
    until_queued(&mut cli, &second).await?;
    let receipt = cli.operation("interrupt", json!({})).await?;
    cli.check(receipt["still_queued"] == json!([second]), "the receipt names what is queued")?;
    let results = until_all_are_named(&mut cli, &[second]).await?;
    cli.check(results == 2, "the queued message has its own turn")?;
    cli.finish(0).await
}

pub(super) async fn queued_message_cancelled(fixture: &Fixture) -> Outcome {
    let (mut cli, first) = start_busy(fixture).await?;
    let second = cli.send_prompt("never mind").await?;
    until_queued(&mut cli, &second).await?;
    let answer = cli.operation("cancel_async_message", json!({"message_uuid": second})).await?;
    cli.check(answer["cancelled"] == true, "the message is withdrawn")?;
    let answer = cli.operation("cancel_async_message", json!({"message_uuid": second})).await?;
    cli.check(answer["cancelled"] == false, "it cannot be withdrawn twice")?;
    fixture.file("go", "")?;
    let result = cli.result().await?;
    cli.check(result["user_message_uuids"] == json!([first]), "the result names the first alone")?;
    cli.idle().await?;
    let end = life(&cli, &second);
    cli.check(end.last().is_some_and(|state| state == "cancelled"), "its life ends as cancelled")?;
    cli.finish(0).await
}

pub(super) async fn queued_messages_dropped_by_interrupt(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([Reply::text("A long answer.").deltas_of(3).hold()]);
    let plan = Plan::session(script).args(&["--include-partial-messages"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.send_prompt("first").await?;
    cli.until("the first piece", |line| line["event"]["type"] == "content_block_delta").await?;
    let second = cli.send_prompt("second").await?;
    until_queued(&mut cli, &second).await?;
    cli.operation("interrupt", json!({"cancel_queued": true})).await?;
    cli.result().await?;
    cli.idle().await?;
    let end = life(&cli, &second);
    cli.check(end.last().is_some_and(|state| state == "cancelled"), "the queued one is cancelled")?;
    cli.finish(1).await
}
