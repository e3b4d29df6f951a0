//! A chat in the terminal. Ctrl-C interrupts the answer; a second Ctrl-C exits.

use std::io::Write as _;

use claude_agent_kit::message::{Accumulator, Update};
use claude_agent_kit::testing::{ApiRequest, Reply, Script, demo_options};
use claude_agent_kit::{Include, Item, Session, Turn, TurnInterruption};
use tokio::io::{AsyncBufReadExt as _, BufReader};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let options = demo_options(script()).include(Include::PARTIAL_MESSAGES);
    let session = Session::start(options).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        print!("> ");
        std::io::stdout().flush()?;
        let line = tokio::select! {
            line = lines.next_line() => line?,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        if !answer(session.send(line).await?).await? {
            break;
        }
    }
    println!();
    session.stop().await?;
    Ok(())
}

/// Prints the answer. Returns false if the user wants to exit.
async fn answer(mut turn: Turn) -> Outcome<bool> {
    let mut accumulator = Accumulator::new();
    let mut interrupted = false;
    loop {
        tokio::select! {
            item = turn.next() => match item {
                Some(item) => print(&mut accumulator, &item?)?,
                None => break,
            },
            _ = tokio::signal::ctrl_c(), if !interrupted => {
                interrupted = true;
                if turn.interrupt().await? == TurnInterruption::Withdrawn {
                    return Ok(true);
                }
            }
            _ = tokio::signal::ctrl_c(), if interrupted => return Ok(false),
        }
    }
    println!();
    if let Err(error) = turn.finish().await?.into_result() {
        println!("({error})");
    }
    Ok(true)
}

fn print(accumulator: &mut Accumulator, item: &Item) -> Outcome<()> {
    let Item::Message(message) = item else { return Ok(()) };
    for update in accumulator.push(&message.body) {
        if let Update::Text(place, text) = update
            && place.parent.is_none()
        {
            print!("{text}");
            std::io::stdout().flush()?;
        }
    }
    Ok(())
}

/// Simulates a model that repeats the prompt, slowly enough to be interrupted.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let heard = request.last_user_prompt().unwrap_or_default();
        Reply::text(format!("You said: {}", heard.trim()))
            .deltas_of(4)
            .pause_between(std::time::Duration::from_millis(20))
    })
}
