//! Runs agents, and continues their conversations after decisions.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claude_agent_kit::approval::{
    self, Approval, ApprovalFilter, ApprovalId, ApprovalList, ApprovalPolicy, ApprovalPosition,
    ApprovalStatus, ApprovalStore as _, Approvals,
};
use claude_agent_kit::history::{History, ListFilter};
use claude_agent_kit::store::{self, StoreError, StoreOptions};
use claude_agent_kit::{Conversation, Options, RunGroup, SessionId, query};
use claude_agent_store::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use uuid::Uuid;

use crate::arguments::Arguments;
use crate::simulated;
use crate::task::{Task, TaskState, Tasks};

/// The scope of conversations and approvals: a service with several tenants has one for each.
const SCOPE: &str = "example";
const PROJECT: &str = "approval-service";

/// How many CLIs run at once.
const CONCURRENCY: usize = 4;

/// How often the store is asked for new requests, and for decisions of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long an approver may take.
const EXPIRY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The state of the service. Everything that must outlive it is in the store.
pub(crate) struct Service {
    options: Options,
    store: SqliteStore,
    history: History,
    pub(crate) approvals: Approvals,
    group: RunGroup,
    park_after: Duration,
    places: Arc<Semaphore>,
    tasks: Mutex<Tasks>,
    runs: Mutex<JoinSet<()>>,
    changed: Notify,
    /// What the page shows, as JSON; `None` when the service stops.
    snapshot: watch::Sender<Option<Arc<str>>>,
}

/// All places for runs are taken.
pub(crate) struct Busy;

/// A new task, with its place.
type NewTask = (String, OwnedSemaphorePermit);

impl Service {
    pub(crate) async fn open(arguments: &Arguments) -> Result<Arc<Self>, Box<dyn Error>> {
        let folder = std::path::absolute(&arguments.folder)?;
        let work = folder.join("work");
        std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
        let store = SqliteStore::open(folder.join("service.db")).await?;
        let approvals = Approvals::new(SCOPE, store.clone());
        let policy = ApprovalPolicy::new(approvals.clone())
            .tools(["Bash", "Edit", "Write"])
            .park_after(arguments.park_after)
            .expires_after(EXPIRY);
        let store_options = StoreOptions::new(SCOPE, store.clone()).project(PROJECT);
        let history = History::in_store(&store_options);
        let group = RunGroup::new();
        let mut options =
            Options::new().cwd(work).group(&group).store(store_options).approvals(policy);
        if arguments.is_simulated {
            let config = folder.join("config");
            options = options
                .simulated(simulated::script())
                .env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
        }
        Ok(Arc::new(Self {
            options,
            store,
            history,
            approvals,
            group,
            park_after: arguments.park_after,
            places: Arc::new(Semaphore::new(CONCURRENCY)),
            tasks: Mutex::default(),
            runs: Mutex::default(),
            changed: Notify::new(),
            snapshot: watch::Sender::new(Some("{}".into())),
        }))
    }

    /// Finds the conversations that an earlier process left: [`Self::watch`] continues those whose approvals were
    /// decided.
    pub(crate) async fn recover(&self) -> Result<(), Box<dyn Error>> {
        for recovered in store::recover(&self.options).await? {
            println!("recovered {}: {:?}", recovered.session, recovered.outcome);
        }
        let mut offset = 0;
        loop {
            let page = self.history.list(ListFilter::new().offset(offset)).await?;
            for session in &page.sessions {
                let open = self.open_approvals(&session.session_id).await?.0;
                self.add_left(&session.session_id, &session.summary, &open);
            }
            offset += page.sessions.len();
            if !page.has_more || page.sessions.is_empty() {
                break;
            }
        }
        // A process that is killed while a run waits may not have stored the conversation yet.
        for approval in self.approvals.pending().await? {
            let session = &approval.request.session_id;
            if !self.tasks().all().iter().any(|task| task.session == *session) {
                self.add_left(session, "", std::slice::from_ref(&approval));
            }
        }
        Ok(())
    }

