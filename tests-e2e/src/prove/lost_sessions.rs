//! Takes a conversation away from a stopped host of the real CLI, and counts the tools that its CLI still starts.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::killed_hosts::sqlite_url;
use crate::harness::Harness;

/// The longest time after which a tool may start.
const LIMIT_MS: u64 = 1_500;

/// A limit for hangs.
const HANG: Duration = Duration::from_secs(120);

/// The tools that must have started before the host is stopped.
const WARM_UP: usize = 3;

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e13";

/// The results of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Hosts that lost their session.
    pub lost: usize,
    /// Tools that started while the hosts were stopped.
    pub while_stopped: usize,
    /// Tools that started after the hosts knew.
    pub after: usize,
    /// The longest time from the knowledge of a host to the start of a tool, in milliseconds.
    pub latest_ms: u64,
    /// The longest time from the knowledge of a host to the exit of its CLI, in milliseconds.
    pub exit_ms: u64,
}

impl Count {
    /// Returns whether the claim holds.
    pub fn holds(&self) -> bool {
        self.latest_ms <= LIMIT_MS
    }

    /// Adds another round.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.while_stopped += other.while_stopped;
        self.after += other.after;
        self.latest_ms = self.latest_ms.max(other.latest_ms);
        self.exit_ms = self.exit_ms.max(other.exit_ms);
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sessions lost, {} tools started while the host was stopped, {} after it knew, the last one {} ms \
             after; CLI gone after at most {} ms",
            self.lost, self.while_stopped, self.after, self.latest_ms, self.exit_ms
        )
    }
}

/// Returns a model that calls tools for ever in the first host, and answers the second one.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        if request.last_prompt().as_deref() != Some("endless") {
            return Reply::text("Mine.");
        }
        let command = "date +%s%3N >> started";
        Reply::tool("Bash", json!({"command": command, "description": "Record the time"}))
    })
}

/// Lets a second host take the conversation of a first one that is stopped with SIGSTOP and continued then.
///
/// # Errors
/// Returns an error when a host did something else than expected.
pub async fn count(harness: &Harness, host: &Path) -> Result<Count, Box<dyn Error>> {
    harness.api().set_script(script());
    let started = harness.project().join("started");
    fs::write(&started, "")?;
    let (mut first, mut lines) = spawn(host, "store-lost", &task(harness, "endless", "a")?)?;
    let pid = first.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or("no process")?;
    tokio::time::timeout(HANG, async {
        while times(&started).len() < WARM_UP {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await?;
    stop_without_locks(pid).await?;
    let before = times(&started).len();
    let (mut second, mut output) = spawn(host, "store-turn", &task(harness, "mine", "b")?)?;
    expect(&mut output, "stored: true").await?;
    let status = tokio::time::timeout(HANG, second.wait()).await??;
    if !status.success() {
        return Err(format!("the second host failed: {status}").into());
    }
    let while_stopped = times(&started).len() - before;
    kill_process(pid, Signal::CONT)?;
    let knew = expect(&mut lines, "superseded: ").await?.parse::<u64>()?;
    let gone = expect(&mut lines, "gone: ").await?.parse::<u64>()?;
    tokio::time::timeout(HANG, first.wait()).await??;
    let after: Vec<u64> = times(&started).into_iter().filter(|time| *time > knew).collect();
    let latest_ms = after.iter().max().map_or(0, |last| last - knew);
    let exit_ms = gone.saturating_sub(knew);
    Ok(Count { lost: 1, while_stopped, after: after.len(), latest_ms, exit_ms })
}

/// Stops a host, but not during a commit: SQLite keeps its lock then, and no other process can write to the file.
async fn stop_without_locks(pid: Pid) -> Result<(), Box<dyn Error>> {
    tokio::time::timeout(HANG, async {
        loop {
            kill_process(pid, Signal::STOP)?;
            wait_until_stopped(pid).await?;
            if !has_write_lock(pid)? {
                return Ok(());
            }
            kill_process(pid, Signal::CONT)?;
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
    })
    .await?
}

/// Waits until no thread of a process runs: the signal takes effect later than `kill` returns.
async fn wait_until_stopped(pid: Pid) -> io::Result<()> {
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    loop {
        let mut is_running = false;
        for task in fs::read_dir(&tasks)? {
            // A thread that has ended has no state.
            let Ok(state) = fs::read_to_string(task?.path().join("stat")) else { continue };
            // The name in parentheses may contain anything.
            let state = state.rsplit_once(") ").map(|(_, rest)| rest.starts_with('T'));
            is_running |= state != Some(true);
        }
        if !is_running {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn has_write_lock(pid: Pid) -> io::Result<bool> {
    let owner = pid.as_raw_nonzero().to_string();
    let locks = fs::read_to_string("/proc/locks")?;
    Ok(locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&"WRITE") && words.contains(&&*owner)
    }))
}

/// Returns when the tools started.
fn times(file: &Path) -> Vec<u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn task(harness: &Harness, prompt: &str, machine: &str) -> Result<String, Box<dyn Error>> {
    let config = harness.root().join(format!("config-{machine}"));
    fs::create_dir_all(&config)?;
    let mut variables = harness.variables();
    variables.insert("CLAUDE_CONFIG_DIR".to_owned(), config.to_string_lossy().into_owned());
    let task: Value = json!({
        "prompt": prompt,
        "session": ID,
        "store": sqlite_url(harness),
        "cli": harness.program(),
        "cwd": harness.project(),
        "variables": variables,
    });
    Ok(task.to_string())
}

type HostLines = Lines<BufReader<ChildStdout>>;

fn spawn(host: &Path, command: &str, task: &str) -> Result<(Child, HostLines), Box<dyn Error>> {
    let mut child = Command::new(host)
        .args([command, task])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    Ok((child, lines))
}

/// Reads the next line, which must have this prefix, and returns its rest.
async fn expect<R: AsyncRead + Unpin>(
    lines: &mut Lines<BufReader<R>>,
    prefix: &str,
) -> Result<String, Box<dyn Error>> {
    let line = tokio::time::timeout(HANG, lines.next_line()).await??;
    let line = line.ok_or_else(|| format!("the host ended before `{prefix}`"))?;
    let rest = line.strip_prefix(prefix);
    Ok(rest.ok_or_else(|| format!("`{line}` instead of `{prefix}`"))?.to_owned())
}
