//! What a hook, a permission and a tool of this process cost, timed at the CLI's end, beside a bare blocking loop that
//! answers a fixed line; and what an idle session costs in memory.
//!
//! `cargo bench -p claude-agent-kit --bench round_trip`. The benchmark is its own CLI: started with
//! a role, it speaks the protocol just far enough. Pinned means that client and CLI share one CPU
//! (by `taskset`), which takes the noise of the scheduler away.

#![expect(clippy::print_stdout, reason = "a benchmark and a CLI print")]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{EnvironmentPolicy, Options, Permission, Session, ToolServer, query};
use serde::Deserialize;

/// Round trips of one round.
const TRIPS: usize = 2_000;
const ROUNDS: usize = 11;
const SESSIONS: usize = 1_000;

/// Set for the CLI: what it asks.
const ROLE: &str = "ROUND_TRIP_ROLE";
/// Set for the measurement that is pinned.
const PINNED: &str = "ROUND_TRIP_PINNED";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    if let Ok(role) = env::var(ROLE) {
        return cli(&role);
    }
    if env::var_os(PINNED).is_some() {
        return compare("pinned to one CPU");
    }
    println!("{TRIPS} round trips a round, {ROUNDS} rounds; microseconds, median (quartiles)");
    let pinned = Command::new("taskset")
        .args(["-c", "0"])
        .arg(env::current_exe()?)
        .env(PINNED, "1")
        .status();
    if !pinned.is_ok_and(|status| status.success()) {
        println!("pinned: skipped, there is no taskset here");
    }
    compare("unpinned")?;
    idle_sessions()
}

fn compare(name: &str) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for role in ["hook", "permission", "tool"] {
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            floor.push(bare(role)?);
            ours.push(runtime.block_on(with_sdk(role))?);
        }
        let over = ours.iter().zip(&floor).map(|(ours, floor)| ours - floor).collect();
        let ratio = ours.iter().zip(&floor).map(|(ours, floor)| ours / floor).collect();
        println!(
            "{role}, {name}: bare {}, SDK {}, over it {}, ratio {}",
            spread(floor),
            spread(ours),
            spread(over),
            spread(ratio)
        );
    }
    Ok(())
}

/// The median round trip in microseconds of a client that does nothing but answer.
fn bare(role: &str) -> Outcome<f64> {
    let mut child = Command::new(env::current_exe()?)
        .env_clear()
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    let output = child.stdout.take().ok_or("no stdout")?;
    input.write_all(b"{\"request_id\":\"i\"}\n{}\n")?;
    let answer = match role {
        "hook" => "{}",
        "permission" => r#"{"behavior":"allow","updatedInput":{}}"#,
        _ => {
            r#"{"mcp_response":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"5"}]}}}"#
        }
    };
    let mut measured = None;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some(id) = id_of(&line).filter(|_| line.contains("\"control_request\"")) {
            let answer = format!(
                r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}","response":{answer}}}}}"#
            );
            input.write_all(format!("{answer}\n").as_bytes())?;
        } else if let Some((_, rest)) = line.split_once("\"result\":\"") {
            measured = rest.split('"').next().and_then(|text| text.parse().ok());
            break;
        }
    }
    drop(input);
    child.wait()?;
    measured.ok_or_else(|| "no result".into())
}

/// What the tool is given.
#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

async fn with_sdk(role: &str) -> Outcome<f64> {
    let options = options(role)?;
    let options = match role {
        "hook" => options.on(PreToolUse, |_, _| async {}),
        "permission" => options.can_use_tool(|_, _| async { Permission::allow() }),
        _ => {
            let add = |pair: Pair| async move { Ok((pair.a + pair.b).to_string()) };
            options.tool_server(ToolServer::new("calc").tool("add", "Adds two numbers", add))
        }
    };
    let result = query("go", options).await?.final_result().await?.ok_or("no result")?;
    Ok(result.result.as_deref().ok_or("no figure")?.parse()?)
}

