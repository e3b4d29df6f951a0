//! This SDK.

use std::time::Instant;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{Body, Item, Options, Permission, Session, ToolServer, query, Limits, Include};
use claude_benches::{
    Outcome, Task, WARM, Work, all_of, run_subject, each, median, now, resident_kib, runtime,
    seconds_since,
};
use serde::Deserialize;

fn main() {
    run_subject(|task| {
        runtime(task.work)?.block_on(async {
            match task.work {
                Work::Flood | Work::Deltas | Work::Line => read_messages(task).await,
                Work::Hook | Work::Permission | Work::Tool => answer_questions(task).await,
                Work::First => first(task).await,
                Work::Sessions => sessions(task).await,
                Work::Idle => idle(task).await,
            }
        })
    });
}

fn options(task: &Task) -> Options {
    Options::new().cli_path(&task.cli)
}

async fn read_messages(task: &Task) -> Outcome<f64> {
    let options = match task.work {
        Work::Deltas => options(task).include(Include::PARTIAL_MESSAGES),
        Work::Line => options(task).limits(Limits::new().max_line_bytes(task.count + 4096)),
        _ => options(task),
    };
    let mut stream = query("go", options).await?;
    let (mut messages, mut deltas, mut arrived) = (0, 0, 0);
    let reported = loop {
        match stream.next().await.ok_or("no result")?? {
            Item::Message(message) => match &message.body {
                Body::Assistant(_) => {
                    messages += 1;
                    if task.work == Work::Line {
                        arrived = now();
                    }
                }
                Body::StreamEvent(_) => deltas += 1,
                Body::Result(result) => break result.result.clone(),
                _ => {}
            },
            Item::PermissionRequest(_) => {}
            Item::Warning(warning) => return Err(warning.to_string().into()),
        }
    };
    if task.work == Work::Line {
        all_of(1, messages)?;
    } else {
        arrived = now();
        all_of(task.count, messages + deltas)?;
    }
    stream.close().await;
    seconds_since(reported.as_deref().unwrap_or_default(), arrived)
}

/// The arguments of the tool.
#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

async fn answer_questions(task: &Task) -> Outcome<f64> {
    let options = match task.work {
        Work::Hook => options(task).on(PreToolUse, |_, _| async {}),
        Work::Permission => options(task).can_use_tool(|_, _| async { Permission::allow() }),
        _ => {
            let add = |pair: Pair| async move { Ok((pair.a + pair.b).to_string()) };
            options(task).mcp("calc", ToolServer::new().tool("add", "Adds two numbers", add))
        }
    };
    let result = query("go", options).await?.final_result().await?.ok_or("no result")?;
    let reported = result.result.as_deref().ok_or("no figure")?;
    reported.parse().map_err(|_| format!("unexpected result of the CLI: {reported}").into())
}

async fn first(task: &Task) -> Outcome<f64> {
    let mut starts = Vec::new();
    for _ in 0..task.count {
        let began = Instant::now();
        let mut stream = query("go", options(task)).await?;
        stream.next().await.ok_or("no item")??;
        starts.push(began.elapsed().as_secs_f64());
        stream.close().await;
    }
    median(starts)
}

async fn sessions(task: &Task) -> Outcome<f64> {
    let began = Instant::now();
    let starting: Vec<_> =
        (0..task.count).map(|_| tokio::spawn(Session::start(options(task)))).collect();
    let mut sessions = Vec::with_capacity(task.count);
    for session in starting {
        sessions.push(session.await??);
    }
    let turns: Vec<_> = sessions
        .iter()
        .cloned()
        .map(|session| tokio::spawn(async move { session.send("go").await?.finish().await }))
        .collect();
    for turn in turns {
        if turn.await??.text.is_empty() {
            return Err("a turn without a text".into());
        }
    }
    let time = began.elapsed().as_secs_f64();
    stop(sessions).await?;
    Ok(time)
}

async fn stop(sessions: Vec<Session>) -> Outcome<()> {
    let stopping: Vec<_> = sessions
        .into_iter()
        .map(|session| tokio::spawn(async move { session.stop().await }))
        .collect();
    for session in stopping {
        session.await??;
    }
    Ok(())
}

async fn idle(task: &Task) -> Outcome<f64> {
    let mut sessions = Vec::with_capacity(WARM + task.count);
    for _ in 0..WARM {
        sessions.push(Session::start(options(task)).await?);
    }
    let before = resident_kib()?;
    for _ in 0..task.count {
        sessions.push(Session::start(options(task)).await?);
    }
    let after = resident_kib()?;
    stop(sessions).await?;
    Ok(each(before, after, task.count))
}
