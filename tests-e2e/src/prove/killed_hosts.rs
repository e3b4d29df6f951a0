//! Kills hosts of the real CLI while they continue one conversation on a store.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use claude_agent_kit::store::{Load, SessionKey, SessionStore};
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::Area;
use crate::harness::Harness;
use crate::simulation::rng::Rng;

/// The claim for SQLite.
pub const SQLITE: Area = Area {
    name: "killed-hosts",
    claim: "a conversation on SQLite survives kills of its host, on two config directories in turn",
    repetitions: 20,
};

/// The claim for PostgreSQL.
pub const POSTGRES: Area = Area {
    name: "killed-hosts-postgres",
    claim: "a conversation on PostgreSQL survives kills of its host, on two config directories in turn",
    repetitions: 20,
};

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e12";

/// The results of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Hosts that were killed.
    pub killed: usize,
    /// Turns that were acknowledged.
    pub acknowledged: usize,
    /// Commands that were executed.
    pub executed: usize,
}

/// Returns the URL of a SQLite file in the sandbox directory.
pub fn sqlite_url(harness: &Harness) -> String {
    format!("sqlite:{}", harness.root().join("sessions.db").display())
}

/// Returns a model that runs a command that names the prompt.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let prompt = request.last_prompt().unwrap_or_default();
        if request.assistant_turns_after_last_prompt() > 0 {
            return Reply::text("Done.");
        }
        let command = format!("echo {prompt} >> executed; sleep 0.3");
        Reply::tool("Bash", json!({"command": command, "description": "Run it"}))
    })
}

/// Kills `rounds` hosts, each with the program `host` and the store at `url`, and checks the conversation.
///
/// # Errors
/// Returns the violation.
pub async fn count(
    harness: &Harness,
    host: &Path,
    url: &str,
    rounds: usize,
    seed: u64,
) -> Result<Count, Box<dyn Error>> {
    harness.api().set_script(script());
    let mut rng = Rng::new(seed);
    let (mut count, mut acknowledged) = (Count::default(), Vec::new());
    for round in 0..rounds * 10 {
        let prompt = format!("round-{round}");
        let task = task(harness, url, &prompt, round % 2)?;
        // The last host is not killed.
        let is_last = count.killed == rounds;
        let kill_after = Duration::from_millis(rng.between(300, 2_000) as u64);
        let (stored, killed) = play(host, &task, (!is_last).then_some(kill_after)).await?;
        count.killed += usize::from(killed);
        if stored {
            acknowledged.push(prompt.clone());
        }
        if is_last {
            check(harness, url, &acknowledged, &prompt).await?;
            break;
        }
    }
    count.acknowledged = acknowledged.len();
    if count.killed < rounds {
        return Err(format!("only {} hosts were killed", count.killed).into());
    }
    let executed = fs::read_to_string(harness.project().join("executed")).unwrap_or_default();
    let lines: Vec<&str> = executed.lines().collect();
    let different: BTreeSet<&str> = lines.iter().copied().collect();
    if different.len() != lines.len() {
        return Err(format!("a command ran twice: {lines:?}").into());
    }
    count.executed = lines.len();
    Ok(count)
}

fn task(
    harness: &Harness,
    url: &str,
    prompt: &str,
    machine: usize,
) -> Result<String, Box<dyn Error>> {
    let config = harness.root().join(format!("config-{machine}"));
    fs::create_dir_all(&config)?;
    let mut variables = harness.variables();
    variables.insert("CLAUDE_CONFIG_DIR".to_owned(), config.to_string_lossy().into_owned());
    let task = json!({
        "prompt": prompt,
        "session": ID,
        "store": url,
        "cli": harness.program(),
        "cwd": harness.project(),
        "variables": variables,
    });
    Ok(task.to_string())
}

/// Runs a host, and returns whether it reported its turn as stored and whether it was killed.
async fn play(
    host: &Path,
    task: &str,
    kill_after: Option<Duration>,
) -> Result<(bool, bool), Box<dyn Error>> {
    let mut child = Command::new(host)
        .args(["store-turn", task])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let mut stored = false;
    let mut read = async || -> std::io::Result<()> {
        while let Some(line) = lines.next_line().await? {
            stored |= line == "stored: true";
        }
        Ok(())
    };
    let limit = kill_after.unwrap_or(Duration::from_secs(120));
    let killed = tokio::time::timeout(limit, read()).await.is_err();
    if killed {
        child.kill().await?;
        // What the host printed before it was killed counts.
        read().await?;
    }
    let status = child.wait().await?;
    if killed && kill_after.is_none() {
        return Err("the last host did not end".into());
    }
    if !killed && !status.success() {
        return Err(format!("a host failed: {status}").into());
    }
    Ok((stored, killed))
}

/// Checks that the model saw every acknowledged turn, and that no entry is stored twice.
async fn check(
    harness: &Harness,
    url: &str,
    acknowledged: &[String],
    last: &str,
) -> Result<(), Box<dyn Error>> {
    if acknowledged.last().map(String::as_str) != Some(last) {
        return Err("the last turn was not stored".into());
    }
    let requests = harness.api().requests();
    let request =
        requests.iter().rev().find(|request| request.last_prompt().as_deref() == Some(last));
    let seen = request.ok_or("the model was not asked")?.prompts();
    for prompt in acknowledged {
        let times = seen.iter().filter(|it| *it == prompt).count();
        if times != 1 {
            return Err(format!("the model saw {prompt} {times} times: {seen:?}").into());
        }
    }
    let store = super::open_store(url).await?;
    let key = SessionKey::new("tenant", "app", ID)?;
    let page = store.load(&key, Load::all().limit(1_000_000).max_bytes(usize::MAX)).await?;
    let ids: BTreeSet<&str> = page.entries.iter().map(|entry| entry.id.as_str()).collect();
    let texts: BTreeSet<&str> = page.entries.iter().map(|entry| &*entry.text).collect();
    let with_uuid = |text: &&str| text.contains("\"uuid\":");
    let all = page.entries.iter().map(|entry| &*entry.text).filter(with_uuid).count();
    let different = texts.into_iter().filter(with_uuid).count();
    if ids.len() != page.entries.len() || all != different {
        return Err("an entry is stored twice".into());
    }
    Ok(())
}
