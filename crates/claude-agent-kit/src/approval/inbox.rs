//! What approvers do: list, read and decide.

use std::fmt;
use std::sync::Arc;

use claude_session_store::approval::{Approval, ApprovalId, ApprovalStatus, Decision, Refusal};
use claude_session_store::record::RecordStore;
use claude_wire::visible::visible_message;

use super::records::{ApprovalPage, UnreadableApproval};
use crate::history::time;
use crate::id::SessionId;
use crate::store::StoreError;
use crate::store::StoreName;

/// How often a change is tried that another one preceded. A faulty store could refuse every change.
pub(super) const MAX_CONFLICTS: usize = 1_000;

/// The approvals of one scope, such as a tenant: lists the pending ones and decides about them, in any process
/// that can reach the store. A clone refers to the same store.
///
/// ```
/// use claude_agent_kit::approval::{Approvals, Decision};
/// use claude_agent_kit::store::MemoryStore;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let approvals = Approvals::new("tenant-1", MemoryStore::new());
/// for approval in approvals.pending().await? {
///     println!("{}", approval.request.description());
///     approvals.decide(&approval.request.id, Decision::allow("ana@example.com")).await?;
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Approvals {
    scope: Arc<str>,
    store: Arc<dyn RecordStore>,
}

impl Approvals {
    /// Uses the approvals under `scope`, which the host chooses, such as a tenant: 1 to 512 bytes without NUL
    /// characters.
    pub fn new(scope: impl Into<Arc<str>>, store: impl RecordStore) -> Self {
        Self { scope: scope.into(), store: Arc::new(store) }
    }

    /// Returns the scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    pub(super) fn store(&self) -> &dyn RecordStore {
        &*self.store
    }

    /// Returns the approvals that are pending and have not expired, the oldest first.
    ///
    /// One that cannot be read does not hide the others: it is skipped with a warning in the log, and
    /// [`list_pending`](Self::list_pending) reports it.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn pending(&self) -> Result<Vec<Approval>, StoreError> {
        Ok(self.list_pending().await?.approvals)
    }

    /// Returns what [`pending`](Self::pending) does, and the approvals that cannot be read, because their record
    /// is damaged or their key is unknown. Their calls stay parked or are denied: nothing runs.
    ///
    /// # Errors
    /// Fails if the store fails, or with [`Corrupt`](crate::store::StoreErrorKind::Corrupt) if it returns approvals
    /// that were not requested.
    pub async fn list_pending(&self) -> Result<PendingApprovals, StoreError> {
        let ApprovalPage { mut approvals, unreadable, now_ms } = self.list_open().await?;
        approvals.retain(|it| it.status == ApprovalStatus::Pending && !it.is_expired(now_ms));
        let pending = PendingApprovals { approvals, unreadable };
        if let Some(UnreadableApproval { id, error }) = pending.unreadable.first() {
            let (count, scope) = (pending.unreadable.len(), &self.scope);
            tracing::warn!(
                "{count} open approvals of scope {scope:?} cannot be read; the first one is {id}: {error}"
            );
        }
        Ok(pending)
    }

    /// Returns the approvals that can still change, of all conversations: [open](ApprovalStatus::is_open) ones, the oldest
    /// first. For an overview; [`pending`](Self::pending) and [`resumable`](Self::resumable) select from them.
    ///
    /// # Errors
    /// Fails if the store fails, or if an approval cannot be read.
    pub async fn open(&self) -> Result<Vec<Approval>, StoreError> {
        Ok(self.list_open().await?.readable()?.approvals)
    }

    /// Returns an approval; `None` if the scope has none with this ID.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn get(&self, id: &ApprovalId) -> Result<Option<Approval>, StoreError> {
        Ok(self.read(id).await?.0)
    }

    /// Decides about a tool call and returns the approval with the decision. Only the first decision is
    /// accepted.
    ///
    /// If [`Approval::is_parked`] is true, the conversation has to be [resumed](crate::approval::resume);
    /// [`resumable`](Self::resumable) lists such conversations. Otherwise the
    /// run that made the request uses the decision, if it still waits; if it has just stopped waiting,
    /// [`TurnOutcome::approvals`](crate::TurnOutcome::approvals) of its turn has the decision.
    ///
    /// # Errors
    /// Fails with [`DecideError::Refused`] if another decision was made before, which names its approver, or
    /// if the request has expired.
    ///
    /// # Cancel safety
    /// If the future is dropped, the decision may or may not be stored.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        decision: Decision,
    ) -> Result<Approval, DecideError> {
        for _ in 0..MAX_CONFLICTS {
            let (stored, now) = self.read(id).await?;
            let stored = stored.ok_or_else(|| DecideError::NotFound(id.clone()))?;
            let decided = stored
                .decide(decision.clone(), now)
                .map_err(|refusal| RefusedDecision::new(&stored, refusal))?;
            if self.write(&decided, None).await? {
                return Ok(decided);
            }
            // Another change was stored meanwhile.
            tokio::task::yield_now().await;
        }
        Err(StoreError::never_written(id).into())
    }

    pub(crate) fn store_name(&self) -> StoreName<'_> {
        StoreName::Approvals(&*self.store)
    }

    /// Records that no run waits for the decisions about the calls of a session, and returns the number of approvals
    /// that were changed. Call it for conversations whose host was killed while a run waited, so that they are
    /// [resumable](Self::resumable) once a decision is made.
    ///
    /// If a run waits in fact, it uses the decision itself, as long as no other host resumes the conversation.
    ///
    /// # Errors
    /// Fails if the store fails, or if an open approval of the session cannot be read.
    pub async fn park(&self, session: &SessionId) -> Result<u64, StoreError> {
        let mut count = 0;
        for approval in self.open_of(session).await?.approvals {
            count += u64::from(self.change(approval, &Approval::park).await?);
        }
        Ok(count)
    }

    /// Stores a change of an approval, and returns whether it still applied.
    async fn change(
        &self,
        mut approval: Approval,
        change: &(dyn Fn(&Approval) -> Option<Approval> + Sync),
    ) -> Result<bool, StoreError> {
        for _ in 0..MAX_CONFLICTS {
            let Some(changed) = change(&approval) else { return Ok(false) };
            if self.write(&changed, None).await? {
                return Ok(true);
            }
            // Another change was stored meanwhile.
            tokio::task::yield_now().await;
            match self.get(&approval.request.id).await? {
                Some(stored) => approval = stored,
                None => return Ok(false),
            }
        }
        Err(StoreError::never_written(&approval.request.id))
    }

    /// Records that open approvals of at least this age have expired, if they have, and returns the time on the clock of
    /// the store.
    pub(crate) async fn expire_before(&self, age_ms: u64) -> Result<u64, StoreError> {
        let page = self.list_open().await?;
        let now = page.now_ms;
        for approval in page.approvals {
            if age_ms == 0 || approval.request.requested_at_ms < now.saturating_sub(age_ms) {
                self.change(approval, &|approval| approval.expire(now)).await?;
            }
        }
        Ok(now)
    }

    /// Waits until an approval has another state than `known` and returns it: the decision, the start or the end
    /// of the call. Returns `None` if the scope has no such approval.
    ///
    /// # Errors
    /// Fails if the store fails.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn changed(&self, known: &Approval) -> Result<Option<Approval>, StoreError> {
        let id = &known.request.id;
        loop {
            let approval = self.get(id).await?;
            if approval.as_ref().is_none_or(|approval| approval.version() != known.version()) {
                return Ok(approval);
            }
            self.wait_for_change(known).await?;
        }
    }
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// The pending approvals of a scope, from [`Approvals::list_pending`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PendingApprovals {
    /// The approvals that have not expired, the oldest first.
    pub approvals: Vec<Approval>,
    /// The open approvals that cannot be read, with their IDs and the reasons: pending ones, and others.
    pub unreadable: Vec<UnreadableApproval>,
}

