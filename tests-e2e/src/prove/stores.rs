//! Kills hosts at random points while they continue one conversation on a store that fails.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claude_agent_kit::store::{
    Append, Appended, EntryPage, Epoch, List, Load, MemoryStore, ProjectKey, RecoveryOutcome,
    SessionKey, SessionList, SessionStore, StoreError, StoreErrorKind, StoreFuture, StoreOptions,
    Subpath, recover,
};
use claude_agent_kit::{Conversation, Options, Session, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::Sim;
use serde_json::Value;

use super::Area;
use crate::simulation::rng::Rng;

/// The claim.
pub const AREA: Area = Area {
    name: "stores",
    claim: "with killed hosts and a failing store, nothing acknowledged is lost, nothing is stored twice, and \
            the next resume is complete",
    repetitions: 2_000,
};

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

/// What happened in a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// Hosts that were killed.
    pub killed: usize,
    /// Turns whose result said that everything is stored.
    pub acknowledged: usize,
    /// Turns whose result said that something is not stored.
    pub unacknowledged: usize,
    /// Conversations that were sent by a later run or by `recover`.
    pub recovered: usize,
    /// Branches that another host had continued without.
    pub orphaned: usize,
    /// Faults of the store.
    pub faults: usize,
}

impl Played {
    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.killed += other.killed;
        self.acknowledged += other.acknowledged;
        self.unacknowledged += other.unacknowledged;
        self.recovered += other.recovered;
        self.orphaned += other.orphaned;
        self.faults += other.faults;
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} hosts killed, {} faults of the store, {} turns acknowledged, {} not, {} recovered, {} orphaned",
            self.killed,
            self.faults,
            self.acknowledged,
            self.unacknowledged,
            self.recovered,
            self.orphaned
        )
    }
}

/// Plays a run: several hosts on two machines continue one conversation, one after the other.
///
/// # Errors
/// Returns the violation.
pub fn play(seed: u64) -> Result<Played, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut run = Run {
        rng: Rng::new(seed),
        root: directory.path().to_owned(),
        store: Arc::new(FlakyStore::new(seed)),
        sim: Sim::new().script(
            Script::new().otherwise([Reply::text("An answer in parts.")
                .deltas_of(4)
                .pause_between(Duration::from_millis(20))]),
        ),
        acknowledged: Vec::new(),
        prompts: 0,
        played: Played::default(),
    };
    let outcome = run.play();
    outcome.map(|()| run.played).map_err(|violation| format!("seed {seed}: {violation}"))
}

struct Run {
    rng: Rng,
    root: PathBuf,
    store: Arc<FlakyStore>,
    sim: Sim,
    /// The prompts of turns that were reported as stored.
    acknowledged: Vec<String>,
    prompts: usize,
    played: Played,
}

impl Run {
    fn play(&mut self) -> Result<(), String> {
        for _ in 0..self.rng.between(2, 5) {
            // The store may fail after the conversation was resumed.
            self.store.set_mode(self.rng.pick(&[0, 0, 0, 1, 2, 3]));
            let machine = self.rng.between(0, 1);
            let turns = self.rng.between(1, 3);
            let kill_after =
                (self.rng.between(0, 3) > 0).then(|| self.rng.between(0, 3_999) as u64);
            self.host(machine, turns, kill_after)?;
        }
        for machine in 0..2 {
            self.recover(machine)?;
        }
        self.acknowledged_in_last_host()?;
        self.check_store()
    }

    fn options(&self, machine: usize) -> Options {
        let (config, cwd) = (self.config(machine), self.root.join(format!("work-{machine}")));
        // Without it the start fails, which the last host reports.
        drop(std::fs::create_dir_all(&cwd));
        Options::new()
            .simulated(self.sim.clone())
            .cwd(cwd)
            .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
            .store(StoreOptions::new("tenant", self.store.clone()).project("app"))
            .conversation(Conversation::resume_or_start(ID))
    }

    fn config(&self, machine: usize) -> PathBuf {
        self.root.join(format!("config-{machine}"))
    }

