//! Runs that follow from a seed: the SDK, the simulated CLI and a host in one thread, on a clock
//! that only moves when nobody has anything to do.
//!
//! A seed decides everything: how pipes behave, what goes wrong, what the model says, what
//! callbacks do, what the host asks for and which of its futures and handles it drops when. Two
//! runs of a seed are the same, so that what a seed found can be looked at again:
//! `cargo xtask simulate --seed N`.

mod callbacks;
mod check;
mod cli;
mod draw;
mod fate;
mod many;
mod model;
mod operations;
mod pipe;
mod query;
mod reading;
mod record;
mod session;
mod tap;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claude_agent_kit::{
    EnvironmentPolicy, Include, Limits, Options, QueryStream, Session, Timeouts,
};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::{sleep, timeout};

pub use many::{KINDS, Total, seeds};

use crate::golden::Golden;
use draw::Draw;
use fate::Waiting;
use record::Record;

/// How long it may take until everything is gone after the host let go of everything.
const GONE: Duration = Duration::from_secs(300);

/// More than any run takes, whatever is drawn.
const WHOLE_RUN: Duration = Duration::from_secs(48 * 3_600);

/// What came of a seed.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// What must not be, each with the seed and how to repeat it.
    pub violations: Vec<String>,
    /// What happened, and how often.
    pub counts: BTreeMap<String, u64>,
    /// Everything that happened, in order; only if it was asked for.
    pub trace: Vec<String>,
    /// What the host wrote and was given; only if it was asked for.
    pub golden: Golden,
}

/// Something that the host still has when its runtime goes.
enum Kept {
    Session(Session),
    Query(Box<QueryStream>),
}

/// When the runtime is lost, and whether the host goes before it or after it.
#[derive(Clone, Copy)]
struct Loss {
    at: Duration,
    host_first: bool,
}

/// What the parts of a host share.
#[derive(Clone)]
struct HostContext {
    waiting: Waiting,
    kept: Arc<Mutex<Vec<Kept>>>,
}

impl HostContext {
    fn keep(&self, what: Kept) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    fn let_go(&self) {
        drop(self.take());
    }

