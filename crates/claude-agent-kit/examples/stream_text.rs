//! Streams the text of an answer.
//!
//! The accumulator combines partial and complete messages, so that each text appears once, even if a
//! connection breaks and the CLI requests the answer again.

use std::io::Write as _;

use claude_agent_kit::message::{Accumulator, Update};
use claude_agent_kit::testing::{Reply, Script, demo_options};
use claude_agent_kit::{Include, Item, query};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = demo_options(script()).include(Include::PARTIAL_MESSAGES);
    let mut stream = query("Tell me a very short story.", options).await?;
    let mut answer = Accumulator::new();
    let mut out = std::io::stdout();
    while let Some(item) = stream.next().await {
        let Item::Message(message) = item? else { continue };
        for update in answer.push(&message.body) {
            match update {
                Update::Text(place, text) if place.parent.is_none() => {
                    write!(out, "{text}")?;
                    out.flush()?;
                }
                Update::Abandoned(_) => println!("\n(once more:)"),
                _ => {}
            }
        }
    }
    println!();
    Ok(())
}

fn script() -> Script {
    let story = "A fox met a crab. The crab knew Rust. They shipped on Friday, and slept.";
    Script::new().otherwise([Reply::text(story)
        .deltas_of(5)
        .pause_between(std::time::Duration::from_millis(20))])
}
