//! Deterministic simulation: the SDK, the simulated CLI and a host run on one thread with a paused clock, which
//! advances only when every task is idle.
//!
//! The seed determines everything: how pipes behave, which faults are injected, what the model answers, what
//! callbacks do, which operations the host sends, and when it drops futures and handles. A run can therefore be
//! reproduced: `cargo xtask simulate --seed N`.

mod callbacks;
mod check;
mod cli;
mod model;
mod observed_streams;
mod operations;
mod pipe;
mod query;
mod reading;
mod record;
pub(crate) mod rng;
mod seeds;
mod session;
mod watcher;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::{Include, Limits, Options, QueryStream, Session, Timeouts};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::{sleep, timeout};

pub use seeds::{KINDS, Total, seeds};

use crate::golden::Golden;
use record::Record;
use rng::Rng;
use watcher::Watcher;

/// How long tasks and the CLI may take to end after the host has dropped every handle.
const CLEANUP_LIMIT: Duration = Duration::from_secs(300);

/// Longer than any run takes.
const WHOLE_RUN: Duration = Duration::from_secs(48 * 3_600);

/// The report of one run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Violated invariants, each with the seed and the command that reproduces it.
    pub violations: Vec<String>,
    /// What happened, with counts.
    pub counts: BTreeMap<String, u64>,
    /// Everything that happened, in order; empty unless the run is traced.
    pub trace: Vec<String>,
    /// What the host wrote and received; empty unless the run is traced.
    pub golden: Golden,
}

/// A handle that the host still holds when its runtime is dropped.
enum HeldHandle {
    Session(Session),
    Query(Box<QueryStream>),
}

/// When the runtime is dropped, and whether the host is dropped before it.
#[derive(Clone, Copy)]
struct RuntimeLoss {
    at: Duration,
    host_first: bool,
}

/// What the tasks of a host share.
#[derive(Clone)]
struct HostContext {
    watcher: Watcher,
    held: Arc<Mutex<Vec<HeldHandle>>>,
}

impl HostContext {
    fn hold(&self, what: HeldHandle) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn drop_held(&self) {
        drop(self.take());
    }

