//! The handshake, and turns without tools.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::cli::user_frame;
use super::{Fixture, Outcome, Plan};

pub(super) async fn handshake(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    let answer = cli.initialize().await?;
    cli.check(answer["commands"].is_array(), "the answer lists commands")?;
    cli.check(answer["models"].is_array(), "the answer lists models")?;
    cli.finish(0).await
}

pub(super) async fn plain_turn(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let uuid = cli.send_prompt("hello").await?;
    let result = cli.result().await?;
    cli.check(result["subtype"] == "success", "the turn succeeds")?;
    cli.check(result["result"] == "Hello.", "the result holds the text")?;
    cli.check(result["user_message_uuids"][0] == uuid.as_str(), "the result names its prompt")?;
    cli.idle().await?;
    let states: Vec<&Value> = cli
        .history()
        .iter()
        .filter(|line| line["type"] == "command_lifecycle" && line["command_uuid"] == *uuid)
        .map(|line| &line["state"])
        .collect();
    cli.check(
        states == ["queued", "started", "completed"],
        "the lifecycle of the prompt is reported",
    )?;
    cli.finish(0).await
}

pub(super) async fn three_turns(fixture: &Fixture) -> Outcome {
    let script = Script::new()
        .when("first", [Reply::text("One.").usage(100, 7)])
        .when("second", [Reply::text("Two.").usage(200, 11)])
        .when("third", [Reply::text("Three.")]);
    let mut cli = fixture.start(Plan::session(script)).await?;
    cli.initialize().await?;
    for (prompt, text) in [("first", "One."), ("second", "Two."), ("third", "Three.")] {
        let result = cli.turn(prompt).await?;
        cli.check(result["result"] == text, "each prompt has its own answer")?;
    }
    let inits = cli.history().iter().filter(|line| line["subtype"] == "init").count();
    cli.check(inits == 3, "each turn starts with `system/init`")?;
    cli.finish(0).await
}

pub(super) async fn turn_without_initialize(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    let result = cli.turn("hello").await?;
    cli.check(result["subtype"] == "success", "a prompt without a handshake succeeds")?;
    cli.finish(0).await
}

pub(super) async fn prompt_without_uuid(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.send(&user_frame(&json!("hello"), None)).await?;
    let result = cli.result().await?;
    cli.check(result.get("user_message_uuids").is_none(), "the result does not name a prompt")?;
    cli.idle().await?;
    cli.check(!cli.saw(|line| line["type"] == "command_lifecycle"), "no lifecycle message")?;
    cli.finish(0).await
}

pub(super) async fn session_state_off(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello().without_env("CLAUDE_CODE_SDK_READS_SESSION_STATE");
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.send_prompt("hello").await?;
    cli.result().await?;
    cli.close_input().await;
    while cli.next().await?.is_some() {}
    cli.check(
        !cli.saw(|line| line["subtype"] == "session_state_changed"),
        "the state is not reported by default",
    )?;
    cli.finish(0).await
}

pub(super) async fn replayed_user_messages(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello().args(&["--replay-user-messages"])).await?;
    cli.initialize().await?;
    let uuid = cli.send_prompt("hello").await?;
    cli.result().await?;
    cli.check(
        cli.saw(|line| line["isReplay"] == true && line["uuid"] == *uuid),
        "the prompt is replayed under its id",
    )?;
    cli.idle().await?;
    cli.finish(0).await
}

pub(super) async fn partial_messages(fixture: &Fixture) -> Outcome {
    let text = "A sentence that comes in several pieces.";
    let script = Script::new().otherwise([Reply::text(text).deltas_of(9)]);
    let mut cli =
        fixture.start(Plan::session(script).args(&["--include-partial-messages"])).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let pieces: String =
        cli.history().iter().filter_map(|line| line["event"]["delta"]["text"].as_str()).collect();
    cli.check(pieces == text, "the pieces make up the text")?;
    cli.finish(0).await
}

pub(super) async fn partial_tool_call(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::text("Let me see.").and_tool("Bash", json!({"command": "echo one"})).deltas_of(8),
        Reply::text("One."),
    ]);
    let plan =
        Plan::session(script).args(&["--include-partial-messages", "--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    cli.check(
        cli.saw(|line| line["event"]["delta"]["type"] == "input_json_delta"),
        "the input of the tool comes in pieces",
    )?;
    cli.finish(0).await
}

fn thoughts() -> Script {
    let reply = Reply::thinking("The user greets. A greeting is due.").and_text("Hello.");
    Script::new().otherwise([reply.deltas_of(12)])
}

pub(super) async fn thinking(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::session(thoughts())).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    cli.check(
        cli.saw(|line| line["message"]["content"][0]["type"] == "thinking"),
        "thinking is a message of its own",
    )?;
    cli.finish(0).await
}

pub(super) async fn thinking_partial(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(thoughts()).args(&["--include-partial-messages"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    cli.check(
        cli.saw(|line| line["event"]["delta"]["type"] == "thinking_delta"),
        "thinking comes in pieces",
    )?;
    cli.finish(0).await
}

pub(super) async fn print_mode(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([Reply::text("Hello.")]);
    let plan = Plan::bare(script).args(&[
        "--print",
        "--output-format",
        "stream-json",
        "--verbose",
        "--",
        "hello",
    ]);
    let mut cli = fixture.start(plan).await?;
    cli.close_input().await;
    let result = cli.result().await?;
    cli.check(result["result"] == "Hello.", "the prompt of the command line is answered")?;
    cli.finish(0).await
}
