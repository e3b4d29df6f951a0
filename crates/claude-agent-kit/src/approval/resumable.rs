//! Lists the conversations that can continue, and waits for them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::time::Duration;

use super::inbox::Approvals;
use super::records::{ApprovalPage, UnreadableApproval};
use crate::driver::require_timers;
use crate::id::SessionId;
use crate::store::StoreError;
use claude_session_store::approval::{Approval, ApprovalId, ApprovalStatus};

/// The pause before approvals are listed again after a change, so that many changes cost few lists.
const LIST_PAUSE: Duration = Duration::from_millis(100);

/// A parked conversation that can continue now, from [`Approvals::resumable`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Resumable {
    /// The session to [resume](crate::approval::resume).
    pub session_id: SessionId,
    /// The project under which a session store has the session, if it is known.
    pub project: Option<String>,
    /// The approvals that a resume uses: decided and not used, or expired, the oldest first.
    pub approvals: Vec<Approval>,
    /// The approvals of the conversation that are still pending. A resume asks for them again.
    pub pending: Vec<Approval>,
}

/// The conversations of a scope that can continue, from [`Approvals::list_resumable`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ResumableConversations {
    /// The conversations, in the order of their oldest open requests.
    pub conversations: Vec<Resumable>,
    /// The open approvals that cannot be read, with their IDs and the reasons. Their conversations are not listed
    /// because of them.
    pub unreadable: Vec<UnreadableApproval>,
}

impl Approvals {
    /// Returns the conversations that can continue now: parked, with a decision that no call has used, or with a
    /// request that expired, which denies its call. Pass each to [`resume`](crate::approval::resume).
    ///
    /// A conversation is not listed while one of its runs may be alive: a run waits for a decision, or an approved
    /// call runs. If that host was killed, see [`park`](Self::park). A conversation is listed until its decisions are
    /// used or have [expired](Approval::is_expired), also if a resume did not use them because the model did something
    /// else: call this method once and [watch](Self::watch_resumable) afterwards, rather than resuming
    /// everything that is listed every minute.
    ///
    /// Two processes may list and resume the same conversation. The last one to start continues it; the turn of the
    /// other one ends with [`Superseded`](crate::ErrorKind::Superseded), or `resume` returns `None` if nothing is left
    /// to continue. Both mean that another process takes care of it.
    ///
    /// An approval that cannot be read is skipped with a warning in the log;
    /// [`list_resumable`](Self::list_resumable) reports it.
    ///
    /// ```
    /// use claude_agent_kit::approval::{self, Approvals};
    /// use claude_agent_kit::{Conversation, ErrorKind, Options};
    ///
    /// async fn continue_all(
    ///     approvals: &Approvals,
    ///     options: &Options,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     for found in approvals.resumable().await? {
    ///         let conversation = Conversation::resume(found.session_id);
    ///         match approval::resume(options.clone().conversation(conversation)).await {
    ///             Ok(outcome) => println!("{:?}", outcome.map(|outcome| outcome.text)),
    ///             Err(error) if error.kind() == ErrorKind::Superseded => {}
    ///             Err(error) => return Err(error.into()),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn resumable(&self) -> Result<Vec<Resumable>, StoreError> {
        let listed = self.list_resumable().await?;
        warn_unreadable(self.scope(), &listed.unreadable);
        Ok(listed.conversations)
    }

    /// Returns what [`resumable`](Self::resumable) does, and the open approvals that cannot be read, because their
    /// record is damaged or their key is unknown.
    ///
    /// # Errors
    /// Fails if the store fails, or with [`Corrupt`](crate::store::StoreErrorKind::Corrupt) if it returns approvals
    /// that were not requested.
    pub async fn list_resumable(&self) -> Result<ResumableConversations, StoreError> {
        let page = self.list_open().await?;
        let conversations = conversations(page.approvals, page.now_ms);
        Ok(ResumableConversations { conversations, unreadable: page.unreadable })
    }

    /// Returns a watcher that waits for conversations that can continue. Its first results are those that
    /// [`resumable`](Self::resumable) lists.
    ///
    /// ```
    /// use claude_agent_kit::approval::Approvals;
    ///
    /// async fn watch(approvals: &Approvals) -> Result<(), claude_agent_kit::store::StoreError> {
    ///     let mut watcher = approvals.watch_resumable();
    ///     loop {
    ///         let found = watcher.next().await?;
    ///         println!("{} can continue", found.session_id);
    ///         // Start a task that resumes it.
    ///     }
    /// }
    /// ```
    pub fn watch_resumable(&self) -> ResumableWatcher {
        ResumableWatcher {
            approvals: self.clone(),
            returned: HashMap::new(),
            queue: VecDeque::new(),
            unreadable: 0,
        }
    }
}

/// Waits for conversations that can continue, from [`Approvals::watch_resumable`].
///
/// A conversation is returned once, and again when one of the approvals that a resume would use has changed since. So
/// a decision that the model does not use is not tried again and again.
pub struct ResumableWatcher {
    approvals: Approvals,
    /// The versions of the approvals with which a conversation was returned. Only of conversations with open approvals.
    returned: HashMap<SessionId, Vec<(ApprovalId, u64)>>,
    /// The conversations of the last list that were not returned yet.
    queue: VecDeque<Resumable>,
    /// The number of unreadable approvals in the last list.
    unreadable: usize,
}

