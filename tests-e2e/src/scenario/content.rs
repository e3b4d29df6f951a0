//! Prompts and answers with more than plain text.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use super::cli::user_frame;
use super::response::{Response, default_response};
use super::tools::tool_results;
use super::{Fixture, Outcome, Plan};

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

pub(super) async fn image_in_prompt(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello().args(&["--replay-user-messages"])).await?;
    cli.initialize().await?;
    let content = json!([
        {"type": "text", "text": "what is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ]);
    let uuid = cli.message_id();
    cli.send(&user_frame(&content, Some(&uuid))).await?;
    let result = cli.result().await?;
    cli.check(result["subtype"] == "success", "the turn succeeds")?;
    cli.idle().await?;
    let reached =
        cli.api()?.requests().iter().any(|request| request.body.to_string().contains("image/png"));
    cli.check(reached, "the image reaches the model")?;
    cli.finish(0).await
}

pub(super) async fn image_read_by_tool(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("Bash", json!({"command": format!("echo {PNG} | base64 -d > pixel.png")})),
        Reply::tool("Read", json!({"file_path": fixture.path("pixel.png")})),
        Reply::text("Red."),
    ]);
    let mut cli =
        fixture.start(Plan::session(script).args(&["--allowedTools", "Bash,Read"])).await?;
    cli.initialize().await?;
    cli.turn("look at it").await?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["content"][0]["type"] == "image")),
        "the result of the tool is an image",
    )?;
    cli.finish(0).await
}

pub(super) async fn lone_surrogates(fixture: &Fixture) -> Outcome {
    let reply = Reply::new().raw_text_json(r#""half \ud83d of it, and \ude00 the other""#);
    let plan = Plan::session(Script::new().otherwise([reply]));
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let recording = cli.finish(0).await?;
    let forwarded =
        recording.received().any(|line| serde_json::from_slice::<serde_json::Value>(line).is_err());
    if forwarded {
        Ok(recording)
    } else {
        Err(super::Failure::new("a line that strict JSON refuses", ""))
    }
}

pub(super) async fn structured_output(fixture: &Fixture) -> Outcome {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}},
                        "required": ["city"], "additionalProperties": false});
    let script = Script::new().otherwise([
        Reply::tool("StructuredOutput", json!({"city": "Paris"})),
        Reply::text("Paris."),
    ]);
    let plan = Plan::session(script).args(&["--json-schema", &schema.to_string()]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("which city?").await?;
    cli.check(
        result["structured_output"] == json!({"city": "Paris"}),
        "the value is in the result",
    )?;
    cli.finish(0).await
}

pub(super) async fn ask_user_question(fixture: &Fixture) -> Outcome {
    let questions = json!([{
        "question": "Which colour?",
        "header": "Colour",
        "multiSelect": false,
        "options": [{"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cold"}],
    }]);
    let script = Script::new().otherwise([
        Reply::tool("AskUserQuestion", json!({"questions": questions})),
        Reply::text("Red it is."),
    ]);
    let mut cli = fixture.start(Plan::session(script).with_permission_prompts()).await?;
    cli.on_request(|request| match request["tool_name"].as_str() {
        Some("AskUserQuestion") => {
            let mut input = request["input"].clone();
            input["answers"] = json!({"Which colour?": "Red"});
            Response::Success(json!({"behavior": "allow", "updatedInput": input}))
        }
        _ => default_response(request),
    });
    cli.initialize().await?;
    cli.turn("choose").await?;
    cli.check(
        cli.saw(|line| {
            tool_results(line).any(|block| block["content"].to_string().contains("Red"))
        }),
        "the answer reaches the model",
    )?;
    cli.finish(0).await
}

pub(super) async fn compact(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    cli.turn("/compact").await?;
    cli.check(cli.saw(|line| line["subtype"] == "compact_boundary"), "a compact boundary")?;
    cli.turn("hello again").await?;
    cli.finish(0).await
}

pub(super) async fn slash_commands(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.turn("/context").await?;
    cli.turn("/no-such-command").await?;
    cli.turn("/clear").await?;
    cli.turn("hello").await?;
    cli.finish(0).await
}

pub(super) async fn system_prompts(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello().args(&[
        "--system-prompt",
        "You are A.",
        "--append-system-prompt",
        "You are also B.",
    ]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let both = cli.api()?.requests().iter().any(|request| {
        let text = request.system_text();
        text.contains("You are A.") && text.contains("You are also B.")
    });
    cli.check(both, "both prompts reach the model")?;
    cli.finish(0).await
}