fn options(role: &str) -> Outcome<Options> {
    Ok(Options::new()
        .cli_path(env::current_exe()?)
        .skip_version_check(true)
        .environment(EnvironmentPolicy::Clean)
        .env(ROLE, role))
}

/// How much the host grows by sessions that only wait.
fn idle_sessions() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // The first ones bring what is needed once.
        let warm = start_sessions(50).await?;
        let before = resident_kib()?;
        let sessions = start_sessions(SESSIONS).await?;
        let grown = resident_kib()?.saturating_sub(before);
        let each = f64::from(u32::try_from(grown)?) / f64::from(u32::try_from(SESSIONS)?);
        println!("{SESSIONS} idle sessions: {each:.1} KiB each in the host");
        for session in sessions.iter().chain(&warm) {
            session.stop().await?;
        }
        Ok(())
    })
}

async fn start_sessions(count: usize) -> Outcome<Vec<Session>> {
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(Session::start(options("idle")?).await?);
    }
    Ok(sessions)
}

fn resident_kib() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
}

/// The CLI's side: handshake, prompt, then `TRIPS` requests, each sent when the last is answered.
fn cli(role: &str) -> Outcome<()> {
    let mut input = std::io::stdin().lock().lines();
    let mut output = std::io::stdout().lock();
    let request = input.next().ok_or("no handshake")??;
    let id = id_of(&request).ok_or("no id")?;
    writeln!(
        output,
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}","response":{{"hooks_applied":true}}}}}}"#
    )?;
    let Some(prompt) = input.next() else { return Ok(()) };
    prompt?;
    // As the real CLI does before it asks anything.
    writeln!(output, r#"{{"type":"system","subtype":"init","session_id":"s"}}"#)?;
    let mut trips = Vec::with_capacity(TRIPS);
    let mut line = String::new();
    for trip in 0..TRIPS {
        line.clear();
        write_request(&mut line, role, trip)?;
        let began = Instant::now();
        output.write_all(line.as_bytes())?;
        output.flush()?;
        input.next().ok_or("no answer")??;
        trips.push(began.elapsed());
    }
    trips.sort();
    let median = trips.get(TRIPS / 2).copied().unwrap_or(Duration::ZERO);
    writeln!(
        output,
        r#"{{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"{:.2}"}}"#,
        median.as_secs_f64() * 1e6
    )?;
    output.flush()?;
    // Until the input ends.
    while let Some(Ok(_)) = input.next() {}
    Ok(())
}

fn write_request(line: &mut String, role: &str, trip: usize) -> Outcome<()> {
    match role {
        "hook" => writeln!(
            line,
            r#"{{"type":"control_request","request_id":"cli_{trip}","request":{{"subtype":"hook_callback","callback_id":"hook_0","input":{{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_use_id":"toolu_{trip}"}},"tool_use_id":"toolu_{trip}"}}}}"#
        )?,
        "permission" => writeln!(
            line,
            r#"{{"type":"control_request","request_id":"cli_{trip}","request":{{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{{"command":"ls"}},"permission_suggestions":[],"tool_use_id":"toolu_{trip}"}}}}"#
        )?,
        _ => writeln!(
            line,
            r#"{{"type":"control_request","request_id":"cli_{trip}","request":{{"subtype":"mcp_message","server_name":"calc","message":{{"method":"tools/call","params":{{"name":"add","arguments":{{"a":2,"b":3}},"_meta":{{"claudecode/toolUseId":"toolu_{trip}","progressToken":{trip}}}}},"jsonrpc":"2.0","id":2}}}}}}"#
        )?,
    }
    Ok(())
}

fn id_of(line: &str) -> Option<&str> {
    line.split_once("\"request_id\":\"")?.1.split('"').next()
}

/// A median with its quartiles.
fn spread(mut figures: Vec<f64>) -> String {
    figures.sort_by(f64::total_cmp);
    let at = |part: usize| figures.get(figures.len() * part / 4).copied().unwrap_or(0.0);
    format!("{:.2} ({:.2}-{:.2})", at(2), at(1), at(3))
}
