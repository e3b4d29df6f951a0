//! See every hook event as it comes, but one: a hook for `WorktreeCreate` must make the worktree.

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

mod embedded;

use claude_agent_kit::hook::{
    ConfigChange, CwdChanged, DirectoryAdded, Elicitation, ElicitationResult, FileChanged,
    InstructionsLoaded, MessageDisplay, Notification, PermissionDenied, PermissionRequest,
    PostCompact, PostModelSwitch, PostToolBatch, PostToolUse, PostToolUseFailure, PreCompact,
    PreModelSwitch, PreToolUse, SessionEnd, SessionStart, Setup, Stop, StopFailure, SubagentStart,
    SubagentStop, TaskCompleted, TaskCreated, TeammateIdle, UserPromptExpansion, UserPromptSubmit,
    WorktreeRemove,
};
use claude_agent_kit::{Options, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

/// Prints the name of each of these events when it comes.
macro_rules! print_names {
    ($options:expr, $($event:ident),+ $(,)?) => {
        $options$( .on($event, |_, _| async { println!("{}", stringify!($event)) }) )+
    };
}

/// Those of which there is more to say.
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

fn all_events(options: Options) -> Options {
    print_names!(
        with_words(options),
        PostToolBatch,
        PermissionRequest,
        PermissionDenied,
        UserPromptExpansion,
        StopFailure,
        Notification,
        MessageDisplay,
        Elicitation,
        ElicitationResult,
        SessionStart,
        SessionEnd,
        Setup,
        PreCompact,
        PostCompact,
        PreModelSwitch,
        PostModelSwitch,
        SubagentStart,
        SubagentStop,
        TaskCreated,
        TaskCompleted,
        TeammateIdle,
        ConfigChange,
        InstructionsLoaded,
        CwdChanged,
        FileChanged,
        DirectoryAdded,
        WorktreeRemove,
    )
}

#[tokio::main]
async fn main() -> claude_agent_kit::Result<()> {
    let options = all_events(embedded::options(script).allowed_tools(["Bash"]));
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
