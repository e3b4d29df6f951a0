//! Measures the speed of the simulated CLI, to ensure that load tests measure the client.
//!
//! `cargo bench -p claude-agent-testkit` prints the messages per second in memory and with real
//! pipes, and the time for a thousand concurrent instances.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults, Sim, SimProcess};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SESSION: &[&str] =
    &["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"];
const PROMPT: &[u8] =
    b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hello\"},\"parent_tool_use_id\":null,\"session_id\":\"\"}\n";

/// The number of messages per run and the number of runs; the fastest run counts.
const MESSAGES: usize = 200_000;
const RUNS: usize = 5;
const INSTANCES: usize = 1_000;

type BenchResult<T> = Result<T, Box<dyn Error>>;

fn main() -> BenchResult<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let flood = || Sim::new().faults(Faults::new().before("assistant", Fault::Messages(MESSAGES)));
    report("flood of messages, in memory", best(|| runtime.block_on(lines_of(flood())))?);
    let deltas = || {
        let answer = Reply::text("x".repeat(MESSAGES)).deltas_of(1);
        Sim::new().script(Script::new().otherwise([answer])).args(["--include-partial-messages"])
    };
    report("deltas of an answer, in memory", best(|| runtime.block_on(lines_of(deltas())))?);
    report("flood of messages, real pipes", best(flood_with_pipes)?);
    let began = Instant::now();
    runtime.block_on(concurrent_instances())?;
    println!("{INSTANCES} concurrent instances, one turn each: {:?}", began.elapsed());
    Ok(())
}

fn report(name: &str, (lines, time): (usize, Duration)) {
    let per_second = u32::try_from(lines).map_or(0.0, f64::from) / time.as_secs_f64();
    println!("{name}: {:.0} thousand per second", per_second / 1000.0);
}

fn best(run: impl Fn() -> BenchResult<(usize, Duration)>) -> BenchResult<(usize, Duration)> {
    let mut best = run()?;
    for _ in 1..RUNS {
        let next = run()?;
        if next.1 < best.1 {
            best = next;
        }
    }
    Ok(best)
}

/// Runs a turn and counts its lines.
async fn lines_of(sim: Sim) -> BenchResult<(usize, Duration)> {
    let began = Instant::now();
    let lines = turn(sim.args(SESSION.iter().copied()).start()).await?;
    Ok((lines, began.elapsed()))
}

async fn turn(mut process: SimProcess) -> BenchResult<usize> {
    process.stdin.write_all(PROMPT).await?;
    process.stdin.shutdown().await?;
    let mut chunk = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        let count = process.stdout.read(&mut chunk).await?;
        if count == 0 {
            return Ok(lines);
        }
        lines += chunk[..count].split(|byte| *byte == b'\n').count() - 1;
    }
}

fn flood_with_pipes() -> BenchResult<(usize, Duration)> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("flood.sim");
    std::fs::write(
        &script,
        format!("otherwise\n  say \"x\"\nfaults\n  before assistant messages {MESSAGES}\n"),
    )?;
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_claude-sim"))
        .args(SESSION)
        .env_clear()
        .env("HOME", folder.path())
        .env("CLAUDE_SIM_SCRIPT", &script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no stdin")?.write_all(PROMPT)?;
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    let mut chunk = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        let count = stdout.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        lines += chunk[..count].split(|byte| *byte == b'\n').count() - 1;
    }
    child.wait()?;
    Ok((lines, began.elapsed()))
}

async fn concurrent_instances() -> BenchResult<()> {
    let started: Vec<SimProcess> =
        (0..INSTANCES).map(|_| Sim::new().args(SESSION.iter().copied()).start()).collect();
    let turns: Vec<_> = started
        .into_iter()
        .map(|process| tokio::spawn(async move { turn(process).await.map_err(|e| e.to_string()) }))
        .collect();
    for turn in turns {
        turn.await??;
    }
    Ok(())
}
