//! Appends entries to the store, in a task of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use claude_wire::session::{
    AppendFailure, BatchNumber, CatchUp, Event, MirrorBatch, MirrorSession,
};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tracing::Instrument as _;

use super::catch_up::Stored;
use crate::commands::CommandSender;
use crate::panics;
use crate::store::{
    Epoch, NewEntry, SessionKey, StoreError, StoreErrorKind, StoreOptions, Subpath,
};

/// The time after which a request that the store does not answer counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The store of a run, and the task of the append in flight.
pub(crate) struct MirrorTasks {
    shared: Arc<Shared>,
    runtime: Handle,
    commands: CommandSender,
    task: Option<AbortHandle>,
}

pub(super) struct Shared {
    pub(super) options: StoreOptions,
    /// Locked by one task at a time. An aborted task leaves it as it was before its last request.
    state: Mutex<MirrorState>,
}

#[derive(Default)]
pub(super) struct MirrorState {
    pub(super) sessions: HashMap<SessionKey, OwnedSession>,
    batch: Option<Batch>,
    /// Whether entries are read from files and not from batches.
    is_catching_up: bool,
}

impl MirrorState {
    /// Prepares for reading files. After a failure it is unknown what the store has.
    pub(super) fn begin_catch_up(&mut self) {
        if !self.is_catching_up {
            self.is_catching_up = true;
            self.batch = None;
            self.forget_stored();
        }
    }

    pub(super) fn forget_stored(&mut self) {
        self.sessions.values_mut().for_each(|session| session.stored = None);
    }
}

/// A session that this run has claimed.
pub(super) struct OwnedSession {
    pub(super) epoch: Epoch,
    /// What the store has; `None` until it is loaded.
    pub(super) stored: Option<Stored>,
}

/// The batch that is being appended. A retry sends the same IDs.
struct Batch {
    key: SessionKey,
    raw: Vec<(Option<Subpath>, Arc<str>)>,
    entries: Option<Vec<NewEntry>>,
}

impl MirrorTasks {
    pub(super) fn new(options: StoreOptions, runtime: Handle, commands: CommandSender) -> Self {
        let shared = Arc::new(Shared { options, state: Mutex::default() });
        Self { shared, runtime, commands, task: None }
    }

    /// Appends a batch. Its outcome arrives as an event.
    pub(super) fn append(&mut self, batch: &MirrorBatch) {
        let prepared = self.shared.prepare(batch);
        let shared = self.shared.clone();
        self.spawn(batch.number, async move {
            let prepared = prepared?;
            let mut state = shared.state.lock().await;
            state.batch = Some(prepared);
            shared.send(&mut state).await
        });
    }

    /// Appends the last batch again.
    pub(super) fn retry(&mut self, number: BatchNumber) {
        let shared = self.shared.clone();
        self.spawn(number, async move {
            let mut state = shared.state.lock().await;
            shared.send(&mut state).await
        });
    }

    /// Stores what is missing from the files of the CLI. The outcome arrives as an event.
    pub(super) fn catch_up(&mut self, request: CatchUp) {
        let shared = self.shared.clone();
        self.spawn(request.number, async move {
            let mut state = shared.state.lock().await;
            shared.catch_up(&mut state, &request).await
        });
    }

    /// Aborts the append. The store may have it or not.
    pub(super) fn abandon(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    fn spawn(
        &mut self,
        batch: BatchNumber,
        request: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) {
        let commands = self.commands.clone();
        let task = async move {
            let event = match catch_panics(request).await {
                Ok(()) => Event::Appended(batch),
                Err(error) => {
                    tracing::debug!(kind = %error.kind(), "the store failed: {error}");
                    let failure = failure_of(&error);
                    Event::AppendFailed { batch, failure, reason: reason_of(&error) }
                }
            };
            // After the end of the driver there is nothing to report.
            let _ = commands.send(event);
        };
        let span = tracing::debug_span!("claude_store");
        self.task = Some(self.runtime.spawn(task.instrument(span)).abort_handle());
    }
}

impl Drop for MirrorTasks {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Shared {
    pub(super) fn key(&self, session: &MirrorSession) -> Result<SessionKey, StoreError> {
        SessionKey::new(&self.options.scope, &session.project, session.session.as_str())
    }

    /// Returns the session, and claims it first if this run has not claimed it.
    pub(super) async fn owned<'a>(
        &self,
        sessions: &'a mut HashMap<SessionKey, OwnedSession>,
        key: &SessionKey,
    ) -> Result<&'a mut OwnedSession, StoreError> {
        match sessions.entry(key.clone()) {
            Entry::Occupied(session) => Ok(session.into_mut()),
            Entry::Vacant(vacant) => {
                let epoch = limited(self.options.store.claim(key)).await?;
                Ok(vacant.insert(OwnedSession { epoch, stored: None }))
            }
        }
    }

    fn prepare(&self, batch: &MirrorBatch) -> Result<Batch, StoreError> {
        let key = self.key(&batch.session)?;
        let raw = batch.entries.iter().map(|entry| {
            let subpath = entry.subpath.as_deref().map(Subpath::new).transpose()?;
            Ok((subpath, entry.text.clone()))
        });
        let raw = raw.collect::<Result<Vec<_>, StoreError>>()?;
        Ok(Batch { key, raw, entries: None })
    }

    /// Sends the batch, after the session was claimed and its entries were counted.
    async fn send(&self, state: &mut MirrorState) -> Result<(), StoreError> {
        state.is_catching_up = false;
        let MirrorState { sessions, batch: slot, .. } = state;
        let Some(batch) = slot else { return Ok(()) };
        let store = &*self.options.store;
        let session = self.owned(sessions, &batch.key).await?;
        let stored = match &mut session.stored {
            Some(stored) if !stored.summary.is_outdated() => stored,
            empty => empty.insert(Stored::load(store, &batch.key).await?),
        };
        let occurrences = &mut stored.occurrences;
        let entries = match &mut batch.entries {
            Some(entries) => entries,
            empty => {
                let raw = batch.raw.drain(..);
                let entries = raw.map(|(subpath, text)| occurrences.entry(subpath, text));
                empty.insert(entries.collect::<Result<Vec<_>, _>>()?)
            }
        };
        stored.summary.append(store, &batch.key, session.epoch, entries).await?;
        *slot = None;
        Ok(())
    }
}

/// Limits the time of one request.
pub(super) async fn limited<T>(
    request: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(REQUEST_TIMEOUT, request).await.unwrap_or_else(|_| Err(timed_out()))
}

pub(crate) fn timed_out() -> StoreError {
    let message = format!("the store did not respond within {REQUEST_TIMEOUT:?}");
    StoreError::new(StoreErrorKind::Unavailable, message)
}

pub(crate) fn panicked() -> StoreError {
    StoreError::new(StoreErrorKind::Rejected, "the store panicked")
}

/// Turns a panic of the store into an error.
async fn catch_panics(
    request: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let mut request = pin!(request);
    poll_fn(|context| {
        let polled = panics::catch(|| request.as_mut().poll(context));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

/// Returns the text without its help: the warning or the error that quotes it has its own.
fn reason_of(error: &StoreError) -> String {
    let text = error.to_string();
    text.split_once("; help: ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

fn failure_of(error: &StoreError) -> AppendFailure {
    match error.kind() {
        StoreErrorKind::Superseded => AppendFailure::Superseded,
        _ if error.is_retryable() => AppendFailure::Retryable,
        _ => AppendFailure::Permanent,
    }
}
