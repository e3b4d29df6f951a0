//! What is left of thousands of queries: nothing.

use std::time::Duration;

use claude_agent_kit::{Options, query};
use claude_agent_testkit::sim::Sim;
use tests_e2e::stage::processes::{Holdings, until};
use tests_e2e::stage::{self, Stage};
use tokio::runtime::{Builder, Runtime};

use crate::Outcome;

/// More memory than this is a leak, in KiB. Allocators keep some of what is given back.
const MOST_GROWTH: usize = 3 * 1024;

/// How long what ends in the background may take to be gone.
const SETTLED: Duration = Duration::from_secs(30);

/// So many queries come before it is counted: caches and threads are made once.
const WARM_UP: usize = 50;

pub(crate) fn in_memory(count: &str) -> Outcome {
    runtime()?.block_on(async {
        let options = stage::in_memory(Options::new(), Sim::new);
        no_growth(&options, count.parse()?).await
    })
}

pub(crate) fn as_processes(count: &str, sim: &str) -> Outcome {
    runtime()?.block_on(async {
        // No mock API: it keeps what it was asked.
        let stage = Stage::scripted("otherwise say \"Hello.\"", sim).await?;
        no_growth(&stage.options(), count.parse()?).await
    })
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

#[expect(clippy::print_stdout, reason = "that is its answer")]
async fn no_growth(options: &Options, count: usize) -> Outcome {
    for number in 0..WARM_UP {
        one(options, number).await?;
    }
    // What still ends must not be counted as having been there.
    until(SETTLED, || Holdings::now().children == 0).await;
    let before = Holdings::now();
    for number in 0..count {
        one(options, number).await?;
    }
    let mut after = Holdings::now();
    let settled = until(SETTLED, || {
        after = Holdings::now();
        after.descriptors <= before.descriptors
            && after.threads <= before.threads
            && after.children == 0
    });
    let (settled, told) = (settled.await, format!("before {before:?}, after {after:?}"));
    if !settled || after.memory > before.memory + MOST_GROWTH {
        return Err(format!("{count} queries left something: {told}").into());
    }
    println!("{told}");
    Ok(())
}

/// One query: most are read to the end, some are closed, some dropped.
async fn one(options: &Options, number: usize) -> Outcome {
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
