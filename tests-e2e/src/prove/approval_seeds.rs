//! Approvals with killed and competing hosts, on a store that fails: seeded runs on the simulated CLI.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claude_agent_kit::approval::{
    self, Approval, ApprovalId, ApprovalPolicy, ApprovalStatus, Approvals, Decision,
};
use claude_agent_kit::schemars;
use claude_agent_kit::store::{
    Epoch, MemoryStore, OwnerKey, RecordChange, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWrite, StoreError, StoreErrorKind, StoreFuture,
    StoreOptions,
};
use claude_agent_kit::{Conversation, Options, Session, ToolError, ToolServer};
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use claude_agent_testkit::sim::Sim;
use serde::Deserialize;
use serde_json::json;

use super::Area;
use crate::simulation::rng::Rng;

/// The claim.
pub const AREA: Area = Area {
    name: "approval-seeds",
    claim: "with killed and competing hosts and a failing store, a call runs at most once per approval, and never \
            without one",
    repetitions: 5_000,
};

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e13";
const TOOL: &str = "mcp__host__run";

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// Hosts that were killed.
    pub killed: usize,
    /// Pairs of hosts that resumed at the same time.
    pub competing: usize,
    /// Faults of the store.
    pub faults: usize,
    /// Calls that were executed.
    pub executed: usize,
    /// Approvals that were denied.
    pub denied: usize,
    /// Approvals that expired.
    pub expired: usize,
    /// Approvals whose outcome is unknown.
    pub unknown: usize,
    /// Approvals that were withdrawn.
    pub withdrawn: usize,
}

impl Played {
    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.killed += other.killed;
        self.competing += other.competing;
        self.faults += other.faults;
        self.executed += other.executed;
        self.denied += other.denied;
        self.expired += other.expired;
        self.unknown += other.unknown;
        self.withdrawn += other.withdrawn;
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { killed, competing, faults, executed, denied, expired, unknown, withdrawn } =
            self;
        write!(
            f,
            "{killed} hosts killed, {competing} pairs of hosts at once, {faults} faults of the store, {executed} calls \
             executed, {denied} denied, {expired} expired, {unknown} with an unknown outcome, {withdrawn} withdrawn"
        )
    }
}

/// Plays a run: several hosts on two machines continue one conversation, and an approver decides.
///
/// # Errors
/// Returns the violation.
pub fn play(seed: u64) -> Result<Played, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut run = Run {
        rng: Rng::new(seed),
        root: directory.path().to_owned(),
        sessions: MemoryStore::new(),
        store: Arc::new(FlakyApprovals::new(seed)),
        sim: Sim::new().script(Script::respond_with(reply)),
        executed: Arc::default(),
        prompts: 0,
        played: Played::default(),
    };
    let outcome = run.play();
    outcome.map(|()| run.played).map_err(|violation| format!("seed {seed}: {violation}"))
}

/// Answers as a model that issues up to four calls, and issues those that were held again.
fn reply(request: &ApiRequest) -> Reply {
    let prompt = request.last_prompt().unwrap_or_default();
    if request.assistant_turns_after_last_prompt() > 0 {
        return Reply::text("Done.");
    }
    let names = match prompt.strip_prefix("turn ").and_then(|rest| rest.split_once(' ')) {
        Some((turn, count)) => {
            let count = count.parse().unwrap_or(1);
            (0..count).map(|call| format!("{turn}-{call}")).collect()
        }
        None => held(request),
    };
    if names.is_empty() {
        return Reply::text("Nothing to do.");
    }
    names.iter().fold(Reply::new(), |reply, name| reply.and_tool(TOOL, json!({"name": name})))
}

/// Returns the calls whose last result says that they wait for their approval.
fn held(request: &ApiRequest) -> Vec<String> {
    let (mut names, mut held) = (BTreeMap::new(), BTreeMap::new());
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    for block in blocks {
        if let Some(name) = block["input"]["name"].as_str() {
            names.insert(block["id"].clone().to_string(), name.to_owned());
        }
        if let Some(name) = names.get(&block["tool_use_id"].to_string()) {
            let is_held = block["content"].to_string().contains("waiting for approval");
            held.insert(name.clone(), is_held);
        }
    }
    held.into_iter().filter_map(|(name, is_held)| is_held.then_some(name)).collect()
}

struct Run {
    rng: Rng,
    root: PathBuf,
    sessions: MemoryStore,
    store: Arc<FlakyApprovals>,
    sim: Sim,
    /// The names of the calls that were executed.
    executed: Arc<Mutex<Vec<String>>>,
    prompts: usize,
    played: Played,
}

