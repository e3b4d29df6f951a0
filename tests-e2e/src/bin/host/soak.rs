//! A soak test: sessions with real processes, with turns, hooks, permissions, tools, dropped handles and killed
//! processes.

use std::process::id;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::tool::NoArguments;
use claude_agent_kit::{Options, Permission, Session, Timeouts, ToolServer, Turn};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{ResourceUsage, children_of, until};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;

use crate::Outcome;

/// The number of concurrent sessions.
const AT_A_TIME: usize = 4;

/// More growth than this, in KiB, is a leak. Allocators keep some freed memory.
const MOST_GROWTH: usize = 8 * 1024;

/// How long cleanup in the background may take.
const SETTLED: Duration = Duration::from_secs(30);

/// The exit grace of a CLI whose session was dropped.
const GRACE: Duration = Duration::from_millis(200);

const SCRIPT: &str = r#"
when "use a tool" call Bash {"command": "true"} then say "Used."
when "use mine" call mcp__mine__look {} then say "Looked."
when "take your time" say "one two three four five six seven" deltas-of 2 pause-between 5ms
otherwise say "Hello."
"#;

const PROMPTS: [&str; 4] = ["use a tool", "use mine", "take your time", "hello"];

#[derive(Default)]
struct Counts {
    sessions: AtomicUsize,
    turns: AtomicUsize,
    hooks: AtomicUsize,
    permissions: AtomicUsize,
    tools: AtomicUsize,
    dropped: AtomicUsize,
    killed: AtomicUsize,
    /// Turns that were ended early by a kill or a stop.
    cut_off: AtomicUsize,
    random: AtomicU64,
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    /// Returns a random number below `most` (`SplitMix64`).
    fn below(&self, most: u64) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.random.fetch_add(STEP, Ordering::Relaxed);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    fn summary(&self) -> String {
        [
            ("sessions", &self.sessions),
            ("turns", &self.turns),
            ("hooks", &self.hooks),
            ("permissions", &self.permissions),
            ("tools", &self.tools),
            ("dropped", &self.dropped),
            ("killed", &self.killed),
            ("cut off", &self.cut_off),
        ]
        .map(|(name, count)| format!("{name} {}", count.load(Ordering::Relaxed)))
        .join(", ")
    }
}

#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn run(seconds: &str, sim: &str) -> Outcome {
    let time = Duration::from_secs(seconds.parse()?);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let harness = Harness::scripted(SCRIPT, sim).await?;
        let counts = Arc::new(Counts::default());
        let options =
            equipped(harness.options().timeouts(Timeouts::new().exit_grace(GRACE)), &counts);
        // Caches and threads are created in the first quarter, which is not measured.
        let quarter = time / 4;
        for_a_while(&options, &counts, quarter).await?;
        let before = settled(None).await?;
        for_a_while(&options, &counts, quarter * 3).await?;
        let after = settled(Some(before)).await?;
        println!("{}", counts.summary());
        println!("before {before:?}\nafter {after:?}");
        if after.memory > before.memory + MOST_GROWTH {
            return Err(
                format!("memory grew from {} to {} KiB", before.memory, after.memory).into()
            );
        }
        Ok(())
    })
}

fn equipped(options: Options, counts: &Arc<Counts>) -> Options {
    let (hooks, permissions, tools) = (counts.clone(), counts.clone(), counts.clone());
    let server = ToolServer::new().tool("look", "Looks", move |_: NoArguments| {
        add(&tools.tools);
        async { Ok("nothing there") }
    });
    options
        .mcp("mine", server)
        .on(PreToolUse, move |_, _| {
            add(&hooks.hooks);
            async {}
        })
        .can_use_tool(move |_, _| {
            add(&permissions.permissions);
            async { Permission::allow() }
        })
}

/// Runs sessions one after the other in several tasks, until the time is over.
async fn for_a_while(options: &Options, counts: &Arc<Counts>, time: Duration) -> Outcome {
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (options, counts) = (options.clone(), counts.clone());
        tasks.spawn(async move {
            while Instant::now() < end {
                one(&options, &counts).await.map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Runs one session with some turns, each of which may be dropped, stopped or killed.
async fn one(options: &Options, counts: &Counts) -> Outcome {
    let session = Session::open(options).await?;
    add(&counts.sessions);
    if counts.below(8) == 0 {
        // Drops the session at a random point of the handshake.
        tokio::time::sleep(Duration::from_millis(counts.below(20))).await;
        add(&counts.dropped);
        return Ok(());
    }
    for _ in 0..=counts.below(3) {
        let prompt = PROMPTS[usize::try_from(counts.below(4))?];
        let turn = session.send(prompt).await?;
        add(&counts.turns);
        match counts.below(10) {
            0 => {
                add(&counts.dropped);
                drop(turn);
            }
            1 => return killed(&session, turn, counts).await,
            2 => {
                let stop = tokio::spawn({
                    let session = session.clone();
                    async move { session.stop().await.map(drop) }
                });
                if turn.finish().await.is_err() {
                    add(&counts.cut_off);
                }
                stop.await??;
                return Ok(());
            }
            3 => session.interrupt().await.map(drop)?,
            _ => drop(turn.finish().await?),
        }
    }
    if counts.below(2) == 0 {
        add(&counts.dropped);
        return Ok(());
    }
    session.stop().await?;
    Ok(())
}

/// Kills the CLI during a turn. The turn fails unless it had completed before.
async fn killed(session: &Session, turn: Turn, counts: &Counts) -> Outcome {
    tokio::time::sleep(Duration::from_millis(counts.below(30))).await;
    let pid = session.pid().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
        // The process may have exited before.
        if rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok() {
            add(&counts.killed);
        }
    }
    if turn.finish().await.is_err() {
        add(&counts.cut_off);
    }
    // Must not hang.
    drop(session.stop().await);
    Ok(())
}

/// Waits until all cleanup is done, and returns the resource usage.
async fn settled(
    before: Option<ResourceUsage>,
) -> Result<ResourceUsage, Box<dyn std::error::Error>> {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut now = ResourceUsage::now();
    let is_settled = until(SETTLED, || {
        now = ResourceUsage::now();
        let same = before.is_none_or(|before| {
            now.descriptors <= before.descriptors && now.threads <= before.threads
        });
        same && now.children == 0 && tasks() <= 1
    });
    if is_settled.await {
        return Ok(now);
    }
    let left = children_of(id());
    Err(format!("before {before:?}, now {now:?}, {} tasks, children {left:?}", tasks()).into())
}