    /// Runs a host until it is done or killed: its runtime is dropped with all its tasks.
    fn host(
        &mut self,
        machine: usize,
        turns: usize,
        kill_after: Option<u64>,
    ) -> Result<(), String> {
        let prompts: Vec<String> = (0..turns).map(|_| self.next_prompt()).collect();
        let done = Arc::new(Mutex::new(Vec::new()));
        let orphaned = Arc::new(AtomicUsize::new(0));
        let count = orphaned.clone();
        let options = self.options(machine).on_warning(move |warning| {
            let is_orphaned = warning.code() == WarningCode::OrphanedBranch;
            count.fetch_add(usize::from(is_orphaned), Ordering::Relaxed);
        });
        let work = work(options, prompts, done.clone());
        let runtime = runtime()?;
        let (store, later) = (self.store.clone(), self.rng.between(0, 3));
        let change_after = Duration::from_millis(self.rng.between(0, 2_000) as u64);
        let kill = async {
            tokio::time::sleep(change_after).await;
            store.set_mode(later);
            match kill_after {
                Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                None => std::future::pending().await,
            }
        };
        let was_killed = runtime.block_on(async {
            tokio::select! { () = kill => true, () = work => false }
        });
        // Background threads may be reading a file.
        runtime.shutdown_timeout(Duration::from_secs(10));
        self.played.killed += usize::from(was_killed);
        self.played.orphaned += orphaned.load(Ordering::Relaxed);
        for (prompt, stored) in done.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if stored {
                self.played.acknowledged += 1;
                self.acknowledged.push(prompt);
            } else {
                self.played.unacknowledged += 1;
            }
        }
        Ok(())
    }

    fn next_prompt(&mut self) -> String {
        self.prompts += 1;
        format!("prompt-{}-end", self.prompts)
    }

    fn recover(&mut self, machine: usize) -> Result<(), String> {
        self.store.set_mode(0);
        let recovered = runtime()?.block_on(recover(&self.options(machine)));
        for found in recovered.map_err(|error| error.to_string())? {
            match found.outcome {
                RecoveryOutcome::Stored(_) => self.played.recovered += 1,
                _ => self.played.orphaned += 1,
            }
        }
        let left = private_folders(&self.config(machine));
        let unsettled = left.iter().find(|note| note["state"] != "orphaned");
        unsettled.map_or(Ok(()), |note| Err(format!("not recovered: {note}")))
    }

    /// Lets a last host continue, which must see every acknowledged turn.
    fn acknowledged_in_last_host(&mut self) -> Result<(), String> {
        let (machine, before) = (self.rng.between(0, 1), self.acknowledged.clone());
        self.store.is_fixed.store(true, Ordering::Relaxed);
        self.host(machine, 1, None)?;
        let last = format!("prompt-{}-end", self.prompts);
        if self.acknowledged.last() != Some(&last) {
            return Err("the last turn was not stored".to_owned());
        }
        let requests = self.sim.model().requests();
        let request =
            requests.iter().rev().find(|request| request.last_prompt() == Some(last.clone()));
        let seen = request.ok_or("the model was not asked")?.prompts();
        let mut positions = before.iter().map(|prompt| seen.iter().position(|it| it == prompt));
        let mut previous = None;
        positions.try_for_each(|position| {
            let is_next = position.is_some() && position > previous;
            previous = position;
            is_next
                .then_some(())
                .ok_or_else(|| format!("the model saw {seen:?}, not all of {before:?}"))
        })
    }

    /// Checks that every entry is stored once, with everything before it.
    fn check_store(&mut self) -> Result<(), String> {
        let key = key()?;
        let page = runtime()?.block_on(self.store.memory.load(&key, Load::all().limit(usize::MAX)));
        let entries = page.map_err(|error| error.to_string())?.entries;
        let ids: BTreeSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        if ids.len() != entries.len() {
            return Err("an ID is stored twice".to_owned());
        }
        let mut uuids = BTreeSet::new();
        for entry in &entries {
            let value: Value =
                serde_json::from_str(&entry.text).map_err(|error| error.to_string())?;
            let Some(uuid) = value["uuid"].as_str() else { continue };
            if !uuids.insert(uuid.to_owned()) {
                return Err(format!("{uuid} is stored twice"));
            }
            let parent = value["parentUuid"].as_str();
            if parent.is_some_and(|parent| !uuids.contains(parent)) {
                return Err(format!("{uuid} is stored without the entry before it"));
            }
        }
        for prompt in &self.acknowledged {
            let count = entries.iter().filter(|entry| is_prompt(&entry.text, prompt)).count();
            if count != 1 {
                return Err(format!("{prompt} is stored {count} times"));
            }
        }
        self.played.faults = self.store.faults();
        Ok(())
    }
}