impl Run {
    fn play(&mut self) -> Result<(), String> {
        for _ in 0..self.rng.between(3, 7) {
            self.store.set_mode(self.rng.between(0, 2));
            let prompt = self.rng.chance(50).then(|| self.next_prompt());
            let is_pair = self.rng.chance(30);
            let kill_after = self.rng.chance(60).then(|| self.rng.between(0, 3_000) as u64);
            self.hosts(prompt, is_pair, kill_after)?;
        }
        self.finish()?;
        self.check()
    }

    fn next_prompt(&mut self) -> String {
        self.prompts += 1;
        format!("turn {} {}", self.prompts, self.rng.between(1, 4))
    }

    fn options(&mut self, machine: usize) -> Options {
        let (config, cwd) = (
            self.root.join(format!("config-{machine}")),
            self.root.join(format!("work-{machine}")),
        );
        // Without it the start fails, which the last host reports.
        drop(std::fs::create_dir_all(&cwd));
        let park_after = Duration::from_millis(self.rng.pick(&[0, 0, 500, 3_000]));
        let expiry = self.rng.pick(&[None, None, Some(Duration::from_secs(8))]);
        let approvals = Approvals::new("tenant", self.store.clone());
        let policy = ApprovalPolicy::new(approvals).tools([TOOL]).park_after(park_after);
        let policy = match expiry {
            Some(time) => policy.expires_after(time),
            None => policy,
        };
        let (executed, takes) = (self.executed.clone(), self.rng.between(0, 1_500) as u64);
        let run = move |call: RunCall| {
            let executed = executed.clone();
            async move {
                lock(&executed).push(call.name);
                tokio::time::sleep(Duration::from_millis(takes)).await;
                Ok::<_, ToolError>("done")
            }
        };
        Options::new()
            .simulated(self.sim.clone())
            .cwd(cwd)
            .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
            .mcp("host", ToolServer::new().tool("run", "Runs a call", run))
            .allowed_tools([TOOL])
            .store(StoreOptions::new("tenant", self.sessions.clone()).project("app"))
            .approvals(policy)
            .conversation(Conversation::resume_or_start(ID))
    }

    /// Runs one or two hosts until they are done or killed: their runtime is dropped with all its tasks.
    fn hosts(
        &mut self,
        prompt: Option<String>,
        is_pair: bool,
        kill_after: Option<u64>,
    ) -> Result<(), String> {
        let machine = self.rng.between(0, 1);
        let first = host(self.options(machine), prompt);
        let second = is_pair.then(|| (self.options(1 - machine), self.rng.between(0, 800) as u64));
        let second = async {
            let Some((options, delay)) = second else { return };
            tokio::time::sleep(Duration::from_millis(delay)).await;
            host(options, None).await;
        };
        let approver = approve(self.store.clone(), self.rng.branch());
        let kill = async {
            match kill_after {
                Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                None => std::future::pending().await,
            }
        };
        let runtime = runtime()?;
        let was_killed = runtime.block_on(async {
            tokio::select! {
                () = kill => true,
                () = approver => false,
                ((), ()) = async { tokio::join!(first, second) } => false,
            }
        });
        // Background threads may be reading a file.
        runtime.shutdown_timeout(Duration::from_secs(10));
        self.played.killed += usize::from(was_killed);
        self.played.competing += usize::from(is_pair);
        Ok(())
    }

    /// Decides about everything, and continues until nothing is left.
    fn finish(&mut self) -> Result<(), String> {
        self.store.is_fixed.store(true, Ordering::Relaxed);
        for _ in 0..30 {
            self.decide_all()?;
            let options = self.options(0);
            let outcome = runtime()?.block_on(approval::resume(options));
            match outcome.map_err(|error| format!("the last host failed: {error}"))? {
                // A decision for a call that the model never issues again stays unused.
                Some(outcome) if outcome.is_parked() => {}
                Some(_) | None => return Ok(()),
            }
        }
        Err("the conversation never ends".to_owned())
    }

    fn decide_all(&mut self) -> Result<(), String> {
        let approvals = Approvals::new("tenant", self.store.clone());
        let rng = &mut self.rng;
        runtime()?.block_on(async {
            for pending in approvals.pending().await.map_err(|error| error.to_string())? {
                let decision = decision(rng);
                // It may have expired meanwhile.
                drop(approvals.decide(&pending.request.id, decision).await);
            }
            Ok(())
        })
    }

