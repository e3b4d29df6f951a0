//! Prints all hook events except `WorktreeCreate`, whose hook would have to create the worktree.

use claude_agent_kit::hook::input::HookInput;
use claude_agent_kit::hook::{
    HookRegistration, PostToolUse, PostToolUseFailure, PreToolUse, Stop, UserPromptSubmit,
};
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{Options, Session, json};

/// Registers typed hooks, which can read the fields of their events.
fn with_words(options: Options) -> Options {
    options
        .on(UserPromptSubmit, |event, _| async move { println!("prompt: {:?}", event.prompt) })
        .on(PreToolUse, |event, _| async move {
            println!("before {}", event.tool_name.unwrap_or_default());
        })
        .on(PostToolUse, |event, _| async move {
            println!("after {}", event.tool_name.unwrap_or_default());
        })
        .on(PostToolUseFailure, |event, _| async move { println!("failed: {:?}", event.error) })
        .on(Stop, |_, _| async move { println!("the model is done") })
}

/// Registers a hook for every documented event, which prints its name.
fn with_names(options: Options) -> Options {
    let events = HookInput::KNOWN.iter().filter(|event| **event != "WorktreeCreate");
    events.fold(options, |options, event| {
        options.on(HookRegistration::named(*event), |input, _| async move {
            println!("{}", input.event);
        })
    })
}

#[tokio::main]
async fn main() -> claude_agent_kit::Result<()> {
    let options = with_names(with_words(demo_options(script()).allowed_tools(["Bash"])));
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