/// Sends the prompts, and records which turns were reported as stored.
async fn work(options: Options, prompts: Vec<String>, done: Arc<Mutex<Vec<(String, bool)>>>) {
    // A store that fails may fail the start.
    let Ok(session) = Session::start(options).await else { return };
    for prompt in prompts {
        let Ok(turn) = session.send(prompt.as_str()).await else { return };
        let Ok(outcome) = turn.finish().await else { return };
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push((prompt, outcome.stored == Some(true)));
    }
    // The run may have failed because of the store.
    drop(session.stop().await);
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().map_err(|error| error.to_string())
}

fn key() -> Result<SessionKey, String> {
    SessionKey::new("tenant", "app", ID).map_err(|error| error.to_string())
}

fn is_prompt(entry: &str, prompt: &str) -> bool {
    entry.contains("\"type\":\"user\"") && entry.contains(prompt)
}

/// Returns the notes of the private folders in a config directory.
fn private_folders(config: &Path) -> Vec<Value> {
    let folders = std::fs::read_dir(config.join("projects")).into_iter().flatten().flatten();
    let notes =
        folders.filter_map(|folder| std::fs::read(folder.path().join("session-store.json")).ok());
    notes.filter_map(|note| serde_json::from_slice(&note).ok()).collect()
}

/// A store that fails, stalls, and loses responses.
struct FlakyStore {
    memory: MemoryStore,
    /// Whether the store works from now on.
    is_fixed: AtomicBool,
    state: Mutex<FlakyState>,
}

struct FlakyState {
    rng: Rng,
    /// 0: works; 1: some requests fail; 2: most requests fail; 3: none works.
    mode: usize,
    faults: usize,
}

/// What happens to a request.
enum Fate {
    Works,
    Fails,
    /// The request is executed, but its response is lost.
    LosesResponse,
    Stalls,
}

impl FlakyStore {
    fn new(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x5354_4f52_4553);
        Self {
            memory: MemoryStore::new(),
            is_fixed: AtomicBool::new(false),
            state: Mutex::new(FlakyState { rng, mode: 0, faults: 0 }),
        }
    }

    fn set_mode(&self, mode: usize) {
        let mode = if self.is_fixed.load(Ordering::Relaxed) { 0 } else { mode };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).mode = mode;
    }

    fn faults(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).faults
    }

    fn fate(&self) -> (Duration, Fate) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let percent = [0, 20, 70, 100][state.mode];
        let latency = Duration::from_millis(state.rng.between(0, 59) as u64);
        if !state.rng.chance(percent) {
            return (latency, Fate::Works);
        }
        state.faults += 1;
        match state.rng.between(0, 2) {
            0 => (latency, Fate::Fails),
            1 => (latency, Fate::LosesResponse),
            _ => (latency, Fate::Stalls),
        }
    }

    async fn request<T>(&self, request: StoreFuture<'_, T>) -> Result<T, StoreError> {
        let (latency, fate) = self.fate();
        tokio::time::sleep(latency).await;
        let failed = || StoreError::new(StoreErrorKind::Unavailable, "the store is down");
        match fate {
            Fate::Works => request.await,
            Fate::Fails => Err(failed()),
            Fate::LosesResponse => {
                request.await?;
                Err(failed())
            }
            Fate::Stalls => std::future::pending().await,
        }
    }
}

impl SessionStore for FlakyStore {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        Box::pin(self.request(self.memory.claim(key)))
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(self.request(self.memory.append(key, append)))
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(self.request(self.memory.load(key, load)))
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(self.request(self.memory.list(project, list)))
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        Box::pin(self.request(self.memory.subpaths(key)))
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(self.request(self.memory.delete(key, subpath)))
    }
}
