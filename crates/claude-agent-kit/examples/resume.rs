//! Resumes an earlier conversation by its session ID.

use claude_agent_kit::testing::{ApiRequest, Reply, Script, Sim, demo_options};
use claude_agent_kit::{Conversation, query};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let sim = Sim::new().script(script()).keep_sessions_in(folder.join("simulated-sessions"));
    let options = demo_options(sim).cwd(folder);

    let mut stream = query("Remember the number 42.", &options).await?;
    while let Some(item) = stream.next().await {
        item?;
    }
    let session = stream.session_id().cloned().ok_or("the CLI named no session")?;
    println!("first run: session {session}");

    let second = query("Which number was it?", options.conversation(Conversation::resume(session)))
        .await?
        .collect()
        .await;
    if let Some(error) = second.error {
        return Err(error.into());
    }
    println!("second run: {}", second.text());
    Ok(())
}

/// Simulates a model that answers whether the request contains the first prompt.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let prompts = request.prompts();
        let asked = prompts.last().is_some_and(|prompt| prompt.contains("Which number"));
        let knows = prompts.iter().any(|prompt| prompt.contains("42"));
        Reply::text(match (asked, knows) {
            (true, true) => "It was 42.",
            (true, false) => "I do not remember.",
            (false, _) => "I will.",
        })
    })
}
