//! What is left of thousands of queries or sessions: nothing.

use std::time::Duration;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::tool::NoArguments;
use claude_agent_kit::{Options, Permission, Session, ToolServer, query};
use claude_agent_testkit::sim::Sim;
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{Holdings, until};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::Outcome;

/// More memory than this is a leak, in KiB. Allocators keep some of what is given back.
const MOST_GROWTH: usize = 3 * 1024;

/// How long what ends in the background may take to be gone.
const SETTLED: Duration = Duration::from_secs(30);

/// So many queries come before it is counted: caches and threads are made once.
const WARM_UP: usize = 50;

/// Queries in memory.
pub(crate) fn queries(count: &str) -> Outcome {
    runtime()?.block_on(async {
        // A model for each run, since a model keeps its last requests.
        let options = || Options::new().simulated(Sim::new());
        no_growth(count.parse()?, async |number| one_query(&options(), number).await).await
    })
}

/// Queries with a process each.
pub(crate) fn queries_as_processes(count: &str, sim: &str) -> Outcome {
    runtime()?.block_on(async {
        // No mock API: it keeps what it was asked.
        let harness = Harness::scripted("otherwise say \"Hello.\"", sim).await?;
        let options = harness.options();
        no_growth(count.parse()?, async |number| one_query(&options, number).await).await
    })
}

/// Sessions in memory.
pub(crate) fn sessions(count: &str) -> Outcome {
    runtime()?.block_on(async {
        // A model for each run, since a model keeps its last requests.
        let options = || equipped(Options::new().simulated(Sim::new()));
        no_growth(count.parse()?, async |number| one_session(&options(), number).await).await
    })
}

/// Sessions with a process each.
pub(crate) fn sessions_as_processes(count: &str, sim: &str) -> Outcome {
    runtime()?.block_on(async {
        let harness = Harness::scripted("otherwise say \"Hello.\"", sim).await?;
        let options = equipped(harness.options());
        no_growth(count.parse()?, async |number| one_session(&options, number).await).await
    })
}

/// Everything that a session could hold on to.
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

/// Does something so often; afterwards this process holds no more than before.
#[expect(clippy::print_stdout, reason = "that is its answer")]
async fn no_growth(count: usize, one: impl AsyncFn(usize) -> Outcome) -> Outcome {
    // The harness has its own.
    let others = Handle::current().metrics().num_alive_tasks();
    let tasks = || Handle::current().metrics().num_alive_tasks().saturating_sub(others);
    for number in 0..WARM_UP {
        one(number).await?;
    }
    // What still ends must not be counted as having been there.
    if !until(SETTLED, || Holdings::now().children == 0 && tasks() == 0).await {
        return Err(format!("after {WARM_UP}: {:?}, {} tasks", Holdings::now(), tasks()).into());
    }
    let before = Holdings::now();
    for number in 0..count {
        one(number).await?;
    }
    let mut after = Holdings::now();
    let settled = until(SETTLED, || {
        after = Holdings::now();
        after.descriptors <= before.descriptors
            && after.threads <= before.threads
            && after.children == 0
            && tasks() == 0
    });
    let settled = settled.await;
    let told = format!("before {before:?}, after {after:?} and {} tasks", tasks());
    if !settled || after.memory > before.memory + MOST_GROWTH {
        return Err(format!("{count} runs left something: {told}").into());
    }
    println!("{told}");
    Ok(())
}

/// One session, ended in one of the ways in which one can end.
async fn one_session(options: &Options, number: usize) -> Outcome {
    let session = Session::open(options).await?;
    match number % 10 {
        // As soon as it is there.
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
        // Whoever reads keeps it, and reads to its end.
        5 => {
            let mut messages = session.messages();
            session.stop().await?;
            drop(session);
            while messages.next().await.is_some() {}
        }
        // An operation and a stop that nobody waits for.
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

/// One query: most are read to the end, some are closed, some dropped.
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
