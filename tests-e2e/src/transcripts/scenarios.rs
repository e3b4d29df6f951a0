//! The scenarios whose transcripts are recorded.

use std::error::Error;
use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use claude_agent_kit::history::{ForkOptions, History, MessageFilter};
use claude_agent_kit::{Conversation, Options, PermissionMode, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use crate::harness::{Harness, processes};

type Played<'a> = Pin<Box<dyn Future<Output = Result<(), Box<dyn Error>>> + 'a>>;

/// A scenario whose transcripts are recorded.
#[derive(Debug, Clone, Copy)]
pub struct TranscriptScenario {
    /// The name, which is that of the directory.
    pub name: &'static str,
    script: fn() -> Script,
    play: for<'a> fn(&'a Harness) -> Played<'a>,
}

impl TranscriptScenario {
    pub(super) fn script(&self) -> Script {
        (self.script)()
    }

    pub(super) fn play<'a>(&self, harness: &'a Harness) -> Played<'a> {
        (self.play)(harness)
    }
}

macro_rules! scenarios {
    ($($name:ident, $script:expr;)+) => {
        /// All scenarios.
        pub const SCENARIOS: &[TranscriptScenario] = &[$(TranscriptScenario {
            name: stringify!($name),
            script: $script,
            play: |harness| Box::pin($name(harness)),
        }),+];
    };
}

scenarios! {
    tools, || bash(&["echo one", "echo two", "echo three"]);
    thinking, || Script::new().otherwise([
        Reply::thinking("Six times seven.").and_text("42."),
    ]);
    delegation, delegation_script;
    compaction, hello;
    rename, hello;
    tag, hello;
    fork, hello;
    interrupt, || Script::new()
        .when("count", [Reply::text("one, two, ").and_text("three").hold()])
        .otherwise([Reply::text("Hello.")]);
    rewind, hello;
    queued_prompt, || bash(&["touch begun; until [ -e go ]; do sleep 0.05; done"]);
    checkpoints, || Script::new().otherwise([
        Reply::tool("Read", json!({"file_path": "notes.txt"})),
        Reply::tool("Write", json!({"file_path": "notes.txt", "content": "after\n"})),
        Reply::text("Done."),
    ]);
}

fn hello() -> Script {
    Script::new().otherwise([Reply::text("Hello.")])
}

/// Returns a model that runs these commands, all in one response, and then ends its turn.
fn bash(commands: &[&str]) -> Script {
    let call = |reply: Reply, command: &&str| {
        reply.and_tool("Bash", json!({"command": command, "description": "Run it"}))
    };
    Script::new().otherwise([commands.iter().fold(Reply::new(), call), Reply::text("Done.")])
}

fn delegation_script() -> Script {
    let agent = |prompt: &str| {
        json!({"description": "look", "prompt": prompt, "subagent_type": "general-purpose",
               "run_in_background": false})
    };
    let call = json!({"command": "echo inside", "description": "Run it"});
    Script::new()
        .when("look at the first", [Reply::tool("Bash", call), Reply::text("First.")])
        .when("look at the second", [Reply::text("Second.")])
        .otherwise([
            Reply::tool("Agent", agent("look at the first"))
                .and_tool("Agent", agent("look at the second")),
            Reply::text("Both done."),
        ])
}

fn options(harness: &Harness) -> Options {
    harness.options().allowed_tools(["Bash", "Agent", "Read", "Write"])
}

async fn turn(session: &Session, prompt: &str) -> Result<(), Box<dyn Error>> {
    session.send(prompt).await?.finish().await?;
    Ok(())
}

/// Runs a session with these prompts.
async fn session(options: Options, prompts: &[&str]) -> Result<Session, Box<dyn Error>> {
    let session = Session::start(options).await?;
    for prompt in prompts {
        turn(&session, prompt).await?;
    }
    Ok(session)
}

async fn tools(harness: &Harness) -> Result<(), Box<dyn Error>> {
    session(options(harness), &["run them", "again"]).await?.stop().await?;
    Ok(())
}

async fn thinking(harness: &Harness) -> Result<(), Box<dyn Error>> {
    session(options(harness), &["what is six times seven?"]).await?.stop().await?;
    Ok(())
}

async fn delegation(harness: &Harness) -> Result<(), Box<dyn Error>> {
    session(options(harness), &["delegate it"]).await?.stop().await?;
    Ok(())
}

