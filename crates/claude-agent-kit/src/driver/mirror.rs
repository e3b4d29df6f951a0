//! Appends entries to the store, in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_core::session::{
    AppendFailure, BatchNumber, CatchUp, Event, MirrorBatch, MirrorSession,
};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use crate::commands::CommandSender;
use crate::panics;
use crate::store::{
    MirrorStart, NewEntry, OwnedSessions, PrivateFolder, SessionKey, StoreError, StoreErrorKind,
    StoreFuture, StoreName, Stored, Subpath, Target, upload,
};
use crate::tasks;

/// The time for the last entries of a CLI that did not exit regularly.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// The store of a run, and the task of the append in flight.
pub(crate) struct MirrorTasks {
    shared: Arc<Shared>,
    runtime: Handle,
    commands: CommandSender,
    /// The session of the last batch.
    session: Option<Arc<MirrorSession>>,
    task: Option<AbortHandle>,
}

pub(super) struct Shared {
    pub(super) target: Target,
    /// Locked by one task at a time. An aborted task leaves it as it was before its last request.
    state: Mutex<MirrorState>,
}

#[derive(Default)]
pub(super) struct MirrorState {
    pub(super) sessions: OwnedSessions,
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
            self.sessions.forget_stored();
        }
    }
}

/// The batch that is being appended. A retry sends the same IDs.
struct Batch {
    key: SessionKey,
    raw: Vec<(Option<Subpath>, Arc<str>)>,
    entries: Option<Vec<NewEntry>>,
}

impl MirrorTasks {
    pub(super) fn new(start: MirrorStart, runtime: &Handle, commands: &CommandSender) -> Self {
        let MirrorStart { target, sessions } = start;
        if let Some(folder) = &target.folder {
            folder.set_used();
        }
        let state = Mutex::new(MirrorState { sessions, ..MirrorState::default() });
        let shared = Arc::new(Shared { target, state });
        Self {
            shared,
            runtime: runtime.clone(),
            commands: commands.clone(),
            session: None,
            task: None,
        }
    }

    /// Appends a batch. Its outcome arrives as an event.
    pub(super) fn append(&mut self, batch: &MirrorBatch) {
        let prepared = self.shared.prepare(batch);
        let shared = self.shared.clone();
        let request = async move {
            let prepared = prepared?;
            let mut state = shared.state.lock().await;
            state.batch = Some(prepared);
            shared.send(&mut state).await
        };
        self.session = Some(batch.session.clone());
        self.spawn(batch.number, self.session.clone(), Box::pin(request));
    }

    /// Appends the last batch again.
    pub(super) fn retry(&mut self, number: BatchNumber) {
        let shared = self.shared.clone();
        let request = async move {
            let mut state = shared.state.lock().await;
            shared.send(&mut state).await
        };
        self.spawn(number, self.session.clone(), Box::pin(request));
    }

    /// Stores what is missing from the files of the CLI. The outcome arrives as an event.
    pub(super) fn catch_up(&mut self, request: CatchUp) {
        let shared = self.shared.clone();
        let (number, session) = (request.number, only_session(&request));
        let request = async move {
            let mut state = shared.state.lock().await;
            shared.catch_up(&mut state, &request).await
        };
        self.spawn(number, session, Box::pin(request));
    }

    /// Aborts the append. The store may have it or not.
    pub(super) fn abandon(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Removes the private folder of the run if the store has everything in it, and keeps it otherwise.
    /// `is_stored` says whether everything that the CLI reported is stored, `is_complete` whether it
    /// reported everything.
    pub(super) async fn finish(&mut self, is_stored: bool, is_complete: bool) {
        let Some(folder) = &self.shared.target.folder else { return };
        if is_stored && (is_complete || self.shared.send_folder(folder).await) {
            folder.remove();
        } else {
            folder.keep();
        }
    }

    /// Runs a request that concerns this session, or several ones.
    fn spawn(
        &mut self,
        batch: BatchNumber,
        session: Option<Arc<MirrorSession>>,
        request: StoreFuture<'static, ()>,
    ) {
        let (shared, commands) = (self.shared.clone(), self.commands.clone());
        let task = Box::pin(async move {
            let event = match shared.catch_panics(session.as_deref(), request).await {
                Ok(()) => Event::Appended(batch),
                Err(error) => {
                    tracing::debug!(kind = %error.kind(), "the store failed: {error}");
                    let failure = failure_of(&error);
                    Event::AppendFailed { batch, failure, reason: error.message().to_owned() }
                }
            };
            // After the end of the driver there is nothing to report.
            let _ = commands.send(event);
        });
        let span = tracing::debug_span!("claude_store");
        self.task = Some(tasks::spawn(&self.runtime, span, task).abort_handle());
    }
}

impl Drop for MirrorTasks {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Shared {
    pub(super) fn key(&self, session: &MirrorSession) -> Result<SessionKey, StoreError> {
        let project = self.target.project.as_deref().unwrap_or(&session.project);
        SessionKey::new(&self.target.options.scope, project, session.session.as_str())
    }

