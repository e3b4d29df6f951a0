//! Controls a session while it runs: changes the model and the permission mode, interrupts an answer.

use claude_agent_kit::testing::{ApiRequest, Reply, Script, demo_options};
use claude_agent_kit::{Body, Include, Item, PermissionMode, Session};

#[tokio::main]
async fn main() -> claude_agent_kit::Result<()> {
    let options = demo_options(script()).include(Include::PARTIAL_MESSAGES);
    let session = Session::start(options).await?;

    let mut turn = session.send("Count to a thousand.").await?;
    while let Some(item) = turn.next().await {
        // Interrupt the answer as soon as it has started.
        if let Item::Message(message) = item?
            && matches!(message.body, Body::StreamEvent(_))
        {
            println!("that is enough: {:?}", turn.interrupt().await?);
            break;
        }
    }
    let outcome = turn.finish().await?;
    println!("that turn ended with an error: {}", outcome.result.is_error());

    session.set_model("haiku").await?;
    session.set_permission_mode(PermissionMode::AcceptEdits).await?;
    let outcome = session.send("Who are you?").await?.finish().await?;
    println!("answer: {}", outcome.text);
    println!("context: {:?} tokens", session.context_usage().await?.total_tokens);
    session.stop().await?;
    Ok(())
}

fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        if request.last_user_prompt().is_some_and(|prompt| prompt.contains("Count")) {
            Reply::text("1, 2, 3, ").hold()
        } else {
            Reply::text(format!("I am {}.", request.model()))
        }
    })
}
