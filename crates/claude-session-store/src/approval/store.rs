//! The trait of approval stores.

use std::sync::Arc;
use std::time::Duration;

use super::record::{Approval, ApprovalStatus};
use super::request::ApprovalId;
use crate::{Epoch, StoreError, StoreFuture};
use claude_wire::id::SessionId;

/// How often a store without notifications is asked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Stores approvals, usually beside the sessions: `MemoryStore`, and `SqliteStore` and `PostgresStore` of the
/// crate `claude-agent-store` store both.
///
/// A store keeps each [`Approval`] as one record with a version, and does not interpret it: every change is made
/// by this crate and is written with [`write_approval`](Self::write_approval), which compares the version.
///
/// # Implementing a store
/// - A write that succeeded is durable. A write that fails with
///   [`Unavailable`](crate::StoreErrorKind::Unavailable) may have been stored or not.
/// - Approvals serialize with `serde` and are stored as that text. To be listed, a record needs its scope, its
///   session, its ID, whether it is [pending](crate::approval::ApprovalStatus::Pending) and whether it is
///   [open](crate::approval::ApprovalStatus::is_open).
/// - [`scope_changed`](Self::scope_changed) and [`delete_approvals`](Self::delete_approvals) have default
///   implementations: without the first one, decisions of other processes are found within half a second; without the
///   second one, approvals are kept for ever.
///
/// The module `conformance` (a feature) checks all rules.
pub trait ApprovalStore: Send + Sync + 'static {
    /// Returns where the store keeps its approvals, for errors: a path or a server, such as `SQLite "/srv/sessions.db"`,
    /// without credentials. The default implementation returns `None`, and errors say "the approval store".
    fn approvals_location(&self) -> Option<String> {
        None
    }

    /// Takes ownership of the approvals of a session and returns its new epoch, which is greater than all
    /// earlier ones. The last claimer wins.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to.
    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch>;

    /// Stores an approval if the stored one has the version [`ApprovalWrite::replaces`], or does not exist if that
    /// is `None`. Returns whether the approval was stored.
    ///
    /// # Errors
    /// Fails with [`Superseded`](crate::StoreErrorKind::Superseded) if [`ApprovalWrite::epoch`] is not
    /// the current epoch of the session; comparison and write are one atomic step.
    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool>;

    /// Returns approvals in the order of their requests, and the time on the clock of the store. All of them
    /// [belong in the list](ApprovalList::contains); callers reject others.
    ///
    /// A record that cannot be read must not hide the others from approvers: with filters that
    /// [report unreadable records](ApprovalFilter::reports_unreadable) it is in [`ApprovalPage::unreadable`], and the
    /// list goes on. With the other filters the request fails, because runs use them to find out what was decided: a
    /// call is denied rather than asked about twice.
    ///
    /// # Errors
    /// Fails if the store cannot be reached, and, with filters that do not report unreadable records, if a record cannot
    /// be read.
    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage>;

    /// Waits until an approval may have another version than this one, or for a short time. The default
    /// implementation does not wait: it lets the caller [ask again](Change::AskAgainAfter) after half a second.
    ///
    /// # Errors
    /// Fails if the store cannot be reached.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        let _ = (scope, id, version);
        Box::pin(async { Ok(Change::AskAgainAfter(POLL_INTERVAL)) })
    }

    /// Waits until an approval of the scope may have changed after this method was called, or for a short time. The
    /// default implementation does not wait: it lets the caller [ask again](Change::AskAgainAfter) after half a second.
    /// A store with notifications may wait for longer.
    ///
    /// A change between the call of the method and the first poll of the future also ends the wait, so that a caller
    /// that lists approvals in between misses none.
    ///
    /// # Errors
    /// Fails if the store cannot be reached.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    fn scope_changed<'a>(&'a self, scope: &'a str) -> StoreFuture<'a, Change> {
        let _ = scope;
        Box::pin(async { Ok(Change::AskAgainAfter(POLL_INTERVAL)) })
    }

    /// Deletes at most `limit` approvals and returns their number; fewer than `limit` if no others are left. The epochs
    /// of their sessions stay, so that an earlier owner stays fenced.
    ///
    /// Selection and deletion are one atomic step: an approval that no longer matches is not deleted. The deletion of a
    /// record that a run uses is safe, because a call without a record is asked about again.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to. The default implementation fails with
    /// [`Rejected`](crate::StoreErrorKind::Rejected).
    fn delete_approvals<'a>(
        &'a self,
        scope: &'a str,
        selection: ApprovalSelection<'a>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        let _ = (scope, selection, limit);
        Box::pin(async { Err(StoreError::deletion_unsupported("ApprovalStore::delete_approvals")) })
    }
}