    fn take(&self) -> Vec<Kept> {
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs a seed.
///
/// # Panics
/// When there can be no runtime.
pub fn run(seed: u64) -> Report {
    play(seed, false)
}

/// Runs a seed, and keeps everything that happened.
///
/// # Panics
/// When there can be no runtime.
pub fn run_traced(seed: u64) -> Report {
    play(seed, true)
}

fn play(seed: u64, traced: bool) -> Report {
    let mut draw = Draw::new(seed);
    let runtime = runtime();
    let healthy = draw.chance(40);
    let on_its_clock = runtime.enter();
    let record = Record::new();
    record.count(if healthy { "run: healthy" } else { "run: with faults" });
    let context =
        HostContext { waiting: Waiting { record: record.clone(), healthy }, kept: Arc::default() };
    let asks_once = draw.chance(35);
    let (options, strict_time) = options(&mut draw, &record, healthy, asks_once);
    let loss = draw.chance(8).then(|| Loss { at: draw.moment(), host_first: draw.chance(50) });
    let host = run_host(context.clone(), options, draw, asks_once);
    drop(on_its_clock);
    if let Some(loss) = loss {
        lose_the_runtime(runtime, loss, &context, host);
        check::run(&record, false);
    } else {
        runtime.block_on(to_the_end(&record, host));
        let _on_its_clock = runtime.enter();
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
    #[expect(clippy::expect_used, reason = "a runtime of one thread needs nothing that can lack")]
    runtime.expect("a runtime")
}

/// Options of a run, and whether all its time limits are in force.
fn options(draw: &mut Draw, record: &Record, healthy: bool, asks_once: bool) -> (Options, bool) {
    let mut options = Options::new()
        .environment(EnvironmentPolicy::Clean)
        .include(if draw.chance(50) { Include::PARTIAL_MESSAGES } else { Include::NONE })
        .timeouts(
            Timeouts::new().exit_grace(Duration::from_millis(draw.between(100, 6_000) as u64)),
        );
    let mut strict_time = true;
    if draw.chance(15) {
        record.count("options: small backlog");
        let soft = draw.between(200, 5_000);
        options = options.limits(
            Limits::new().backlog_soft_bytes(soft).backlog_hard_bytes(soft * draw.between(1, 5)),
        );
        strict_time = false;
    }
    if draw.chance(10) {
        record.count("options: little may be unwritten");
        options = options.limits(Limits::new().max_unwritten_bytes(draw.between(1, 4_000)));
    }
    if draw.chance(10) {
        record.count("options: few operations");
        options = options.limits(
            Limits::new()
                .waiting_operations(draw.between(1, 2))
                .pending_operations(draw.between(1, 2)),
        );
    }
    if !healthy && draw.chance(30) {
        options =
            options.timeouts(Timeouts::new().initialize(draw.moment() + Duration::from_millis(1)));
    }
    if !healthy && draw.chance(20) {
        options = options.timeouts(Timeouts::new().idle(draw.moment() + Duration::from_millis(1)));
    }
    let (callbacks, own) = (draw.branch(), draw.branch());
    if asks_once && draw.chance(10) {
        record.count("options: one-way form");
        options = options.print_mode(true);
    } else if draw.chance(85) {
        let (with, limited) = callbacks::add(options, callbacks, record, healthy);
        options = with;
        strict_time &= limited;
    }
    (cli::reaching(options, own, record, healthy), strict_time)
}

async fn run_host(context: HostContext, options: Options, draw: Draw, asks_once: bool) {
    if asks_once {
        context.waiting.record.count("host: query");
        Box::pin(query::play(&context, options, draw)).await;
    } else {
        context.waiting.record.count("host: session");
        session::play(&context, options, draw).await;
    }
}

/// Runs the host, and sees that nothing is left of it.
async fn to_the_end(record: &Record, host: impl Future<Output = ()>) {
    if timeout(WHOLE_RUN, host).await.is_err() {
        return record.violation("the host never came to its end");
    }
    let alive = || Handle::current().metrics().num_alive_tasks();
    let until = record.now() + GONE;
    while alive() > 0 && record.now() < until {
        sleep(Duration::from_millis(100)).await;
    }
    let (started, ended) = {
        let state = record.lock();
        (state.wire.started, state.wire.exit_told.is_some())
    };
    if started && !ended {
        record.violation("the CLI still runs after everything was let go");
    }
    if alive() > 0 {
        record.violation(format!("{} tasks are left", alive()));
    }
}

/// Drops the runtime in the middle; what the host still has must come to its end all the same.
fn lose_the_runtime(
    runtime: Runtime,
    loss: Loss,
    context: &HostContext,
    host: impl Future<Output = ()>,
) {
    let record = &context.waiting.record;
    let mut host = Box::pin(host);
    let finished = runtime.block_on(async {
        let finished = timeout(loss.at, &mut host).await.is_ok();
        record.stop_the_clock();
        finished
    });
    let kept = context.take();
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
    for kept in kept {
        other.block_on(after_the_runtime(kept, context));
    }
}

async fn after_the_runtime(kept: Kept, context: &HostContext) {
    let record = &context.waiting.record;
    match kept {
        Kept::Session(session) => {
            record.count("runtime dropped under a session");
            if timeout(GONE, session.stop()).await.is_err() {
                record.violation("`stop` waits for ever after the runtime is gone");
            }
            if timeout(GONE, session.send("hello")).await.is_err() {
                record.violation("`send` waits for ever after the runtime is gone");
            }
        }
        Kept::Query(mut stream) => {
            record.count("runtime dropped under a query");
            let all = async { while stream.next().await.is_some() {} };
            if timeout(GONE, all).await.is_err() {
                record.violation("a query waits for ever after the runtime is gone");
            }
        }
    }
}