    /// Stores what is missing of the files in the folder, and returns whether the store has everything.
    async fn send_folder(&self, folder: &PrivateFolder) -> bool {
        let mut state = self.state.lock().await;
        state.begin_catch_up();
        let sending = self.target.send_folder(&mut state.sessions, folder);
        let mut is_stored = false;
        let sending = async { sending.await.map(|sent| is_stored = !sent.is_orphaned) };
        let sending = self.catch_panics(None, Box::pin(sending));
        let sent = tokio::time::timeout(FINISH_TIMEOUT, sending).await;
        let sent = sent.unwrap_or_else(|_| Err(upload::timed_out(self.store_name())));
        sent.inspect_err(|error| tracing::debug!("the store failed: {error}")).is_ok() && is_stored
    }

    fn store_name(&self) -> StoreName<'_> {
        StoreName::Sessions(&*self.target.options.store)
    }

    /// Turns a panic of the store into an error.
    async fn catch_panics(
        &self,
        session: Option<&MirrorSession>,
        request: StoreFuture<'_, ()>,
    ) -> Result<(), StoreError> {
        let session = session.map(|session| &*session.session);
        let done = panics::caught(request).await;
        done.unwrap_or_else(|| Err(panicked(self.store_name(), session)))
    }

    fn prepare(&self, batch: &MirrorBatch) -> Result<Batch, StoreError> {
        let key = self.key(&batch.session)?;
        let mut raw = Vec::with_capacity(batch.entries.len());
        for entry in &batch.entries {
            let subpath = entry.subpath.as_deref().map(Subpath::new).transpose()?;
            raw.push((subpath, entry.text.clone()));
        }
        Ok(Batch { key, raw, entries: None })
    }

    /// Sends the batch, after the session was claimed and its entries were counted.
    async fn send(&self, state: &mut MirrorState) -> Result<(), StoreError> {
        state.is_catching_up = false;
        let MirrorState { sessions, batch: slot, .. } = state;
        let Some(batch) = slot else { return Ok(()) };
        let store = &*self.target.options.store;
        let session = self.target.owned(sessions, &batch.key).await?;
        let epoch = session.epoch;
        let Stored { occurrences, summary, .. } = session.stored(store, &batch.key).await?;
        let entries = match &mut batch.entries {
            Some(entries) => entries,
            empty => {
                let mut entries = Vec::with_capacity(batch.raw.len());
                for (subpath, text) in std::mem::take(&mut batch.raw) {
                    entries.push(occurrences.entry(subpath, text)?);
                }
                empty.insert(entries)
            }
        };
        let appended = summary.append(store, &batch.key, epoch, entries).await?;
        self.target.acknowledge(&batch.key, entries, &appended);
        *slot = None;
        Ok(())
    }
}

pub(crate) fn panicked(store: StoreName<'_>, session: Option<&str>) -> StoreError {
    let of = session.map(|session| format!(" of session {session}"));
    let during = format!("stored entries{}", of.unwrap_or_default());
    upload::panicked(store, &during).with_help(
        "fix the store: the panic message is in the stderr of this process; the entries stay in the local transcript",
    )
}

/// Returns the session of all files; `None` if there are several.
fn only_session(request: &CatchUp) -> Option<Arc<MirrorSession>> {
    let (first, others) = request.files.split_first()?;
    let is_only = others.iter().all(|file| file.session == first.session);
    is_only.then(|| first.session.clone())
}

fn failure_of(error: &StoreError) -> AppendFailure {
    match error.kind() {
        StoreErrorKind::Superseded => AppendFailure::Superseded,
        _ if error.is_retryable() => AppendFailure::Retryable,
        _ => AppendFailure::Permanent,
    }
}
