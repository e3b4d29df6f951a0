//! The memory usage of a host whose CLI tries to exhaust it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::transport::{ChildFuture, Connection, Exit, InMemory};
use claude_agent_kit::{Item, Options, Session, query};
use serde_json::{Value, json};
use tests_e2e::harness::processes::ResourceUsage;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::sync::{mpsc, watch};

use crate::Outcome;

const MIB: usize = 1024 * 1024;

/// The capacity of a pipe.
const PIPE: usize = 64 * 1024;

/// The memory usage while the items were held, and a description of them.
type CaseResult = Result<(ResourceUsage, String), Box<dyn Error>>;

/// Runs a case and prints by how many MiB the process grew: while it held its items, and at its peak.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn run(case: &str) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let before = ResourceUsage::now();
        let (kept, summary) = match case {
            "kept-results" => kept_results(40, 8 * MIB).await?,
            "blank-lines" => blank_lines(40, 8 * MIB).await?,
            "warnings" => warnings(40, 4 * MIB).await?,
            "responses" => responses().await?,
            "tasks" => tasks(150, MIB).await?,
            "shared" => shared(10, 1_000_000).await?,
            other => return Err(format!("unknown case: \"{other}\"").into()),
        };
        let mib = |memory: usize| memory.saturating_sub(before.memory) / 1024;
        println!("{} {} {summary}", mib(kept.memory), mib(kept.peak_memory));
        Ok(())
    })
}

/// Keeps the small results of turns whose large messages are dropped.
async fn kept_results(turns: usize, size: usize) -> CaseResult {
    let (session, mut cli) = start(Options::new()).await?;
    let mut kept = Vec::new();
    let long = json!({"type": "assistant", "session_id": "s",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "x".repeat(size)}]}});
    let long = format!("{long}\n");
    for _ in 0..turns {
        let mut turn = session.send("look").await?;
        let user = cli.read().await?;
        let result = json!({"type": "result", "subtype": "success", "session_id": "s",
                            "user_message_uuids": [user["uuid"]]});
        let lines = format!("{long}{result}\n");
        let writing = async { cli.write(lines.as_bytes()).await };
        let reading = async {
            while let Some(Ok(item)) = turn.next().await {
                kept.extend(result_of(item));
            }
        };
        tokio::join!(writing, reading).0?;
    }
    Ok(while_held(format!("{} results", kept.len()), kept))
}

fn result_of(item: Item) -> Option<claude_wire::Message> {
    let Item::Message(message) = item else { return None };
    (message.body.kind() == Some("result")).then_some(message)
}

/// Leaves messages unread that each follow a long blank line.
async fn blank_lines(count: usize, size: usize) -> CaseResult {
    let (session, mut cli) = start(Options::new()).await?;
    let unread = session.messages();
    let lines = format!("{}\n{{\"type\":\"a\"}}\n", " ".repeat(size));
    for _ in 0..count {
        cli.write(lines.as_bytes()).await?;
    }
    all_was_read(&session, &mut cli).await?;
    Ok(while_held(format!("{count} messages"), unread))
}

/// Leaves warnings unread that are about requests with a very long subtype.
async fn warnings(count: usize, size: usize) -> CaseResult {
    let (session, mut cli) = start(Options::new()).await?;
    let unread = session.messages();
    let subtype = "x".repeat(size);
    let request = json!({"type": "control_request", "request_id": "r",
                         "request": {"subtype": subtype}});
    let request = format!("{request}\n");
    for _ in 0..count {
        let (written, read) = tokio::join!(cli.output.write_all(request.as_bytes()), async {
            cli.input.next_line().await
        });
        written?;
        read?;
    }
    Ok(while_held(format!("{count} warnings"), unread))
}

/// Sends hook requests and reads no response.
async fn responses() -> CaseResult {
    let reason = "no".repeat(32 * 1024);
    let options = Options::new().on(PreToolUse, move |_, _| {
        let reason = reason.clone();
        async move { HookResponse::deny(reason) }
    });
    let (session, mut cli) = start(options).await?;
    let input = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}});
    for number in 0..6_000 {
        let request = json!({"type": "control_request", "request_id": format!("r{number}"),
            "request": {"subtype": "hook_callback", "callback_id": "hook_0", "input": input}});
        if cli.write(format!("{request}\n").as_bytes()).await.is_err() {
            break;
        }
    }
    let mut events = session.events();
    let mut last = None;
    // The time limit covers a session that does not end.
    let ended = async {
        while let Some(event) = events.next().await {
            last = Some(event);
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), ended).await.is_ok();
    Ok((ResourceUsage::now(), format!("ended: {in_time}, {last:?}")))
}

