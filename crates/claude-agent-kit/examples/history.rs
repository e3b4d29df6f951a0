//! Browses past conversations in the terminal, and resumes one.

use std::io::Write as _;

use claude_agent_kit::history::{History, ListFilter, MessageFilter, MessageRole, SessionInfo};
use claude_agent_kit::testing::{ApiRequest, Reply, Script, demo_options};
use claude_agent_kit::{Conversation, Options, query};
use tokio::io::{AsyncBufReadExt as _, BufReader};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const PAGE: usize = 10;
const HELP: &str =
    "NUMBER shows a session, NUMBER PROMPT resumes it, + and - turn the page, q quits";

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut options = demo_options(script());
    if !std::env::args().any(|argument| argument == "--cli") {
        // The simulated CLI keeps its conversations in a folder of its own.
        let folder = std::env::temp_dir().join("simulated-history");
        options = options.env("CLAUDE_CONFIG_DIR", folder.to_string_lossy());
        send("What is a transcript?", options.clone()).await?;
    }
    let history = History::from_options(&options)?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut offset = 0;
    loop {
        let page = history.list(ListFilter::new().offset(offset).limit(PAGE)).await?;
        for (at, session) in page.sessions.iter().enumerate() {
            println!("{:>3}  {}", at + 1, describe(session));
        }
        for skipped in &page.skipped {
            println!("     {skipped}");
        }
        print!("{HELP}\n> ");
        std::io::stdout().flush()?;
        let Some(line) = lines.next_line().await? else { break };
        match line.trim() {
            "q" => break,
            "+" if page.has_more => offset += PAGE,
            "-" => offset = offset.saturating_sub(PAGE),
            command => choose(&history, &options, &page.sessions, command).await?,
        }
    }
    println!();
    Ok(())
}

/// Shows or resumes the session whose number the command starts with.
async fn choose(
    history: &History,
    options: &Options,
    sessions: &[SessionInfo],
    command: &str,
) -> Outcome<()> {
    let (number, prompt) = command.split_once(' ').unwrap_or((command, ""));
    let session =
        number.parse().ok().and_then(|number: usize| sessions.get(number.wrapping_sub(1)));
    match session {
        None => println!("no session {number:?} on this page"),
        Some(session) if prompt.is_empty() => show(history, session).await?,
        Some(session) => {
            let mut options = options.clone();
            if let Some(cwd) = &session.cwd {
                options = options.cwd(cwd);
            }
            let conversation = Conversation::resume(session.session_id.clone());
            send(prompt, options.conversation(conversation)).await?;
        }
    }
    Ok(())
}

/// Prints the last messages of a session.
async fn show(history: &History, session: &SessionInfo) -> Outcome<()> {
    for message in history.last_messages(&session.session_id, 20, MessageFilter::default()).await? {
        let sign = if message.role == MessageRole::Assistant { ' ' } else { '>' };
        let text = message.content().map(|content| content.to_text()).unwrap_or_default();
        for line in text.lines() {
            println!("     {sign} {line}");
        }
    }
    for subagent in history.subagents(&session.session_id).await? {
        println!(
            "     subagent {}: {}",
            subagent.agent_id,
            subagent.description.unwrap_or_default()
        );
    }
    Ok(())
}

fn describe(session: &SessionInfo) -> String {
    let tag = session.tag.as_ref().map(|tag| format!(" #{tag}")).unwrap_or_default();
    let place = session.cwd.as_deref().unwrap_or("?");
    let summary: String = session.summary.replace('\n', " ").chars().take(60).collect();
    format!("{summary}{tag} ({place})")
}

/// Sends a prompt and prints the answer.
async fn send(prompt: &str, options: Options) -> Outcome<()> {
    let answer = query(prompt, options).await?.collect().await.into_result()?;
    println!("     {}", answer.text());
    Ok(())
}

/// Simulates a model that counts the prompts of the conversation.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        Reply::text(format!("This is prompt {} of the conversation.", request.prompts().len()))
    })
}
