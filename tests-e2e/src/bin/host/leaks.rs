//! Checks that thousands of queries or sessions leave nothing behind in the process.

use std::time::Duration;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::tool::NoArguments;
use claude_agent_kit::{Options, Permission, Session, ToolServer, query};
use claude_agent_testkit::sim::Sim;
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{ResourceUsage, until};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::Outcome;

/// More growth than this, in KiB, is a leak. Allocators keep some freed memory.
const MOST_GROWTH: usize = 3 * 1024;

/// How long cleanup in the background may take.
const SETTLED: Duration = Duration::from_secs(30);

/// The number of runs before the first measurement: caches and threads are created once.
const WARM_UP: usize = 50;

/// Runs queries in memory.
pub(crate) fn queries(count: &str) -> Outcome {
    runtime()?.block_on(async {
        // A new model for each run, because a model keeps its latest requests.
        let options = || Options::new().simulated(Sim::new());
        no_growth(count.parse()?, async |number| one_query(&options(), number).await).await
    })
}

/// Runs queries with a process each.
pub(crate) fn queries_as_processes(count: &str, sim: &str) -> Outcome {
    runtime()?.block_on(async {
        // Without the mock API, which keeps its requests.
        let harness = Harness::scripted("otherwise say \"Hello.\"", sim).await?;
        let options = harness.options();
        no_growth(count.parse()?, async |number| one_query(&options, number).await).await
    })
}

/// Runs sessions in memory.
pub(crate) fn sessions(count: &str) -> Outcome {
    runtime()?.block_on(async {
        // A new model for each run, because a model keeps its latest requests.
        let options = || equipped(Options::new().simulated(Sim::new()));
        no_growth(count.parse()?, async |number| one_session(&options(), number).await).await
    })
}

/// Runs sessions with a process each.
pub(crate) fn sessions_as_processes(count: &str, sim: &str) -> Outcome {
    runtime()?.block_on(async {
        let harness = Harness::scripted("otherwise say \"Hello.\"", sim).await?;
        let options = equipped(harness.options());
        no_growth(count.parse()?, async |number| one_session(&options, number).await).await
    })
}

/// Registers every kind of callback that a session could leak.
fn equipped(options: Options) -> Options {
    let server =
        ToolServer::new().tool("look", "Looks", |_: NoArguments| async { Ok("nothing there") });
    options
        .mcp("mine", server)
        .on(PreToolUse, |_, _| async {})
        .can_use_tool(|_, _| async { Permission::allow() })
        .on_warning(|_| {})
        .on_stderr(|_| {})
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Repeats `one` and checks that the process uses no more resources than before.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
async fn no_growth(count: usize, one: impl AsyncFn(usize) -> Outcome) -> Outcome {
    // The harness has tasks of its own.
    let others = Handle::current().metrics().num_alive_tasks();
    let tasks = || Handle::current().metrics().num_alive_tasks().saturating_sub(others);
    for number in 0..WARM_UP {
        one(number).await?;
    }
    // Resources that are still being released must not count as used before.
    if !until(SETTLED, || ResourceUsage::now().children == 0 && tasks() == 0).await {
        return Err(
            format!("after {WARM_UP}: {:?}, {} tasks", ResourceUsage::now(), tasks()).into()
        );
    }
    let before = ResourceUsage::now();
    for number in 0..count {
        one(number).await?;
    }
    let mut after = ResourceUsage::now();
    let settled = until(SETTLED, || {
        after = ResourceUsage::now();
        after.descriptors <= before.descriptors
            && after.threads <= before.threads
            && after.children == 0
            && tasks() == 0
    });
    let settled = settled.await;
    let summary = format!("before {before:?}, after {after:?} and {} tasks", tasks());
    if !settled || after.memory > before.memory + MOST_GROWTH {
        return Err(format!("{count} runs leaked: {summary}").into());
    }
    println!("{summary}");
    Ok(())
}

/// Runs one session and ends it in one of the possible ways.
async fn one_session(options: &Options, number: usize) -> Outcome {
    let session = Session::open(options).await?;
    match number % 10 {
        // Immediately.
        0 => drop(session),
        1 => drop((session.clone(), session.messages(), session.events())),
        2 => session.ready().await?,
        // In the middle of a turn.
        3 => drop(session.send("hello").await?),
        4 => {
            let turn = session.send("hello").await?;
            session.end_input().await?;
            drop(session);
            turn.finish().await?;
        }
        // A reader keeps the session alive until its end.
        5 => {
            let mut messages = session.messages();
            session.stop().await?;
            drop(session);
            while messages.next().await.is_some() {}
        }
        // An operation and a stop whose futures are dropped.
        6 => {
            tokio::select! {
                biased;
                answer = session.set_model("other") => drop(answer),
                () = tokio::task::yield_now() => {}
            }
            tokio::select! {
                biased;
                exit = session.stop() => drop(exit),
                () = tokio::task::yield_now() => {}
            }
        }
        _ => {
            session.send("hello").await?.finish().await?;
            session.stop().await?;
        }
    }
    Ok(())
}

/// Runs one query: most are read to the end, some are closed, some are dropped.
async fn one_query(options: &Options, number: usize) -> Outcome {
    let mut stream = query("hello", options).await?;
    match number % 10 {
        3 => drop(stream),
        6 => {
            stream.next().await;
            stream.close().await;
        }
        9 => {
            stream.next().await;
            drop(stream);
        }
        _ => {
            let collected = stream.collect().await;
            if collected.result().is_none() {
                return Err(format!("no result, but {:?}", collected.error).into());
            }
        }
    }
    Ok(())
}