    fn take(&self) -> Vec<HeldHandle> {
        std::mem::take(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs a seed.
///
/// # Panics
/// Panics if the runtime cannot be created.
pub fn run(seed: u64) -> Report {
    run_seed(seed, false)
}

/// Runs a seed and records everything that happens.
///
/// # Panics
/// Panics if the runtime cannot be created.
pub fn run_traced(seed: u64) -> Report {
    run_seed(seed, true)
}

fn run_seed(seed: u64, traced: bool) -> Report {
    let mut rng = Rng::new(seed);
    let runtime = runtime();
    let healthy = rng.chance(40);
    let clock_guard = runtime.enter();
    let record = Record::new();
    record.count(if healthy { "run: healthy" } else { "run: with faults" });
    let context =
        HostContext { watcher: Watcher { record: record.clone(), healthy }, held: Arc::default() };
    let is_query = rng.chance(35);
    let (options, strict_time) = options(&mut rng, &record, healthy, is_query);
    let loss = rng.chance(8).then(|| RuntimeLoss { at: rng.moment(), host_first: rng.chance(50) });
    let host = run_host(context.clone(), options, rng, is_query);
    drop(clock_guard);
    if let Some(loss) = loss {
        drop_runtime(runtime, loss, &context, host);
        check::run(&record, false);
    } else {
        runtime.block_on(run_to_end(&record, host));
        let _clock_guard = runtime.enter();
        check::run(&record, strict_time);
        check::process(&record);
    }
    let repeat = |what: String| format!("seed {seed}: {what} (cargo xtask simulate --seed {seed})");
    let violations = record.violations().into_iter().map(repeat).collect();
    let (trace, golden) =
        if traced { (record.trace(), record.golden()) } else { Default::default() };
    let counts = std::mem::take(&mut record.lock().counts);
    Report { violations, counts, trace, golden }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    #[expect(
        clippy::expect_used,
        reason = "a current-thread runtime without I/O cannot fail to start"
    )]
    runtime.expect("a runtime")
}

/// Returns the options of a run, and whether all of its time limits apply.
fn options(rng: &mut Rng, record: &Record, healthy: bool, is_query: bool) -> (Options, bool) {
    let mut options = Options::new()
        .environment(EnvironmentPolicy::Clean)
        .include(if rng.chance(50) { Include::PARTIAL_MESSAGES } else { Include::NONE })
        .timeouts(
            Timeouts::new().exit_grace(Duration::from_millis(rng.between(100, 6_000) as u64)),
        );
    let mut strict_time = true;
    if rng.chance(15) {
        record.count("options: small backlog");
        let soft = rng.between(200, 5_000);
        options = options.limits(
            Limits::new().backlog_soft_bytes(soft).backlog_hard_bytes(soft * rng.between(1, 5)),
        );
        strict_time = false;
    }
    if rng.chance(10) {
        record.count("options: small write buffer");
        options = options.limits(Limits::new().max_unwritten_bytes(rng.between(1, 4_000)));
    }
    if rng.chance(10) {
        record.count("options: low operation limits");
        options = options.limits(
            Limits::new()
                .waiting_operations(rng.between(1, 2))
                .pending_operations(rng.between(1, 2)),
        );
    }
    if !healthy && rng.chance(30) {
        options =
            options.timeouts(Timeouts::new().initialize(rng.moment() + Duration::from_millis(1)));
    }
    if !healthy && rng.chance(20) {
        options = options.timeouts(Timeouts::new().idle(rng.moment() + Duration::from_millis(1)));
    }
    let (callbacks, own) = (rng.branch(), rng.branch());
    if is_query && rng.chance(10) {
        record.count("options: one-pipe form");
        options = options.print_mode(true);
    } else if rng.chance(85) {
        let (with, limited) = callbacks::add(options, callbacks, record, healthy);
        options = with;
        strict_time &= limited;
    }
    (cli::reaching(options, own, record, healthy), strict_time)
}

async fn run_host(context: HostContext, options: Options, rng: Rng, is_query: bool) {
    if is_query {
        context.watcher.record.count("host: query");
        Box::pin(query::run(&context, options, rng)).await;
    } else {
        context.watcher.record.count("host: session");
        session::run(&context, options, rng).await;
    }
}

/// Runs the host and checks that nothing is left running.
async fn run_to_end(record: &Record, host: impl Future<Output = ()>) {
    if timeout(WHOLE_RUN, host).await.is_err() {
        return record.violation("the host never finished");
    }
    let alive = || Handle::current().metrics().num_alive_tasks();
    let until = record.now() + CLEANUP_LIMIT;
    while alive() > 0 && record.now() < until {
        sleep(Duration::from_millis(100)).await;
    }
    let (started, ended) = {
        let state = record.lock();
        (state.wire.started, state.wire.exit_reported.is_some())
    };
    if started && !ended {
        record.violation("the CLI still runs after every handle was dropped");
    }
    if alive() > 0 {
        record.violation(format!("{} tasks are still alive", alive()));
    }
}

/// Drops the runtime during the run; handles that the host still holds must resolve nevertheless.
fn drop_runtime(
    runtime: Runtime,
    loss: RuntimeLoss,
    context: &HostContext,
    host: impl Future<Output = ()>,
) {
    let record = &context.watcher.record;
    let mut host = Box::pin(host);
    let finished = runtime.block_on(async {
        let finished = timeout(loss.at, &mut host).await.is_ok();
        record.stop_the_clock();
        finished
    });
    let held = context.take();
    if loss.host_first {
        drop(host);
        drop(runtime);
    } else {
        drop(runtime);
        drop(host);
    }
    if finished {
        return;
    }
    record.count("runtime dropped");
    let other = self::runtime();
    for held in held {
        other.block_on(check_held_handle(held, context));
    }
}

async fn check_held_handle(held: HeldHandle, context: &HostContext) {
    let record = &context.watcher.record;
    match held {
        HeldHandle::Session(session) => {
            record.count("runtime dropped under a session");
            if timeout(CLEANUP_LIMIT, session.stop()).await.is_err() {
                record.violation("`stop` hangs after the runtime was dropped");
            }
            if timeout(CLEANUP_LIMIT, session.send("hello")).await.is_err() {
                record.violation("`send` hangs after the runtime was dropped");
            }
        }
        HeldHandle::Query(mut stream) => {
            record.count("runtime dropped under a query");
            let all = async { while stream.next().await.is_some() {} };
            if timeout(CLEANUP_LIMIT, all).await.is_err() {
                record.violation("a query hangs after the runtime was dropped");
            }
        }
    }
}
