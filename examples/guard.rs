//! Ask the person at the terminal before anything runs.
//!
//! A hook blocks what must never run, whatever the CLI's own rules say, and fails closed: if the
//! hook breaks, the tool does not run. What is left is asked about. Without a terminal everything
//! is denied; `--yes` answers yes.

use std::io::{IsTerminal as _, Write as _};

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::testing::{Reply, Script, demo_options, json};
use claude_agent_kit::{Permission, Session};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let options = demo_options(script())
        .cwd(folder)
        .on(PreToolUse.matching("Bash").fail_closed(), |call, _| async move {
            let command = call.input.map(|input| input.to_string()).unwrap_or_default();
            if command.contains("rm ") {
                println!("guard: blocked {command}");
                HookResponse::deny("Removing files is not allowed here.")
            } else {
                HookResponse::new()
            }
        })
        // Waiting for a person blocks a thread.
        .can_use_tool_blocking(|request, _| {
            let question = format!("may {} run with {}?", request.tool_name, request.input);
            if confirm(&question) {
                Permission::allow()
            } else {
                Permission::deny("The user does not want this.")
            }
        });
    let session = Session::start(options).await?;
    let outcome = session.send("Clean up and leave a note.").await?.finish().await?;
    println!("answer: {}", outcome.text);
    session.stop().await?;
    Ok(())
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
                .and_tool("Bash", json!({"command": "echo note > note.txt"})),
            Reply::text("I did what I was allowed to."),
        ],
    )
}