/// An error of [`Approvals::decide`].
#[derive(Clone)]
#[non_exhaustive]
pub enum DecideError {
    /// The scope has no approval with this ID.
    NotFound(ApprovalId),
    /// The approval does not accept a decision.
    Refused(RefusedDecision),
    /// The store failed. The decision may have been stored.
    Store(StoreError),
}

/// A decision that an approval does not accept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RefusedDecision {
    /// The approval, as the store has it.
    pub approval: Box<Approval>,
    /// Why it does not accept the decision.
    pub refusal: Refusal,
}

impl RefusedDecision {
    pub(crate) fn new(approval: &Approval, refusal: Refusal) -> Self {
        Self { approval: Box::new(approval.clone()), refusal }
    }
}

impl fmt::Display for RefusedDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = &self.approval.request;
        let text = format!("approval {} ({:?}): {}", request.id, request.tool_name, self.refusal);
        visible_message(&text).fmt(f)?;
        if self.refusal != Refusal::Expired {
            return Ok(());
        }
        if let Some(expiry) = request.expires_at_ms {
            write!(f, " at {}", time::iso_seconds(expiry / 1000))?;
        }
        let help =
            "let the agent issue the call again, or increase `ApprovalPolicy::expires_after`";
        write!(f, "; help: {help}")
    }
}

impl From<RefusedDecision> for DecideError {
    fn from(refused: RefusedDecision) -> Self {
        Self::Refused(refused)
    }
}

impl From<StoreError> for DecideError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for DecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(id) => {
                write!(
                    f,
                    "no approval with the ID {id} exists in this scope; help: check the scope and the ID"
                )
            }
            Self::Refused(refused) => refused.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for DecideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for DecideError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::NotFound(_) | Self::Refused(_) => None,
        }
    }
}
