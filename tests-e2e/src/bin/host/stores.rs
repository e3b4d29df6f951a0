//! Hosts that use a store, and may be killed at any time.

use std::error::Error;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::store::StoreOptions;
use claude_agent_kit::{Conversation, ErrorKind, Options, Session};
use serde_json::Value;
use tests_e2e::prove::open_store;
#[cfg(target_os = "linux")]
use tests_e2e::prove::{appends, record_writes};

use crate::Outcome;

/// Sends a prompt, and prints whether the turn is stored.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn turn(task: &str) -> Outcome {
    let task: Value = serde_json::from_str(task)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let session = Session::start(options(&task).await?).await?;
        let outcome = session.send(text(&task, "prompt")?).await?.finish().await?;
        println!("stored: {}", outcome.stored == Some(true));
        session.stop().await?;
        println!("stopped");
        Ok(())
    })
}

/// Sends a prompt whose session is lost to another host, and prints when this host knew and when its CLI was gone.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn lost(task: &str) -> Outcome {
    let task: Value = serde_json::from_str(task)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let session = Session::start(options(&task).await?).await?;
        let turn = session.send(text(&task, "prompt")?).await?;
        match turn.finish().await {
            Err(error) if error.kind() == ErrorKind::Superseded => {
                println!("superseded: {}", unix_ms()?);
            }
            other => println!("{:?}", other.map(|outcome| outcome.stored)),
        }
        // Waits for the exit of the CLI; the error is that of the turn.
        drop(session.stop().await);
        println!("gone: {}", unix_ms()?);
        Ok(())
    })
}

fn unix_ms() -> Result<u128, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())
}

/// Appends batches to sessions, and prints which are acknowledged.
#[cfg(target_os = "linux")]
pub(crate) fn appends(task: &str) -> Outcome {
    let outcome = tokio::runtime::Runtime::new()?.block_on(appends::run_host(task));
    outcome.map_err(|error| -> Box<dyn Error> { error })
}

/// Writes records, and prints which writes are acknowledged.
#[cfg(target_os = "linux")]
pub(crate) fn record_writes(task: &str) -> Outcome {
    let outcome = tokio::runtime::Runtime::new()?.block_on(record_writes::run_host(task));
    outcome.map_err(|error| -> Box<dyn Error> { error })
}

pub(crate) async fn options(task: &Value) -> Result<Options, Box<dyn Error>> {
    let store = open_store(text(task, "store")?).await?;
    let options = Options::new()
        .cli_path(text(task, "cli")?)
        .cwd(Path::new(text(task, "cwd")?))
        .environment(EnvironmentPolicy::Clean)
        .allowed_tools(["Bash"])
        .store(StoreOptions::new("tenant", store).project("app"))
        .conversation(Conversation::resume_or_start(text(task, "session")?));
    let variables = task["variables"].as_object().ok_or("no variables")?;
    let variables = variables.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
    Ok(variables.fold(options, |options, (name, value)| options.env(name, value)))
}

pub(crate) fn text<'a>(task: &'a Value, name: &str) -> Result<&'a str, String> {
    task[name].as_str().ok_or_else(|| format!("no {name}"))
}