async fn compaction(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let prompts = ["first", "second", "/compact", "third"];
    session(options(harness), &prompts).await?.stop().await?;
    Ok(())
}

async fn rename(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let session = session(options(harness), &["first"]).await?;
    session.rename("Release notes").await?;
    turn(&session, "second").await?;
    session.stop().await?;
    Ok(())
}

/// Returns the ID of a session that has been running.
fn id(session: &Session) -> Result<claude_wire::id::SessionId, Box<dyn Error>> {
    session.session_id().ok_or_else(|| "the session has no ID".into())
}

async fn tag(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let session = session(options(harness), &["first"]).await?;
    History::at(harness.sandbox().config()).tag(&id(&session)?, Some("release")).await?;
    turn(&session, "second").await?;
    session.stop().await?;
    Ok(())
}

/// Forks a session with the CLI, and with this SDK; the CLI then resumes the latter.
async fn fork(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let first = session(options(harness), &["first", "second"]).await?;
    let source = id(&first)?;
    first.stop().await?;
    let by_cli = options(harness).conversation(Conversation::fork(source.clone()));
    session(by_cli, &["in the fork"]).await?.stop().await?;
    let history = History::at(harness.sandbox().config());
    let copy = history.fork(&source, ForkOptions::new()).await?;
    let resumed = options(harness).conversation(Conversation::resume(copy));
    session(resumed, &["in the other fork"]).await?.stop().await?;
    Ok(())
}

async fn interrupt(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let session = session(options(harness), &["first"]).await?;
    let turn_to_interrupt = session.send("count").await?;
    let has_request =
        || {
            harness.api().requests().iter().any(|request| {
                request.prompts().last().is_some_and(|prompt| prompt.contains("count"))
            })
        };
    if !processes::until(Duration::from_secs(60), has_request).await {
        return Err("the CLI sent no request".into());
    }
    turn_to_interrupt.interrupt().await?;
    turn_to_interrupt.finish().await?;
    turn(&session, "after it").await?;
    session.stop().await?;
    Ok(())
}

/// Drops the last turn and continues without it.
async fn rewind(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let first = session(options(harness), &["first"]).await?;
    let dropped = first.send("dropped").await?;
    let prompt = dropped.message_id().clone();
    dropped.finish().await?;
    let source = id(&first)?;
    first.stop().await?;
    let history = History::at(harness.sandbox().config());
    let mut messages = history.messages(&source, MessageFilter::default()).await?.skip(1);
    let answer = messages.next().await.ok_or("the transcript has one message only")??;
    let answer = answer.uuid().ok_or("a message has no ID")?.into_owned();
    let conversation = Conversation::resume(source).at(answer).dropping_turn(prompt);
    session(options(harness).conversation(conversation), &["in its place"]).await?.stop().await?;
    Ok(())
}

/// Sends a prompt while a tool runs.
async fn queued_prompt(harness: &Harness) -> Result<(), Box<dyn Error>> {
    let session = Session::start(options(harness)).await?;
    let running = session.send("run it").await?;
    let begun = harness.project().join("begun");
    if !processes::until(Duration::from_secs(60), || begun.exists()).await {
        return Err("the tool does not run".into());
    }
    let mut messages = session.messages();
    let queued = session.send("one more thing").await?;
    let id = queued.message_id().as_str().to_owned();
    while let Some(item) = messages.next().await {
        let item = item?;
        let raw = item.message().and_then(|message| message.raw_str().map(str::to_owned));
        if raw.is_some_and(|raw| raw.contains("command_lifecycle") && raw.contains(&id)) {
            break;
        }
    }
    fs::write(harness.project().join("go"), "")?;
    running.finish().await?;
    queued.finish().await?;
    session.stop().await?;
    Ok(())
}

async fn checkpoints(harness: &Harness) -> Result<(), Box<dyn Error>> {
    fs::write(harness.project().join("notes.txt"), "before\n")?;
    let options = options(harness).permission_mode(PermissionMode::AcceptEdits);
    let session = Session::start(options.file_checkpointing(true)).await?;
    let change = session.send("change the notes").await?;
    let prompt = change.message_id().clone();
    change.finish().await?;
    session.rewind_files(prompt).await?;
    session.stop().await?;
    Ok(())
}
