//! Sends a prompt and prints the messages.
//!
//! `cargo run --example quickstart` requires only Rust: it uses a simulated CLI in the same process.
//! `cargo run --example quickstart -- --cli claude` uses the real CLI.

use claude_agent_kit::content::ContentBlock;
use claude_agent_kit::message::SystemMessage;
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{Body, Item, SystemPrompt, json, query};

#[tokio::main]
async fn main() -> claude_agent_kit::Result<()> {
    let folder = std::env::temp_dir();
    let options = demo_options(script())
        .cwd(folder)
        .allowed_tools(["Bash(echo:*)"])
        .system_prompt(SystemPrompt::claude_code().append("Answer in one sentence."));

    let mut stream = query("Which shell do I use? Find out with echo.", options).await?;
    while let Some(item) = stream.next().await {
        match item? {
            Item::Message(message) => match &message.body {
                Body::System(SystemMessage::Init(init)) => {
                    println!("model: {}", init.model_name());
                }
                Body::Assistant(answer) => answer.content().iter().for_each(tell),
                // A result ends a turn, whether the turn succeeded or not.
                Body::Result(result) => println!(
                    "{} after {} turns",
                    if result.is_error() { "failed" } else { "done" },
                    result.turns(),
                ),
                _ => {}
            },
            Item::PermissionRequest(request) => println!("permission for {}", request.tool_name),
            Item::Warning(warning) => println!("warning: {warning}"),
        }
    }
    println!("cost: {}", stream.cost());
    if let Some(id) = stream.session_id() {
        println!("session: {id}");
    }
    Ok(())
}

fn tell(block: &ContentBlock) {
    match block {
        ContentBlock::Text(text) => println!("answer: {}", text.text),
        ContentBlock::ToolUse(call) => println!("calls: {} {}", call.name, call.input),
        _ => {}
    }
}

/// The answers of the simulated model. The tool is actually executed.
fn script() -> Script {
    Script::new().when(
        "Which shell",
        [
            Reply::tool("Bash", json!({"command": "echo $0", "description": "Print the shell"})),
            Reply::text("You use a Bourne shell."),
        ],
    )
}