/// The outcome of a wait for changes: the caller reads again, at once or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "callers must support every variant")]
pub enum Change {
    /// The store has waited, and there may be a change.
    Possible,
    /// The store cannot wait for changes. The caller asks again after this time.
    AskAgainAfter(Duration),
}

/// Which approvals to delete, for [`ApprovalStore::delete_approvals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must support every variant")]
pub enum ApprovalSelection<'a> {
    /// Those of a session, in any state.
    Of(&'a SessionId),
    /// Those of a session that are [open](crate::approval::ApprovalStatus::is_open).
    OpenOf(&'a SessionId),
    /// Those that are not [open](crate::approval::ApprovalStatus::is_open), and were requested before this time in
    /// milliseconds since the Unix epoch, on the clock of the store.
    ClosedBefore(u64),
}

impl ApprovalSelection<'_> {
    /// Returns whether an approval is selected.
    pub fn contains(&self, approval: &Approval) -> bool {
        let request = &approval.request;
        match self {
            Self::Of(session) => request.session_id == **session,
            Self::OpenOf(session) => request.session_id == **session && approval.status.is_open(),
            Self::ClosedBefore(time_ms) => {
                request.requested_at_ms < *time_ms && !approval.status.is_open()
            }
        }
    }
}

/// A change of an approval, for [`ApprovalStore::write_approval`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ApprovalWrite<'a> {
    /// The new record.
    pub approval: &'a Approval,
    /// The version that the stored record must have; `None` if it must not exist.
    pub replaces: Option<u64>,
    /// The epoch that the session must have; `None` for writes from any host.
    pub epoch: Option<Epoch>,
}

impl<'a> ApprovalWrite<'a> {
    /// Stores a new record.
    pub fn insert(approval: &'a Approval) -> Self {
        Self { approval, replaces: None, epoch: None }
    }

    /// Replaces the record that has the version before that of `approval`.
    pub fn update(approval: &'a Approval) -> Self {
        Self { approval, replaces: Some(approval.version.saturating_sub(1)), epoch: None }
    }

    /// Requires an epoch.
    #[must_use]
    pub fn epoch(self, epoch: Epoch) -> Self {
        Self { epoch: Some(epoch), ..self }
    }
}

/// Which approvals to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must support every variant")]
pub enum ApprovalFilter<'a> {
    /// The one with this ID.
    Id(&'a ApprovalId),
    /// Those of a session that are [open](crate::approval::ApprovalStatus::is_open).
    OpenOf(&'a SessionId),
    /// Those of all sessions that are [pending](crate::approval::ApprovalStatus::Pending), including those that have
    /// expired.
    Pending,
    /// Those of all sessions that are [open](crate::approval::ApprovalStatus::is_open), including those that have
    /// expired.
    Open,
}

impl ApprovalFilter<'_> {
    /// Returns whether a list with this filter skips and reports records that cannot be read. With the other filters,
    /// it fails.
    pub fn reports_unreadable(self) -> bool {
        matches!(self, Self::Pending | Self::Open)
    }
}

/// A request for approvals, for [`ApprovalStore::list_approvals`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ApprovalList<'a> {
    /// The scope.
    pub scope: &'a str,
    /// Which approvals to list.
    pub filter: ApprovalFilter<'a>,
    /// Continues after this approval; `None` for the first page.
    pub after: Option<&'a ApprovalPosition>,
    /// The maximum number of approvals; at least 1.
    pub limit: usize,
}

