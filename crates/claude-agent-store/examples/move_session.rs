//! Moves a conversation to another machine: one process is killed in the middle of a tool, and another one
//! with another config directory continues the conversation from the store.
//!
//! Without arguments it uses a simulated CLI and a SQLite file, with `--cli claude` the installed CLI, and with
//! `--postgres postgres://user:password@host/database` (feature `postgres`) a database. With
//! `--s3 s3://bucket/prefix?endpoint=http://localhost:8333` (feature `s3`) it uses a bucket, with the credentials of
//! the environment.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use claude_agent_kit::store::{SessionStore, StoreOptions};
use claude_agent_kit::testing::{ApiRequest, Reply, Script, demo_options};
use claude_agent_kit::{Conversation, Item, Options, Session};
#[cfg(feature = "postgres")]
use claude_agent_store::PostgresStore;
use claude_agent_store::SqliteStore;
#[cfg(feature = "s3")]
use claude_agent_store::{S3Options, S3Store};
use serde_json::json;

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    match std::env::var("MACHINE").ok().as_deref() {
        Some("first") => first_machine(Path::new(&arguments[1])).await,
        Some("second") => second_machine(Path::new(&arguments[1])).await,
        _ => both_machines(&arguments),
    }
}

/// Starts both processes, and kills the first one.
fn both_machines(arguments: &[String]) -> Outcome {
    let folder = std::env::temp_dir().join(format!("move-session-{}", std::process::id()));
    // A store on a server has the conversations of earlier runs.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    let session =
        format!("{:08x}-0000-4000-8000-{:012x}", std::process::id(), now & 0xffff_ffff_ffff);
    let machine = |name: &str| {
        let mut command = Command::new(&arguments[0]);
        command.arg(&folder).args(&arguments[1..]);
        command.env("MACHINE", name).env("SESSION", &session);
        command
    };
    let mut first = machine("first").stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(first.stdout.take().ok_or("no stdout")?).lines();
    for line in lines {
        let line = line?;
        println!("first machine: {line}");
        if line.contains("running") {
            first.kill()?;
            println!("first machine: killed");
        }
    }
    first.wait()?;
    let status = machine("second").status()?;
    std::fs::remove_dir_all(folder)?;
    if status.success() { Ok(()) } else { Err("the second machine failed".into()) }
}

async fn first_machine(folder: &Path) -> Outcome {
    let conversation = Conversation::with_id(std::env::var("SESSION")?);
    let session = Session::start(options(folder, "a").await?.conversation(conversation)).await?;
    let outcome = session.send("Remember the number 42.").await?.finish().await?;
    println!("{} (stored: {})", outcome.text.trim(), outcome.stored == Some(true));
    let mut turn = session.send("Run the long command.").await?;
    while let Some(item) = turn.next().await {
        if let Item::Message(message) = item?
            && message.tool_calls().next().is_some()
        {
            println!("running a command");
            std::io::stdout().flush()?;
        }
    }
    Err("the process was not killed".into())
}

async fn second_machine(folder: &Path) -> Outcome {
    let conversation = Conversation::resume(std::env::var("SESSION")?);
    let session = Session::start(options(folder, "b").await?.conversation(conversation)).await?;
    let outcome = session.send("Which number was it?").await?.finish().await?;
    println!("second machine: {}", outcome.text.trim());
    session.stop().await?;
    Ok(())
}

/// Returns options with a config directory and a working directory of their own; only the store is shared.
async fn options(folder: &Path, name: &str) -> Result<Options, Box<dyn Error>> {
    let create = |path: PathBuf| std::fs::create_dir_all(&path).map(|()| path);
    let (config, work) =
        (create(folder.join(name).join("config"))?, create(folder.join(name).join("work"))?);
    let store = open_store(folder).await?;
    Ok(demo_options(script())
        .cwd(work)
        .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
        .allowed_tools(["Bash"])
        .store(StoreOptions::new("example", store).project("move-session")))
}

/// Opens the store that the arguments name, or a SQLite file.
async fn open_store(folder: &Path) -> Result<Arc<dyn SessionStore>, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let named = arguments.windows(2).find(|pair| pair[1].contains("://"));
    Ok(match named.map(|pair| (pair[0].as_str(), pair[1].as_str())) {
        None => Arc::new(SqliteStore::open(folder.join("sessions.db")).await?),
        #[cfg(feature = "postgres")]
        Some(("--postgres", url)) => Arc::new(PostgresStore::open(url).await?),
        #[cfg(feature = "s3")]
        Some(("--s3", url)) => {
            let options = S3Options::new(url)?.credentials_from_environment();
            Arc::new(S3Store::open_with(options).await?)
        }
        Some((option, _)) => return Err(format!("`{option}` needs a feature of its name").into()),
    })
}

/// Simulates a model that remembers what it was told.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let prompts = request.prompts();
        let knows = prompts.iter().any(|prompt| prompt.contains("42"));
        match prompts.last().map(String::as_str) {
            Some("Run the long command.") => Reply::tool("Bash", json!({"command": "sleep 60"})),
            Some("Which number was it?") if knows => Reply::text("It was 42."),
            Some("Which number was it?") => Reply::text("I do not remember."),
            _ => Reply::text("I will."),
        }
    })
}
