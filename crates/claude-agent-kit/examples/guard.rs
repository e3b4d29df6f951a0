//! Allows a short list of tool calls, and asks the user in the terminal about each of them.
//!
//! A hook denies everything that is not on the list, regardless of the CLI's own rules, and fails
//! closed: if the hook fails, the tool does not run. Without a terminal, all calls are denied;
//! `--yes` allows the calls on the list.

use std::io::{IsTerminal as _, Write as _};

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{Permission, Session, ToolInput, json, visible};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = demo_options(script())
        .cwd(std::env::temp_dir())
        .on(PreToolUse.fail_closed(), |call, _| async move {
            if is_allowed(&call.tool_input()) {
                return HookResponse::new();
            }
            println!("guard: denied {}", call.tool());
            HookResponse::deny("This call is not on the list.")
        })
        // Reading from the terminal blocks the thread.
        .can_use_tool_blocking(|request, _| {
            // What the model writes may contain characters that a terminal interprets.
            let (tool, input) = (visible(&request.tool_name), visible(request.input.text()));
            let question = format!("may {tool} run with {input}?");
            if confirm(&question) {
                Permission::allow()
            } else {
                Permission::deny("The user does not want this.")
            }
        });
    let session = Session::start(options).await?;
    let outcome = session.send("Clean up and show me the changes.").await?.finish().await?;
    println!("answer: {}", outcome.text);
    session.stop().await?;
    Ok(())
}

/// Decides whether a tool call may run: reading may, and these commands exactly as written here.
pub(crate) fn is_allowed(input: &ToolInput) -> bool {
    const COMMANDS: [&str; 3] = ["cargo check", "cargo test", "git status"];
    match input {
        ToolInput::Read(_) | ToolInput::Glob(_) | ToolInput::Grep(_) => true,
        ToolInput::Bash(bash) => {
            COMMANDS.contains(&bash.command.as_str())
                && bash.dangerously_disable_sandbox != Some(true)
                && bash.extra.is_empty()
        }
        // Any other tool, and any input that does not have the known shape.
        _ => false,
    }
}

fn confirm(question: &str) -> bool {
    print!("{question} [y/N] ");
    if std::env::args().any(|argument| argument == "--yes") {
        println!("y");
        return true;
    }
    if !std::io::stdin().is_terminal() {
        println!("no terminal, so no");
        return false;
    }
    let mut answer = String::new();
    let asked = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
    asked.is_ok() && answer.trim().eq_ignore_ascii_case("y")
}

fn script() -> Script {
    Script::new().when(
        "Clean up",
        [
            Reply::tool("Bash", json!({"command": "rm -f note.txt"}))
                .and_tool("Bash", json!({"command": "git status"})),
            Reply::text("I did what I was allowed to."),
        ],
    )
}