    /// Adds a conversation of an earlier process, if it has open approvals.
    fn add_left(&self, session: &SessionId, prompt: &str, open: &[Approval]) {
        let is_started = |approval: &Approval| approval.status == ApprovalStatus::Started;
        let (started, waiting): (Vec<_>, Vec<_>) = open.iter().partition(|open| is_started(open));
        let (state, text) = match (waiting.is_empty(), started.is_empty()) {
            (false, _) => (TaskState::Parked, ""),
            (true, false) => {
                (TaskState::Interrupted, "the service died while an approved command ran")
            }
            (true, true) => return,
        };
        let waits_for = waiting.iter().map(|approval| approval.request.id.clone()).collect();
        let (session, prompt, text) = (session.clone(), prompt.to_owned(), text.to_owned());
        self.tasks().add(Task { session, prompt, state, text, waits_for });
    }

    /// Starts a conversation in the background and returns its session.
    pub(crate) fn start(self: &Arc<Self>, prompt: String) -> Result<SessionId, Busy> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| Busy)?;
        let session = SessionId::from(Uuid::new_v4().to_string());
        self.tasks().add(Task {
            session: session.clone(),
            prompt: prompt.clone(),
            state: TaskState::Running,
            text: String::new(),
            waits_for: Vec::new(),
        });
        self.spawn(session.clone(), Some((prompt, place)));
        Ok(session)
    }

    fn spawn(self: &Arc<Self>, session: SessionId, new: Option<NewTask>) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = runs.try_join_next() {
            report_panic(ended);
        }
        runs.spawn(self.clone().drive(session, new));
        self.changed.notify_one();
    }

    /// Runs a conversation until it has ended, or waits for approvals.
    async fn drive(self: Arc<Self>, session: SessionId, new: Option<NewTask>) {
        let ended = self.drive_turns(&session, new).await;
        self.tasks().change(&session, |task| match ended {
            Ok((text, pending)) => {
                let is_parked = !pending.is_empty();
                task.state = if is_parked { TaskState::Parked } else { TaskState::Finished };
                task.waits_for = pending;
                task.text = text;
            }
            Err(error) => {
                eprintln!("warning: {session}: {error}");
                task.state = TaskState::Failed;
                task.text = error.to_string();
            }
        });
        self.changed.notify_one();
    }

    /// Returns the answer, and the approvals that are pending.
    async fn drive_turns(
        &self,
        session: &SessionId,
        new: Option<NewTask>,
    ) -> Result<(String, Vec<ApprovalId>), Box<dyn Error + Send + Sync>> {
        let mut text = String::new();
        if let Some((prompt, _place)) = new {
            let conversation = Conversation::with_id(session.clone());
            let options = self.options.clone().conversation(conversation);
            text = query(prompt, options).await?.collect().await.into_result()?.text();
        }
        let mut tried: Vec<ApprovalId> = Vec::new();
        loop {
            let (open, now) = self.open_approvals(session).await?;
            let is_pending = |approval: &Approval| {
                approval.status == ApprovalStatus::Pending && !approval.is_expired(now)
            };
            let (pending, decided): (Vec<_>, Vec<_>) = open.into_iter().partition(is_pending);
            // A call that an earlier process started is not run again.
            let is_usable = |approval: &Approval| approval.status != ApprovalStatus::Started;
            let ids = decided.into_iter().filter(is_usable).map(|approval| approval.request.id);
            // A decision that the model does not use is not tried again and again.
            let new: Vec<ApprovalId> = ids.filter(|id| !tried.contains(id)).collect();
            // While the service stops, the next process continues.
            if new.is_empty() || self.is_closed() {
                let pending = pending.into_iter().map(|approval| approval.request.id).collect();
                return Ok((text, pending));
            }
            tried.extend(new);
            let _place = self.places.acquire().await?;
            let conversation = Conversation::resume(session.clone());
            let options = self.options.clone().conversation(conversation);
            if let Some(outcome) = approval::resume(options).await? {
                text = outcome.into_result()?.text;
            }
        }
    }

    /// Returns the approvals of a conversation that can still change, and the time on the clock of the store.
    async fn open_approvals(
        &self,
        session: &SessionId,
    ) -> Result<(Vec<Approval>, u64), StoreError> {
        let (mut open, mut after): (Vec<Approval>, Option<ApprovalPosition>) = (Vec::new(), None);
        loop {
            let list = ApprovalList::new(SCOPE, ApprovalFilter::OpenOf(session));
            let page = self.store.list_approvals(list.after(after.as_ref())).await?;
            after = page.approvals.last().map(ApprovalPosition::of);
            open.extend(page.approvals);
            if !page.more || after.is_none() {
                return Ok((open, page.now_ms));
            }
        }
    }

    /// Continues conversations whose approvals were decided, by this process or another one, and publishes what the
    /// page shows.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut pending = Vec::new();
        loop {
            let listed = self.approvals.pending().await;
            let error = listed.as_ref().err().map(ToString::to_string);
            if let Ok(listed) = listed {
                pending = listed;
                let is_pending =
                    |id: &ApprovalId| pending.iter().any(|approval| approval.request.id == *id);
                let ready = self.tasks().take_ready(is_pending);
                for session in ready {
                    self.spawn(session, None);
                }
            }
            self.publish(&pending, error.as_deref());
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Wakes [`Self::watch`].
    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    fn publish(&self, pending: &[Approval], error: Option<&str>) {
        let pending: Vec<Value> = pending.iter().map(shown).collect();
        let tasks = json!(self.tasks().all());
        let snapshot = json!({"pending": pending, "tasks": tasks, "error": error}).to_string();
        self.snapshot.send_if_modified(|published| match published {
            Some(known) if **known != *snapshot => {
                *known = snapshot.into();
                true
            }
            _ => false,
        });
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.snapshot.subscribe()
    }

    /// Ends the streams of events, and starts no further runs.
    pub(crate) fn close(&self) {
        self.snapshot.send_replace(None);
    }

    /// Waits for [`Self::close`].
    pub(crate) async fn closed(&self) {
        let mut snapshots = self.subscribe();
        // Fails if the sender is gone, which this service owns.
        drop(snapshots.wait_for(Option::is_none).await);
    }

    fn is_closed(&self) -> bool {
        self.snapshot.borrow().is_none()
    }

    /// Stops all runs, and returns how many have not ended in time. Their approvals stay in the store.
    pub(crate) async fn shutdown(&self, deadline: Duration) -> usize {
        let mut runs = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *runs)
        };
        // Runs that wait for a decision park: if they were stopped, their requests would be withdrawn.
        if tokio::time::timeout(self.park_after, ended(&mut runs)).await.is_ok() {
            return 0;
        }
        let left = self.group.shutdown(deadline).await;
        // The CLIs have ended; this waits for the futures that drive them.
        match tokio::time::timeout(deadline, ended(&mut runs)).await {
            Ok(()) => left,
            Err(_) => left.max(runs.len()),
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ended(runs: &mut JoinSet<()>) {
    while let Some(ended) = runs.join_next().await {
        report_panic(ended);
    }
}

fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        eprintln!("warning: a run failed: {error}");
    }
}

/// Returns what an approver sees. The input is sent as its text: a browser would round large numbers, and drop
/// repeated keys.
fn shown(approval: &Approval) -> Value {
    let request = &approval.request;
    json!({
        "id": request.id,
        "session": request.session_id,
        "tool": request.tool_name,
        "input": request.input.text(),
        "requested_at_ms": request.requested_at_ms,
        "repeats": request.repeats,
    })
}
