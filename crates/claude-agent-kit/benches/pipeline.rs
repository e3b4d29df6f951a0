//! A query from pipe to typed message, beside the floor: a bare `std` loop with `BufReader` and
//! `serde_json::Value` on the same bytes from the same kind of process.
//!
//! `cargo bench -p claude-agent-kit --bench pipeline` prints rates and their ratio. The two are
//! measured by turns, so that what disturbs one disturbs the other; medians with quartiles.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_kit::{EnvironmentPolicy, Item, Options, query};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Messages of one round.
const MESSAGES: usize = 200_000;
const ROUNDS: usize = 11;
const STARTS: usize = 51;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    println!("{MESSAGES} messages a round, {ROUNDS} rounds; median (quartiles)");
    for (name, line, target) in
        [("flood, 400 bytes", assistant(), 1.5), ("deltas, 240 bytes", delta(), 1.8)]
    {
        let cli = Cli::new(&folder, name, &line, MESSAGES)?;
        compare(&runtime, name, &cli, target)?;
    }
    let cli = Cli::new(&folder, "start", &assistant(), 1)?;
    starts(&runtime, &cli)
}

fn compare(runtime: &Runtime, name: &str, cli: &Cli, target: f64) -> Outcome<()> {
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floor.push(rate(cli.floor()?));
        ours.push(rate(runtime.block_on(cli.query())?));
    }
    let ratios = ours.iter().zip(&floor).map(|(ours, floor)| ours / floor).collect();
    println!("{name}: floor {} k/s, query {} k/s", Spread::of(floor), Spread::of(ours));
    println!("{name}: ratio {} (target {target})", Spread::of(ratios));
    Ok(())
}

/// The time from `query()` to its first item, beside a bare start of the same program to its first
/// line.
fn starts(runtime: &Runtime, cli: &Cli) -> Outcome<()> {
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        floor.push(cli.floor_start()?.as_secs_f64() * 1e6);
        ours.push(runtime.block_on(cli.query_start())?.as_secs_f64() * 1e6);
    }
    let ratios = ours.iter().zip(&floor).map(|(ours, floor)| ours / floor).collect();
    println!(
        "to the first item: floor {} us, query {} us, ratio {}",
        Spread::of(floor),
        Spread::of(ours),
        Spread::of(ratios)
    );
    Ok(())
}

/// Thousands per second.
fn rate(time: Duration) -> f64 {
    u32::try_from(MESSAGES).map_or(0.0, f64::from) / time.as_secs_f64() / 1e3
}

/// A program that answers the handshake, takes the prompt and writes a file: as little work of its
/// own as a CLI can do.
struct Cli {
    program: PathBuf,
}

impl Cli {
    fn new(folder: &TempDir, name: &str, line: &str, count: usize) -> Outcome<Self> {
        let name = name.replace([' ', ','], "_");
        let lines = folder.path().join(format!("{name}.ndjson"));
        fs::write(&lines, format!("{line}\n").repeat(count))?;
        let program = folder.path().join(name);
        fs::write(&program, script(&lines))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(Self { program })
    }

    /// The floor: no handshake to speak of, no types, no checks, one thread.
    fn floor(&self) -> Outcome<Duration> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .spawn()?;
        let mut input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        input.write_all(b"{\"request_id\":\"r\"}\n{}\n")?;
        let mut lines = BufReader::new(output).lines();
        lines.next().ok_or("no handshake")??;
        let began = Instant::now();
        let mut count = 0;
        for line in lines {
            let value: serde_json::Value = serde_json::from_str(&line?)?;
            if value["type"] == "result" {
                break;
            }
            count += 1;
        }
        let time = began.elapsed();
        drop(input);
        child.wait()?;
        if count == MESSAGES { Ok(time) } else { Err(format!("{count} messages").into()) }
    }

    async fn query(&self) -> Outcome<Duration> {
        let mut stream = query("go", self.options()).await?;
        let mut began = None;
        let mut count = 0;
        while let Some(item) = stream.next().await {
            began.get_or_insert_with(Instant::now);
            match item? {
                Item::Message(message) if matches!(message.body, claude_wire::Body::Result(_)) => {
                    break;
                }
                Item::Message(_) => count += 1,
                Item::Warning(warning) => return Err(warning.to_string().into()),
            }
        }
        let time = began.ok_or("no message")?.elapsed();
        stream.close().await;
        if count == MESSAGES { Ok(time) } else { Err(format!("{count} messages").into()) }
    }

    fn floor_start(&self) -> Outcome<Duration> {
        let began = Instant::now();
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .spawn()?;
        let mut input = child.stdin.take().ok_or("no stdin")?;
        let output = child.stdout.take().ok_or("no stdout")?;
        input.write_all(b"{\"request_id\":\"r\"}\n{}\n")?;
        let mut lines = BufReader::new(output).lines();
        lines.next().ok_or("no handshake")??;
        let first: serde_json::Value = serde_json::from_str(&lines.next().ok_or("no line")??)?;
        let time = began.elapsed();
        drop((input, first));
        child.wait()?;
        Ok(time)
    }

    async fn query_start(&self) -> Outcome<Duration> {
        let began = Instant::now();
        let mut stream = query("go", self.options()).await?;
        stream.next().await.ok_or("no item")??;
        let time = began.elapsed();
        stream.close().await;
        Ok(time)
    }

    fn options(&self) -> Options {
        Options::new()
            .cli_path(&self.program)
            .environment(EnvironmentPolicy::Clean)
            .env("PATH", "/usr/bin:/bin")
    }
}

fn script(lines: &Path) -> String {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#;
    format!(
        r#"#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.325 (Claude Code)"; exit 0; fi
IFS= read -r request
id=${{request#*\"request_id\":\"}}
id=${{id%%\"*}}
echo "{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{{}}}}}}"
IFS= read -r prompt
cat '{}'
echo '{result}'
read -r end
exit 0
"#,
        lines.display()
    )
}

fn assistant() -> String {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(9);
    format!(
        r#"{{"type":"assistant","message":{{"id":"msg_1794769616569207","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":"{}"}}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}},"context_management":null}},"parent_tool_use_id":null,"session_id":"26b2e340-f3b7-46c3-a124-f93c60a48c96","uuid":"5cac1209-2cab-44a4-bb84-e158f8cb4683","timestamp":"2026-11-15T19:06:56.574Z"}}"#,
        &text[..400]
    )
}

fn delta() -> String {
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some more words "}},"session_id":"4ca8c1ef-bad4-40ce-9e0c-b53b36c052b3","parent_tool_use_id":null,"uuid":"90b07c11-5db6-48a4-8b74-d15f4c8c6194"}"#.to_owned()
}

/// A median with its quartiles.
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |part: usize| figures.get(figures.len() * part / 4).copied().unwrap_or(0.0);
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = if self.median < 10.0 { 2 } else { 0 };
        let Self { low, median, high } = self;
        write!(f, "{median:.digits$} ({low:.digits$}-{high:.digits$})")
    }
}