impl<'a> ApprovalList<'a> {
    /// Lists the first 100 approvals of a scope.
    pub fn new(scope: &'a str, filter: ApprovalFilter<'a>) -> Self {
        Self { scope, filter, after: None, limit: 100 }
    }

    /// Continues after an approval.
    #[must_use]
    pub fn after(self, after: Option<&'a ApprovalPosition>) -> Self {
        Self { after, ..self }
    }

    /// Sets the maximum number of approvals.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Returns whether an approval belongs in this list: it has the scope, matches the filter, and is after the
    /// position.
    pub fn contains(&self, approval: &Approval) -> bool {
        let request = &approval.request;
        let is_selected = match self.filter {
            ApprovalFilter::Id(id) => request.id == *id,
            ApprovalFilter::OpenOf(session) => {
                request.session_id == *session && approval.status.is_open()
            }
            ApprovalFilter::Pending => approval.status == ApprovalStatus::Pending,
            ApprovalFilter::Open => approval.status.is_open(),
        };
        let is_after = self.after.is_none_or(|after| ApprovalPosition::of(approval) > *after);
        is_selected && is_after && request.scope == self.scope
    }
}

/// The position of an approval in a list: the time of its request, then its ID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ApprovalPosition {
    /// The time of the request, in milliseconds since the Unix epoch.
    pub requested_at_ms: u64,
    /// The ID.
    pub id: ApprovalId,
}

impl ApprovalPosition {
    /// Creates a position.
    pub fn new(requested_at_ms: u64, id: ApprovalId) -> Self {
        Self { requested_at_ms, id }
    }

    /// Returns the position of an approval.
    pub fn of(approval: &Approval) -> Self {
        let request = &approval.request;
        Self { requested_at_ms: request.requested_at_ms, id: request.id.clone() }
    }
}

/// A page of approvals.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ApprovalPage {
    /// The approvals, in the order of their requests.
    pub approvals: Vec<Approval>,
    /// The approvals between them that cannot be read, in the same order; only with filters that
    /// [report them](ApprovalFilter::reports_unreadable). They count toward [`ApprovalList::limit`].
    pub unreadable: Vec<UnreadableApproval>,
    /// Whether more approvals follow.
    pub more: bool,
    /// The time in milliseconds since the Unix epoch, on the clock of the store.
    pub now_ms: u64,
}

impl ApprovalPage {
    /// Creates a page without unreadable approvals.
    pub fn new(approvals: Vec<Approval>, more: bool, now_ms: u64) -> Self {
        Self { approvals, unreadable: Vec::new(), more, now_ms }
    }

    /// Returns the position of the last approval of the page, readable or not, after which the next page continues.
    pub fn last(&self) -> Option<ApprovalPosition> {
        let unreadable = self.unreadable.last().map(|unreadable| unreadable.position.clone());
        self.approvals.last().map(ApprovalPosition::of).max(unreadable)
    }
}

/// A stored approval that cannot be read, because its record is damaged or its key is unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnreadableApproval {
    /// Its place in the list, with its ID.
    pub position: ApprovalPosition,
    /// Why it cannot be read.
    pub error: StoreError,
}

impl UnreadableApproval {
    /// Creates the report of an approval that cannot be read.
    pub fn new(position: ApprovalPosition, error: StoreError) -> Self {
        Self { position, error }
    }
}

/// A shared store is a store.
impl<S: ApprovalStore + ?Sized> ApprovalStore for Arc<S> {
    fn approvals_location(&self) -> Option<String> {
        (**self).approvals_location()
    }

    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        (**self).claim_approvals(scope, session)
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        (**self).write_approval(write)
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        (**self).list_approvals(list)
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        (**self).approval_changed(scope, id, version)
    }

    fn scope_changed<'a>(&'a self, scope: &'a str) -> StoreFuture<'a, Change> {
        (**self).scope_changed(scope)
    }

    fn delete_approvals<'a>(
        &'a self,
        scope: &'a str,
        selection: ApprovalSelection<'a>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        (**self).delete_approvals(scope, selection, limit)
    }
}
