//! See every hook event as it comes.

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod embedded;

use claude_agent_kit::Session;
use claude_agent_kit::hook::{
    Notification, PermissionRequest, PostToolUse, PostToolUseFailure, PreCompact, PreToolUse, Stop,
    SubagentStart, SubagentStop, UserPromptSubmit,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

#[tokio::main]
async fn main() -> claude_agent_kit::Result<()> {
    let options = embedded::options(script)
        .allowed_tools(["Bash"])
        .on(UserPromptSubmit, |event, _| async move { println!("prompt: {:?}", event.prompt) })
        .on(PreToolUse, |event, _| async move {
            println!("before {}", event.tool_name.unwrap_or_default());
        })
        .on(PostToolUse, |event, _| async move {
            println!("after {}", event.tool_name.unwrap_or_default());
        })
        .on(PostToolUseFailure, |event, _| async move { println!("failed: {:?}", event.error) })
        .on(PermissionRequest, |event, _| async move {
            println!("permission for {}", event.tool_name.unwrap_or_default());
        })
        .on(
            SubagentStart,
            |event, _| async move { println!("agent {:?} begins", event.agent_type) },
        )
        .on(
            SubagentStop,
            |event, _| async move { println!("agent {:?} is done", event.agent_type) },
        )
        .on(Notification, |event, _| async move { println!("notice: {:?}", event.message) })
        .on(PreCompact, |event, _| async move { println!("compacts: {:?}", event.trigger) })
        .on(Stop, |_, _| async move { println!("the model is done") });
    let session = Session::start(options).await?;
    let outcome = session.send("Run two commands, one of which fails.").await?.finish().await?;
    println!("answer: {}", outcome.text);
    session.stop().await?;
    Ok(())
}

fn script() -> Script {
    Script::new().when(
        "two commands",
        [
            Reply::tool("Bash", json!({"command": "true"})),
            Reply::tool("Bash", json!({"command": "false"})),
            Reply::text("One worked, one did not."),
        ],
    )
}
