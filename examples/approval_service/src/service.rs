//! Runs agents, and continues their conversations after decisions.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claude_agent_kit::approval::{self, Approval, ApprovalPolicy, ApprovalStatus, Approvals};
use claude_agent_kit::history::History;
use claude_agent_kit::store::{self, StoreOptions};
use claude_agent_kit::{Conversation, ErrorKind, Options, RunGroup, SessionId, query, visible};
use claude_agent_store::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use uuid::Uuid;

use crate::arguments::Arguments;
use crate::files;
use crate::simulated;
use crate::task::{Task, TaskState, Tasks};

/// The scope of conversations and approvals: a service with several tenants has one for each.
const SCOPE: &str = "example";
const PROJECT: &str = "approval-service";

/// How many CLIs run at once.
const CONCURRENCY: usize = 4;

/// The pause after the store has failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long an approver may take.
const EXPIRY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The state of the service. Everything that must outlive it is in the store.
pub(crate) struct Service {
    options: Options,
    history: History,
    pub(crate) approvals: Approvals,
    group: RunGroup,
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
        for path in [&folder, &work, &folder.join("config")] {
            files::private_folder(path)?;
        }
        let store = SqliteStore::open(folder.join("service.db")).await?;
        let approvals = Approvals::new(SCOPE, store.clone());
        let policy = ApprovalPolicy::new(approvals.clone())
            .tools(["Bash", "Edit", "Write"])
            .park_after(arguments.park_after)
            .expires_after(EXPIRY);
        let store_options = StoreOptions::new(SCOPE, store).project(PROJECT);
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
            history,
            approvals,
            group,
            places: Arc::new(Semaphore::new(CONCURRENCY)),
            tasks: Mutex::default(),
            runs: Mutex::default(),
            changed: Notify::new(),
            snapshot: watch::Sender::new(Some("{}".into())),
        }))
    }

    /// Finds the conversations that an earlier process left: [`Self::continue_decided`] continues those whose approvals
    /// were decided.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), Box<dyn Error>> {
        for recovered in store::recover(&self.options).await? {
            let session = visible(recovered.session.as_str());
            println!("recovered {session}: {:?}", recovered.outcome);
        }
        let mut left: Vec<(SessionId, Vec<Approval>)> = Vec::new();
        for approval in self.approvals.open().await? {
            let session = approval.request.session_id.clone();
            match left.iter_mut().find(|(known, _)| *known == session) {
                Some((_, open)) => open.push(approval),
                None => left.push((session, vec![approval])),
            }
        }
        for (session, open) in left {
            self.add_left(session, &open).await?;
        }
        Ok(())
    }

    /// Adds a conversation of an earlier process, which has open approvals.
    async fn add_left(
        self: &Arc<Self>,
        session: SessionId,
        open: &[Approval],
    ) -> Result<(), Box<dyn Error>> {
        // A process that was killed while a run waited may not have stored the conversation.
        let info = self.history.info(&session).await?;
        let prompt = info.map(|info| info.summary).unwrap_or_default();
        let is_started = |approval: &Approval| approval.status == ApprovalStatus::Started;
        let (has_started, has_waiting) =
            (open.iter().any(is_started), !open.iter().all(is_started));
        let (state, text) = match (has_started, has_waiting) {
            (true, false) => {
                (TaskState::Interrupted, "the service died while an approved command ran")
            }
            // A resume tells the model that the outcome of the command is unknown.
            (true, true) => (TaskState::Running, ""),
            (false, _) => (TaskState::Parked, ""),
        };
        let text = text.to_owned();
        self.tasks().add(Task { session: session.clone(), prompt, state, text });
        // No run waits for these decisions any more.
        if let Err(error) = self.approvals.park(&session).await {
            eprintln!("warning: the approvals of {session} could not be parked: {error}");
        }
        if state == TaskState::Running {
            self.spawn(session, None);
        }
        Ok(())
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

    /// Runs a turn of a conversation, until it has ended or waits for approvals.
    async fn drive(self: Arc<Self>, session: SessionId, new: Option<NewTask>) {
        let ended = self.drive_turn(&session, new).await;
        self.tasks().change(&session, |task| match ended {
            Ok((text, is_parked)) => {
                task.state = if is_parked { TaskState::Parked } else { TaskState::Finished };
                task.text = text.unwrap_or_else(|| std::mem::take(&mut task.text));
            }
            Err(error) => {
                eprintln!("warning: {session}: {}", visible(&error.to_string()));
                task.state = TaskState::Failed;
                task.text = error.to_string();
            }
        });
        self.changed.notify_one();
    }

    /// Returns the answer, if there is one, and whether the conversation has to be resumed after a decision.
    async fn drive_turn(
        &self,
        session: &SessionId,
        new: Option<NewTask>,
    ) -> Result<(Option<String>, bool), Box<dyn Error + Send + Sync>> {
        if let Some((prompt, _place)) = new {
            let conversation = Conversation::with_id(session.clone());
            let options = self.options.clone().conversation(conversation);
            let output = query(prompt, options).await?.collect().await.into_result()?;
            let is_parked = output.approvals.iter().any(|approval| approval.status.is_open());
            return Ok((Some(output.text()), is_parked));
        }
        let _place = self.places.acquire().await?;
        let conversation = Conversation::resume(session.clone());
        let options = self.options.clone().conversation(conversation);
        match approval::resume(options).await {
            Ok(Some(outcome)) => {
                let is_parked = outcome.is_parked();
                Ok((Some(outcome.into_result()?.text), is_parked))
            }
            // Nothing was left to continue.
            Ok(None) => Ok((None, false)),
            // Another process continues it.
            Err(error) if error.kind() == ErrorKind::Superseded => Ok((None, true)),
            Err(error) => Err(error.into()),
        }
    }

    /// Continues conversations whose approvals were decided, by this process or another one.
    pub(crate) async fn continue_decided(self: Arc<Self>) {
        let mut watcher = self.approvals.watch_resumable();
        loop {
            match watcher.next().await {
                // While the service stops, the next process continues.
                _ if self.is_closed() => return,
                Ok(found) => {
                    self.tasks().resume(&found.session_id);
                    self.spawn(found.session_id, None);
                }
                Err(error) => {
                    eprintln!("warning: {}", visible(&error.to_string()));
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Publishes what the page shows, after each change.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut pending = Vec::new();
        loop {
            // Before the list, so that no change is missed.
            let stored = self.approvals.watch();
            let listed = self.approvals.pending().await;
            let error = listed.as_ref().err().map(ToString::to_string);
            pending = listed.unwrap_or(pending);
            self.publish(&pending, error.as_deref());
            tokio::select! {
                () = self.changed.notified() => {}
                waited = stored.changed() => if waited.is_err() {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
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

/// Returns what an approver sees, in full: characters that a browser would not show are escaped, so that what is read
/// is what runs. The input is sent as its text: a browser would round large numbers, and drop repeated keys.
fn shown(approval: &Approval) -> Value {
    let request = &approval.request;
    json!({
        "id": request.id,
        "session": request.session_id,
        "tool": visible(&request.tool_name).to_string(),
        "input": visible(request.input.text()).to_string(),
        "cwd": request.cwd.as_ref().map(|cwd| visible(&cwd.to_string_lossy()).to_string()),
        "agent": request.agent_id.as_ref().map(|agent| visible(agent.as_str()).to_string()),
        "requested_at_ms": request.requested_at_ms,
        "repeats": request.repeats,
        "moved_from": request.moved_from,
    })
}
