//! Drops a query at every point of its life cycle.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::process::id;
use std::task::Poll;
use std::time::Duration;

use claude_agent_kit::{Include, Item, Timeouts, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{children_of, until, wait_until};
use tokio::runtime::{Builder, Runtime};

use crate::Outcome;

/// Far longer than the CLI takes to exit.
const LIMIT: Duration = Duration::from_secs(30);

/// The exit grace of a CLI whose host is gone.
const GRACE: Duration = Duration::from_millis(100);

/// More polls than any query takes.
const MOST_STEPS: usize = 1000;

/// The runtime of the query.
#[derive(Clone, Copy, PartialEq)]
enum RuntimeKind {
    MultiThread,
    CurrentThread,
    /// A runtime that is dropped before the query.
    Gone,
}

#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn run(sim: &str, kind: &str) -> Outcome {
    let kind = match kind {
        "multi-thread" => RuntimeKind::MultiThread,
        "current-thread" => RuntimeKind::CurrentThread,
        "gone" => RuntimeKind::Gone,
        other => return Err(format!("unknown runtime: \"{other}\"").into()),
    };
    // The mock API outlives the runtimes of the queries.
    let api_runtime = Runtime::new()?;
    // The answer is held back: a CLI that is not ended would run forever.
    let script = Script::new().otherwise([Reply::text("Hello, world.").deltas_of(4).hold()]);
    let harness = api_runtime.block_on(Harness::sim_process(script, sim))?;
    for steps in 0..MOST_STEPS {
        let completed = drop_after(steps, kind, &harness)?;
        if !wait_until(LIMIT, || children_of(id()).is_empty()) {
            let left = children_of(id());
            return Err(format!("dropped after {steps} polls: {left:?} still run").into());
        }
        if completed {
            println!("{steps}");
            return Ok(());
        }
    }
    Err("the query never ended".into())
}

/// Drops a query after this many polls. Returns whether it had completed before.
fn drop_after(steps: usize, kind: RuntimeKind, harness: &Harness) -> io::Result<bool> {
    let runtime = match kind {
        RuntimeKind::MultiThread => {
            Builder::new_multi_thread().worker_threads(2).enable_all().build()?
        }
        RuntimeKind::CurrentThread | RuntimeKind::Gone => {
            Builder::new_current_thread().enable_all().build()?
        }
    };
    let mut whole = Box::pin(whole(harness));
    let completed = runtime.block_on(steps_of(whole.as_mut(), steps));
    if kind == RuntimeKind::Gone {
        drop(runtime);
        drop(whole);
        return Ok(completed);
    }
    let ended = runtime.block_on(async {
        drop(whole);
        // Checked while the runtime lives: dropping a runtime would end the process as well.
        until(LIMIT, || children_of(id()).is_empty()).await
    });
    if !ended {
        return Err(io::Error::other(format!("dropped after {steps} polls: the CLI did not exit")));
    }
    Ok(completed)
}

/// Runs a whole query. Yields after each item, so that it can be dropped there too.
async fn whole(harness: &Harness) {
    let options = harness
        .options()
        .include(Include::PARTIAL_MESSAGES)
        .timeouts(Timeouts::new().exit_grace(GRACE));
    let Ok(mut stream) = query("hello", options).await else { return };
    while let Some(item) = stream.next().await {
        let message = item.as_ref().ok().and_then(Item::message);
        if message.is_some_and(|message| message.body.kind() == Some("stream_event")) {
            harness.api().release_held();
        }
        tokio::task::yield_now().await;
    }
}

/// Polls a future this many times. Returns whether it completed.
async fn steps_of(mut future: Pin<&mut impl Future<Output = ()>>, steps: usize) -> bool {
    let mut done = 0;
    poll_fn(|context| {
        if done == steps {
            return Poll::Ready(false);
        }
        done += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            // Returns immediately instead of waiting for the next poll.
            Poll::Pending if done == steps => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