    /// Checks that the calls were executed as decided.
    fn check(&mut self) -> Result<(), String> {
        let mut executed: BTreeMap<String, usize> = BTreeMap::new();
        for name in lock(&self.executed).iter() {
            *executed.entry(name.clone()).or_default() += 1;
        }
        let mut possible: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for approval in self.store.all() {
            let name = approval.request.input.get("name");
            let name = name.and_then(|name| Some(name.as_str()?.into_owned())).unwrap_or_default();
            let allowed = approval.decision.as_ref().is_some_and(Decision::is_allowed);
            let (least, most) = possible.entry(name).or_default();
            match approval.status {
                ApprovalStatus::Finished if allowed => {
                    *least += 1;
                    *most += 1;
                }
                ApprovalStatus::Finished => self.played.denied += 1,
                ApprovalStatus::Started => *most += 1,
                ApprovalStatus::OutcomeUnknown => {
                    self.played.unknown += 1;
                    *most += 1;
                }
                ApprovalStatus::Expired => self.played.expired += 1,
                ApprovalStatus::Withdrawn => self.played.withdrawn += 1,
                _ => {}
            }
        }
        for (name, count) in &executed {
            self.played.executed += count;
            if possible.get(name).is_none_or(|(_, most)| count > most) {
                return Err(format!("{name} ran {count} times: {:?}", possible.get(name)));
            }
        }
        for (name, (least, _)) in &possible {
            if executed.get(name).copied().unwrap_or_default() < *least {
                return Err(format!("{name} has a result and did not run"));
            }
        }
        self.played.faults = self.store.faults();
        Ok(())
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct RunCall {
    name: String,
}

/// Sends a prompt, or continues a parked conversation. A host may fail because of the store or another host.
async fn host(options: Options, prompt: Option<String>) {
    let Some(prompt) = prompt else {
        drop(approval::resume(options).await);
        return;
    };
    let Ok(session) = Session::start(options).await else { return };
    // A call that is replayed comes first.
    if let Ok(Some(turn)) = session.replayed_turn().await
        && turn.finish().await.is_err()
    {
        return;
    }
    let Ok(turn) = session.send(prompt).await else { return };
    drop(turn.finish().await);
    drop(session.stop().await);
}

fn decision(rng: &mut Rng) -> Decision {
    match rng.between(0, 3) {
        0 => Decision::deny("ana", "no"),
        _ => Decision::allow("ana"),
    }
}

/// Decides about some of the pending requests, at random times.
async fn approve(store: Arc<FlakyApprovals>, mut rng: Rng) {
    let approvals = Approvals::new("tenant", store.clone());
    loop {
        tokio::time::sleep(Duration::from_millis(rng.between(50, 1_500) as u64)).await;
        store.clock.fetch_add(rng.between(0, 2_000) as u64, Ordering::Relaxed);
        for pending in approvals.pending().await.unwrap_or_default() {
            if rng.chance(40) {
                drop(approvals.decide(&pending.request.id, decision(&mut rng)).await);
            }
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().map_err(|error| error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An approval store that fails and loses responses, with a clock of its own.
struct FlakyApprovals {
    memory: MemoryStore,
    clock: AtomicU64,
    /// Whether the store works from now on.
    is_fixed: AtomicBool,
    state: Mutex<FlakyState>,
    /// Every approval that was ever written.
    written: Mutex<BTreeMap<ApprovalId, Approval>>,
}

struct FlakyState {
    rng: Rng,
    /// 0: works; 1: some requests fail; 2: many requests fail.
    mode: usize,
    faults: usize,
}

impl FlakyApprovals {
    fn new(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x4150_5052_4f56);
        Self {
            memory: MemoryStore::new(),
            clock: AtomicU64::new(1_000_000),
            is_fixed: AtomicBool::new(false),
            state: Mutex::new(FlakyState { rng, mode: 0, faults: 0 }),
            written: Mutex::default(),
        }
    }

    /// Keeps what was written, for the check at the end.
    fn note(&self, changes: &[RecordChange]) {
        for change in changes {
            let approval: Approval = serde_json::from_str(&change.body).expect("an approval");
            lock(&self.written).insert(approval.request.id.clone(), approval);
        }
    }

    fn set_mode(&self, mode: usize) {
        lock(&self.state).mode = mode;
    }

    fn faults(&self) -> usize {
        lock(&self.state).faults
    }

    fn all(&self) -> Vec<Approval> {
        lock(&self.written).values().cloned().collect()
    }

    /// Fails now and then: before the request, or after it, so that its response is lost.
    fn fault(&self) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        let percent =
            if self.is_fixed.load(Ordering::Relaxed) { 0 } else { [0, 5, 20][state.mode] };
        if !state.rng.chance(percent) {
            return Ok(());
        }
        state.faults += 1;
        Err(StoreError::new(StoreErrorKind::Unavailable, "the store is down"))
    }
}

impl RecordStore for FlakyApprovals {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            self.fault()?;
            let epoch = self.memory.claim_records(owner).await?;
            self.fault()?;
            Ok(epoch)
        })
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            self.fault()?;
            // Requests take time, so that others come in between.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let is_written = self.memory.write_records(write).await?;
            if is_written {
                self.note(write.changes);
            }
            self.fault()?;
            Ok(is_written)
        })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            self.fault()?;
            let mut page = self.memory.list_records(list).await?;
            page.now_ms = self.clock.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.fault()?;
            Ok(page)
        })
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        self.memory.delete_records(selection, kind, limit)
    }
}
