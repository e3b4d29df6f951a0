//! In-process tools: Rust functions that the model calls.
//!
//! Arguments are typed, and invalid arguments do not reach the function. Closures capture shared state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{Session, Tool, ToolError, ToolServer, json};
use serde::Deserialize;

/// Two numbers. The model reads these comments.
#[derive(Deserialize, JsonSchema)]
struct Pair {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

async fn divide(pair: Pair) -> Result<f64, ToolError> {
    if pair.b == 0.0 {
        return Err(ToolError::new("Nothing can be divided by zero."));
    }
    Ok(pair.a / pair.b)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let additions = Arc::new(AtomicU64::new(0));
    let counter = additions.clone();
    let server = ToolServer::new()
        .tool("add", "Adds two numbers", move |pair: Pair| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move { Ok(pair.a + pair.b) }
        })
        // The CLI may send concurrent calls of a read-only tool.
        .add(Tool::new("divide", "Divides two numbers", divide).read_only());
    let options =
        demo_options(script()).cwd(folder).mcp("calc", server).allowed_tools(["mcp__calc"]);
    let session = Session::start(options).await?;
    let outcome = session.send("What is 2 + 3, and what is 1 / 0?").await?.finish().await?;
    println!("answer: {}", outcome.text);
    println!("additions: {}", additions.load(Ordering::Relaxed));
    session.stop().await?;
    Ok(())
}

fn script() -> Script {
    Script::new().when(
        "What is",
        [
            Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3}))
                .and_tool("mcp__calc__divide", json!({"a": 1, "b": 0})),
            Reply::text("2 + 3 is 5, and nothing can be divided by zero."),
        ],
    )
}
