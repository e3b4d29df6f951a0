//! What approvers do: list, read and decide.

use std::fmt;
use std::sync::Arc;

use super::decision::Decision;
use super::record::{Approval, Refusal};
use super::request::ApprovalId;
use super::store::{ApprovalFilter, ApprovalList, ApprovalPosition, ApprovalStore, ApprovalWrite};
use crate::store::StoreError;

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
///     println!("{} {}", approval.request.tool_name, approval.request.input);
///     approvals.decide(&approval.request.id, Decision::allow("ana@example.com")).await?;
/// }
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Approvals {
    scope: Arc<str>,
    store: Arc<dyn ApprovalStore>,
}

impl Approvals {
    /// Uses the approvals under `scope`, which the host chooses, such as a tenant: 1 to 512 bytes without NUL
    /// characters.
    pub fn new(scope: impl Into<Arc<str>>, store: impl ApprovalStore) -> Self {
        Self { scope: scope.into(), store: Arc::new(store) }
    }

    /// Returns the scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    pub(super) fn store(&self) -> &dyn ApprovalStore {
        &*self.store
    }

    /// Returns the approvals that are pending and have not expired, the oldest first.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn pending(&self) -> Result<Vec<Approval>, StoreError> {
        let (mut pending, mut after) = (Vec::new(), None);
        loop {
            let list =
                ApprovalList::new(&self.scope, ApprovalFilter::Pending).after(after.as_ref());
            let page = self.store.list_approvals(list).await?;
            after = page.approvals.last().map(ApprovalPosition::of);
            let now = page.now_ms;
            pending.extend(page.approvals.into_iter().filter(|approval| !approval.is_expired(now)));
            if !page.more || after.is_none() {
                return Ok(pending);
            }
        }
    }

    /// Returns an approval; `None` if the scope has none with this ID.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub async fn get(&self, id: &ApprovalId) -> Result<Option<Approval>, StoreError> {
        Ok(self.read(id).await?.0)
    }

    /// Returns an approval, and the time on the clock of the store.
    pub(super) async fn read(
        &self,
        id: &ApprovalId,
    ) -> Result<(Option<Approval>, u64), StoreError> {
        let list = ApprovalList::new(&self.scope, ApprovalFilter::Id(id)).limit(1);
        let page = self.store.list_approvals(list).await?;
        Ok((page.approvals.into_iter().next(), page.now_ms))
    }

    /// Decides about a tool call and returns the approval with the decision. Only the first decision is
    /// accepted.
    ///
    /// If [`Approval::is_parked`] is true, the conversation has to be [resumed](crate::approval::resume). Otherwise the
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
        loop {
            let (stored, now) = self.read(id).await?;
            let stored = stored.ok_or_else(|| DecideError::NotFound(id.clone()))?;
            let decided = stored.decide(decision.clone(), now).map_err(DecideError::Refused)?;
            if self.store.write_approval(ApprovalWrite::update(&decided)).await? {
                return Ok(decided);
            }
            // Another change was stored meanwhile.
            tokio::task::yield_now().await;
        }
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
            self.store.approval_changed(&self.scope, id, known.version()).await?;
        }
    }
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// An error of [`Approvals::decide`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DecideError {
    /// The scope has no approval with this ID.
    NotFound(ApprovalId),
    /// The approval does not accept a decision.
    Refused(Refusal),
    /// The store failed. The decision may have been stored.
    Store(StoreError),
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
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
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
