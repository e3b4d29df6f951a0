//! Dropping a query at every moment of its life.

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

/// Far more than the end of a CLI takes.
const LIMIT: Duration = Duration::from_secs(30);

/// How long a CLI has that nobody drives any more.
const GRACE: Duration = Duration::from_millis(100);

/// No query takes more steps than this.
const MOST_STEPS: usize = 1000;

/// Where the query lives when it is dropped.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    MultiThread,
    CurrentThread,
    /// On a runtime that is gone by then.
    Gone,
}

#[expect(clippy::print_stdout, reason = "that is its answer")]
pub(crate) fn run(sim: &str, place: &str) -> Outcome {
    let place = match place {
        "multi-thread" => Place::MultiThread,
        "current-thread" => Place::CurrentThread,
        "gone" => Place::Gone,
        other => return Err(format!("there is no such runtime: {other}").into()),
    };
    // The model outlives the runtimes of the queries.
    let backstage = Runtime::new()?;
    // Until it is let go, a CLI that nobody ends would stay for ever.
    let script = Script::new().otherwise([Reply::text("Hello, world.").deltas_of(4).hold()]);
    let harness = backstage.block_on(Harness::sim_process(script, sim))?;
    for steps in 0..MOST_STEPS {
        let completed = drop_after(steps, place, &harness)?;
        if !wait_until(LIMIT, || children_of(id()).is_empty()) {
            let left = children_of(id());
            return Err(format!("dropped after {steps} steps, {left:?} is left").into());
        }
        if completed {
            println!("{steps}");
            return Ok(());
        }
    }
    Err("the query never ended".into())
}

/// Drops a query after so many steps; says whether it was over before that.
fn drop_after(steps: usize, place: Place, harness: &Harness) -> io::Result<bool> {
    let runtime = match place {
        Place::MultiThread => Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        Place::CurrentThread | Place::Gone => Builder::new_current_thread().enable_all().build()?,
    };
    let mut whole = Box::pin(whole(harness));
    let completed = runtime.block_on(steps_of(whole.as_mut(), steps));
    if place == Place::Gone {
        drop(runtime);
        drop(whole);
        return Ok(completed);
    }
    let ended = runtime.block_on(async {
        drop(whole);
        // Not later: a runtime that is dropped ends everything by itself.
        until(LIMIT, || children_of(id()).is_empty()).await
    });
    if !ended {
        return Err(io::Error::other(format!("dropped after {steps} steps, it did not end")));
    }
    Ok(completed)
}

/// A whole query. After each item it lets others run, so that it can be dropped there too.
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

/// Polls so many times; says whether the future was done with that.
async fn steps_of(mut future: Pin<&mut impl Future<Output = ()>>, steps: usize) -> bool {
    let mut done = 0;
    poll_fn(|context| {
        if done == steps {
            return Poll::Ready(false);
        }
        done += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            // At once, not when it would be polled again.
            Poll::Pending if done == steps => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