/// Reads and drops the messages of a query that starts many tasks with long IDs.
async fn tasks(count: usize, size: usize) -> CaseResult {
    let (options, mut started) = with_cli(Options::new());
    let mut stream = query("go", options).await?;
    let mut cli = started.recv().await.ok_or("no CLI was started")?;
    cli.handshake().await?;
    let id = "x".repeat(size);
    let writing = async {
        for number in 0..count {
            let line = json!({"type": "system", "subtype": "task_started", "session_id": "s",
                "task_id": format!("{number}{id}"), "task_type": "local_agent"});
            cli.write(format!("{line}\n").as_bytes()).await?;
        }
        Ok::<_, Box<dyn Error>>(())
    };
    let reading = async {
        for _ in 0..count {
            drop(stream.next().await);
        }
    };
    tokio::join!(writing, reading).0?;
    Ok(while_held(format!("{count} tasks"), stream))
}

/// Ends turns with a result that names very many messages.
async fn shared(turns: usize, count: usize) -> CaseResult {
    let (session, mut cli) = start(Options::new()).await?;
    let mut open = Vec::new();
    let mut named = Vec::new();
    for _ in 0..turns {
        open.push(session.send("hello").await?);
        named.push(cli.read().await?["uuid"].clone());
    }
    named.resize(count, json!(""));
    let result = json!({"type": "result", "subtype": "success", "session_id": "s",
                        "user_message_uuids": named});
    let result = format!("{result}\n");
    cli.write(result.as_bytes()).await?;
    let mut shared = Vec::new();
    for turn in open {
        // The result itself is decoded for each turn and dropped here.
        shared.push(turn.finish().await?.shared_with);
    }
    let all: usize = shared.iter().map(Vec::len).sum();
    Ok(while_held(format!("{all} names"), shared))
}

/// Measures the memory of the process before `kept` is dropped.
fn while_held<T>(summary: String, kept: T) -> (ResourceUsage, String) {
    let now = ResourceUsage::now();
    drop(kept);
    (now, summary)
}

/// Waits until the host has read everything that was written: it responds in order.
async fn all_was_read(session: &Session, cli: &mut FakeCli) -> Outcome {
    let asking = session.mcp().status();
    let answering = async {
        let request = cli.read().await?;
        cli.answer(&request, json!({"mcpServers": []})).await
    };
    let (answer, answered) = tokio::join!(asking, answering);
    answered?;
    answer?;
    Ok(())
}

/// The CLI's end of a session.
struct FakeCli {
    input: Lines<BufReader<DuplexStream>>,
    output: DuplexStream,
}

async fn start(options: Options) -> Result<(Session, FakeCli), Box<dyn Error>> {
    let (options, mut started) = with_cli(options);
    let session = Session::open(options).await?;
    let mut cli = started.recv().await.ok_or("no CLI was started")?;
    cli.handshake().await?;
    session.ready().await?;
    Ok((session, cli))
}

fn with_cli(options: Options) -> (Options, mpsc::UnboundedReceiver<FakeCli>) {
    let (sender, started) = mpsc::unbounded_channel();
    let options = options.transport(InMemory::new(move |_| {
        let (input, their_input) = tokio::io::duplex(PIPE);
        let (ours, output) = tokio::io::duplex(PIPE);
        let exit = Arc::new(watch::Sender::new(false));
        let mut ended = exit.subscribe();
        let child = ChildFuture::new(async move {
            drop(ended.wait_for(|ended| *ended).await);
            Exit::Signal(15)
        })
        .on_terminate(move || {
            exit.send_replace(true);
        });
        // Fails only after a second start, when the receiver is gone.
        drop(sender.send(FakeCli { input: BufReader::new(their_input).lines(), output }));
        std::future::ready(Ok(Connection::new(input, ours, child)))
    }));
    (options, started)
}

impl FakeCli {
    async fn read(&mut self) -> Result<Value, Box<dyn Error>> {
        let line = self.input.next_line().await?.ok_or("the host closed stdin")?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn write(&mut self, bytes: &[u8]) -> Outcome {
        Ok(self.output.write_all(bytes).await?)
    }

    async fn handshake(&mut self) -> Outcome {
        let request = self.read().await?;
        self.answer(&request, json!({"hook_on_failure_supported": true})).await
    }

    async fn answer(&mut self, request: &Value, answer: Value) -> Outcome {
        let response = json!({"subtype": "success", "request_id": request["request_id"],
                              "response": answer});
        let line = json!({"type": "control_response", "response": response});
        self.write(format!("{line}\n").as_bytes()).await
    }
}
