//! The crate `claude-agent-sdk-rs`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use claude_agent_sdk_rs::{
    ClaudeAgentOptions, ClaudeClient, HookCallback, HookEvent, HookJsonOutput, HookMatcher,
    McpServerConfig, McpServers, McpToolResultContent, Message, SyncHookJsonOutput, ToolResult,
    create_sdk_mcp_server, query_stream, tool,
};
use claude_benches::{
    Unsupported, Outcome, Task, WARM, Work, all_of, run_subject, each, median, now, resident_kib, runtime,
    seconds_since,
};
use futures::StreamExt as _;
use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};

fn main() {
    run_subject(|task| {
        runtime(task.work)?.block_on(async {
            match task.work {
                Work::Flood | Work::Deltas | Work::Line => read_messages(task).await,
                Work::Hook | Work::Tool => answer_questions(task).await,
                Work::Permission => Err(Unsupported("can_use_tool is never called").into()),
                Work::First => first(task).await,
                Work::Sessions => sessions(task).await,
                Work::Idle => idle(task).await,
            }
        })
    });
}

/// Returns options without a buffer limit: the limit (10 MB by default) covers the whole session, and the client hangs
/// when it is reached.
fn options(task: &Task) -> ClaudeAgentOptions {
    ClaudeAgentOptions::builder().cli_path(&task.cli).max_buffer_size(usize::MAX).build()
}

async fn read_messages(task: &Task) -> Outcome<f64> {
    let mut options = options(task);
    options.include_partial_messages = task.work == Work::Deltas;
    let mut stream = query_stream("go", Some(options)).await?;
    let (mut messages, mut deltas, mut arrived) = (0, 0, 0);
    let reported = loop {
        match stream.next().await.ok_or("no result")?? {
            Message::Assistant(_) => {
                messages += 1;
                if task.work == Work::Line {
                    arrived = now();
                }
            }
            Message::StreamEvent(_) => deltas += 1,
            Message::Result(result) => break result.result,
            _ => {}
        }
    };
    if task.work == Work::Line {
        all_of(1, messages)?;
    } else {
        arrived = now();
        all_of(task.count, messages + deltas)?;
    }
    seconds_since(reported.as_deref().unwrap_or_default(), arrived)
}

async fn add(arguments: Value) -> anyhow::Result<ToolResult> {
    let sum =
        arguments["a"].as_i64().unwrap_or_default() + arguments["b"].as_i64().unwrap_or_default();
    let content = vec![McpToolResultContent::Text { text: sum.to_string() }];
    Ok(ToolResult { content, is_error: false })
}

async fn answer_questions(task: &Task) -> Outcome<f64> {
    let mut options = options(task);
    if task.work == Work::Hook {
        let hook: HookCallback = Arc::new(|_, _, _| {
            Box::pin(async { HookJsonOutput::Sync(SyncHookJsonOutput::default()) })
        });
        let matcher = HookMatcher::builder().hooks(vec![hook]).build();
        options.hooks = Some(HashMap::from([(HookEvent::PreToolUse, vec![matcher])]));
    } else {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
            "required": ["a", "b"]
        });
        let server = create_sdk_mcp_server(
            "calc",
            "1.0.0",
            vec![tool!("add", "Adds two numbers", schema, add)],
        );
        let servers = HashMap::from([("calc".to_owned(), McpServerConfig::Sdk(server))]);
        options.mcp_servers = McpServers::Dict(servers);
    }
    let mut client = ClaudeClient::new(options);
    client.connect().await?;
    let reported = turn(&mut client).await?;
    reported.parse().map_err(|_| format!("unexpected result of the CLI: {reported}").into())
}

async fn turn(client: &mut ClaudeClient) -> Outcome<String> {
    client.query("go").await?;
    let mut stream = client.receive_response();
    loop {
        if let Message::Result(result) = stream.next().await.ok_or("no result")?? {
            return Ok(result.result.unwrap_or_default());
        }
    }
}

async fn first(task: &Task) -> Outcome<f64> {
    let mut starts = Vec::new();
    for _ in 0..task.count {
        let began = Instant::now();
        let mut stream = query_stream("go", Some(options(task))).await?;
        stream.next().await.ok_or("no message")??;
        starts.push(began.elapsed().as_secs_f64());
        while stream.next().await.is_some() {}
    }
    median(starts)
}

async fn start(options: ClaudeAgentOptions) -> Outcome<ClaudeClient> {
    let mut client = ClaudeClient::new(options);
    client.connect().await?;
    Ok(client)
}

async fn sessions(task: &Task) -> Outcome<f64> {
    let began = Instant::now();
    let starting = (0..task.count).map(|_| tokio::spawn(start(options(task))));
    let mut clients = Vec::with_capacity(task.count);
    for client in try_join_all(starting).await? {
        clients.push(client?);
    }
    let turns = clients
        .into_iter()
        .map(|mut client| tokio::spawn(async move { turn(&mut client).await.map(|_| client) }));
    let mut clients = Vec::with_capacity(task.count);
    for client in try_join_all(turns).await? {
        clients.push(client?);
    }
    let time = began.elapsed().as_secs_f64();
    stop(clients).await?;
    Ok(time)
}

async fn stop(mut clients: Vec<ClaudeClient>) -> Outcome<()> {
    for stopped in join_all(clients.iter_mut().map(ClaudeClient::disconnect)).await {
        stopped?;
    }
    Ok(())
}

async fn idle(task: &Task) -> Outcome<f64> {
    let mut clients = Vec::with_capacity(WARM + task.count);
    for _ in 0..WARM {
        clients.push(start(options(task)).await?);
    }
    let before = resident_kib()?;
    for _ in 0..task.count {
        clients.push(start(options(task)).await?);
    }
    let after = resident_kib()?;
    stop(clients).await?;
    Ok(each(before, after, task.count))
}