impl ResumableWatcher {
    /// Waits for the next conversation that can continue. Stores with notifications report a decision at once, others
    /// within half a second. The expiry of a parked request also ends the wait.
    ///
    /// No decision is missed: what was decided before the call, or between two calls, is found by the next one.
    ///
    /// # Errors
    /// Fails if the store fails, or if the Tokio runtime has no timers. The watcher can be used again; wait a moment
    /// before the next call.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect: the next call returns the same conversation.
    pub async fn next(&mut self) -> Result<Resumable, StoreError> {
        require_timers().map_err(crate::store::upload::no_runtime)?;
        let approvals = self.approvals.clone();
        loop {
            while let Some(queued) = self.queue.front() {
                // Another process may have resumed it since the list: what is returned is current.
                let found = match approvals.open_of(&queued.session_id).await {
                    Err(error) if error.is_retryable() => return Err(error),
                    // A record that cannot be read does not hide other conversations. Its run would deny the call.
                    Err(error) => {
                        let session = &queued.session_id;
                        tracing::warn!("session {session} cannot be resumed: {error}");
                        self.returned.insert(session.clone(), versions(queued));
                        None
                    }
                    Ok(page) => conversations(page.approvals, page.now_ms).pop(),
                };
                self.queue.pop_front();
                if let Some(found) = found.filter(|found| self.is_new(found)) {
                    self.returned.insert(found.session_id.clone(), versions(&found));
                    return Ok(found);
                }
                tokio::time::sleep(LIST_PAUSE).await;
            }
            // Before the list, so that no change between the list and the wait is missed.
            let changed = approvals.watch();
            let page = approvals.list_open().await?;
            let expiry = until_expiry(&page);
            self.update(page);
            if self.queue.is_empty() {
                let changed = changed.changed();
                match expiry {
                    Some(expiry) => {
                        tokio::time::timeout(expiry, changed).await.unwrap_or(Ok(()))?;
                    }
                    None => changed.await?,
                }
                tokio::time::sleep(LIST_PAUSE).await;
            }
        }
    }

    /// Lets the next call return a conversation again, although it has not changed, for example because its resume
    /// failed.
    pub fn forget(&mut self, session: &SessionId) {
        self.returned.remove(session);
    }

    /// Fills the queue from a list.
    fn update(&mut self, page: ApprovalPage) {
        if self.unreadable != page.unreadable.len() {
            self.unreadable = page.unreadable.len();
            warn_unreadable(self.approvals.scope(), &page.unreadable);
        }
        let open = page.approvals.iter().map(|approval| &approval.request.session_id);
        let open: HashSet<&SessionId> = open.collect();
        self.returned.retain(|session, _| open.contains(session));
        for found in conversations(page.approvals, page.now_ms) {
            if self.is_new(&found) {
                self.queue.push_back(found);
            }
        }
    }

    /// Returns whether an approval is another one than when the conversation was returned.
    fn is_new(&self, found: &Resumable) -> bool {
        let Some(returned) = self.returned.get(&found.session_id) else { return true };
        versions(found).iter().any(|version| !returned.contains(version))
    }
}

impl fmt::Debug for ResumableWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumableWatcher")
            .field("approvals", &self.approvals)
            .field("returned", &self.returned.len())
            .finish_non_exhaustive()
    }
}

fn versions(found: &Resumable) -> Vec<(ApprovalId, u64)> {
    let version = |approval: &Approval| (approval.request.id.clone(), approval.version());
    found.approvals.iter().map(version).collect()
}

/// Returns the conversations that can continue, from open approvals.
fn conversations(open: Vec<Approval>, now_ms: u64) -> Vec<Resumable> {
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    let mut found: Vec<(Resumable, bool)> = Vec::new();
    for approval in open {
        let session = &approval.request.session_id;
        let place = *places.entry(session.clone()).or_insert_with(|| {
            let (session_id, project) = (session.clone(), approval.request.project.clone());
            let (approvals, pending) = (Vec::new(), Vec::new());
            found.push((Resumable { session_id, project, approvals, pending }, false));
            found.len() - 1
        });
        let (conversation, is_in_use) = &mut found[place];
        *is_in_use |= approval.is_in_use();
        if approval.is_resumable(now_ms) {
            conversation.approvals.push(approval);
        } else if approval.status == ApprovalStatus::Pending {
            conversation.pending.push(approval);
        }
    }
    found.retain(|(conversation, is_in_use)| !is_in_use && !conversation.approvals.is_empty());
    found.into_iter().map(|(conversation, _)| conversation).collect()
}

/// Returns the time until a parked request expires, if one does.
fn until_expiry(page: &ApprovalPage) -> Option<Duration> {
    let is_waiting =
        |approval: &&Approval| approval.is_parked && approval.status == ApprovalStatus::Pending;
    let expiries = page.approvals.iter().filter(is_waiting);
    let expiries = expiries.filter_map(|approval| approval.request.expires_at_ms);
    let left =
        expiries.filter_map(|expiry| expiry.checked_sub(page.now_ms)).filter(|left| *left > 0);
    left.min().map(Duration::from_millis)
}

fn warn_unreadable(scope: &str, unreadable: &[UnreadableApproval]) {
    if let Some(UnreadableApproval { id, error }) = unreadable.first() {
        let count = unreadable.len();
        tracing::warn!(
            "{count} open approvals of scope {scope:?} cannot be read; the first one is {id}: {error}"
        );
    }
}
