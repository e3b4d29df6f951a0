//! Takes a conversation, or its store, away from a host of the real CLI, and looks at what the host reports.

use std::error::Error;
use std::fmt;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claude_agent_kit::store::{
    Append, Appended, EntryPage, Epoch, List, Load, MemoryStore, ProjectKey, SessionKey,
    SessionList, SessionStore, StoreError, StoreErrorKind, StoreFailurePolicy, StoreFuture,
    StoreOptions, Subpath,
};
use claude_agent_kit::{Conversation, ErrorKind, Options, Session, query};
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use serde_json::json;

use super::Area;
use crate::harness::Harness;
use crate::simulation::rng::Rng;

/// The claim.
pub const AREA: Area = Area {
    name: "two-hosts",
    claim: "a host that lost its session, or stops because of its store, never reports a turn as success: on each \
            of three CLIs, in sessions and queries",
    repetitions: 36,
};

/// A limit for hangs.
const HANG: Duration = Duration::from_secs(120);

/// How a host loses its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// Another host resumes the conversation before the turn.
    Before,
    /// Another host resumes the conversation during the turn.
    During,
    /// The store fails, with the policy to stop.
    Store,
}

/// Returns the loss of a repetition: two of three are those of a session.
pub fn loss(seed: u64) -> Loss {
    match seed % 3 {
        0 => Loss::Before,
        1 => Loss::During,
        _ => Loss::Store,
    }
}

/// The results of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Turns that failed with `Superseded` or `StoreFailed`.
    pub failed: usize,
    /// Turns that were stored before the loss.
    pub stored: usize,
}

impl Count {
    /// Adds another round.
    pub fn add(&mut self, other: &Self) {
        self.failed += other.failed;
        self.stored += other.stored;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed, {} stored before", self.failed, self.stored)
    }
}

/// Returns a model that runs a short command before it answers.
fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let is_first = request.assistant_turns_after_last_prompt() == 0;
        if request.last_prompt().as_deref() != Some("loses") || !is_first {
            return Reply::text("An answer.").pause_before(Duration::from_millis(20));
        }
        Reply::tool("Bash", json!({"command": "sleep 0.2", "description": "Wait"}))
    })
}

/// Plays a round.
///
/// # Errors
/// Returns the violation.
pub async fn count(harness: &Harness, loss: Loss, seed: u64) -> Result<Count, Box<dyn Error>> {
    harness.api().set_script(script());
    let mut rng = Rng::new(seed);
    let delay = Duration::from_millis(rng.between(0, 700) as u64);
    let store = Arc::new(FailingStore::default());
    let (a, b) = (options(harness, &store, "a")?, options(harness, &store, "b")?);
    let stops = loss == Loss::Store;
    let policy = if stops { StoreFailurePolicy::Stop } else { StoreFailurePolicy::Continue };
    let a = |conversation: Conversation| {
        let store = StoreOptions::new("tenant", store.clone()).project("app");
        a.clone().store(store.on_failure(policy)).conversation(conversation)
    };
    let session = Session::start(a(Conversation::new())).await?;
    session.send("one").await?.finish().await?.into_result()?;
    let id = session.session_id().ok_or("no session ID")?;
    let resume = || Conversation::resume(id.clone());
    let take = async || match loss {
        Loss::Before | Loss::During => {
            let second = Session::start(b.clone().conversation(resume())).await?;
            let reported = turn(&second, "two").await;
            drop(second.stop().await);
            reported
        }
        Loss::Store => {
            store.is_failing.store(true, Ordering::Relaxed);
            Ok(Some(true))
        }
    };
    let is_query = rng.chance(50) && loss != Loss::Before;
    let first_host = async || {
        if !is_query {
            return turn(&session, "loses").await;
        }
        session.stop().await?;
        let collected = query("loses", a(resume())).await?.collect().await.into_result()?;
        Ok(collected.stored)
    };
    let later = async || {
        tokio::time::sleep(delay).await;
        take().await
    };
    let play = async {
        match loss {
            Loss::Before => (take().await, first_host().await),
            Loss::During | Loss::Store => {
                let (first, second) = tokio::join!(first_host(), later());
                (second, first)
            }
        }
    };
    let (second, first) = tokio::time::timeout(HANG, play).await?;
    drop(session.stop().await);
    let who = format!("{loss:?}, query: {is_query}");
    // Of two hosts at once, either may be the last one.
    check(loss, &format!("{who}, the second host"), second)?;
    let count = check(loss, &who, first)?;
    if loss == Loss::Before && count.failed == 0 {
        return Err(format!("{who}: the turn was stored").into());
    }
    Ok(count)
}

/// Sends a prompt, and returns whether its turn is stored.
async fn turn(session: &Session, prompt: &str) -> claude_agent_kit::Result<Option<bool>> {
    let outcome = session.send(prompt).await?.finish().await?;
    outcome.into_result().map(|outcome| outcome.stored)
}

fn check(
    loss: Loss,
    who: &str,
    reported: claude_agent_kit::Result<Option<bool>>,
) -> Result<Count, Box<dyn Error>> {
    let expected = match loss {
        Loss::Before | Loss::During => ErrorKind::Superseded,
        Loss::Store => ErrorKind::StoreFailed,
    };
    match reported {
        Err(error) if error.kind() == expected => Ok(Count { failed: 1, stored: 0 }),
        Ok(Some(true)) => Ok(Count { failed: 0, stored: 1 }),
        other => Err(format!("{who}: the turn was {other:?}").into()),
    }
}

/// Returns the options of a host with a config directory of its own.
fn options(
    harness: &Harness,
    store: &Arc<FailingStore>,
    machine: &str,
) -> Result<Options, Box<dyn Error>> {
    let config = harness.root().join(format!("config-{machine}"));
    fs::create_dir_all(&config)?;
    Ok(harness
        .options()
        .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
        .allowed_tools(["Bash"])
        .store(StoreOptions::new("tenant", store.clone()).project("app")))
}

/// A store that rejects entries from some time on.
#[derive(Default)]
struct FailingStore {
    memory: MemoryStore,
    is_failing: AtomicBool,
}

impl SessionStore for FailingStore {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        self.memory.claim(key)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        if self.is_failing.load(Ordering::Relaxed) {
            let error = StoreError::new(StoreErrorKind::Rejected, "the store is read-only");
            return Box::pin(async { Err(error) });
        }
        self.memory.append(key, append)
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        self.memory.load(key, load)
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        self.memory.list(project, list)
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        self.memory.subpaths(key)
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        self.memory.delete(key, subpath)
    }
}
