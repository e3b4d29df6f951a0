//! Approvals in the store of records.
//!
//! What a store returns is compared with what was requested: a decision applies to its own request only, and a store may be
//! faulty or hostile.

use std::fmt;

use claude_session_store::approval::{Approval, ApprovalId};
use claude_session_store::record::{
    OwnerKey, Record, RecordFilter, RecordKey, RecordKind, RecordList, RecordPage, RecordSelection,
    RecordWatch, RecordWrite, UnreadableRecord,
};
use claude_session_store::{Epoch, ProjectKey, Sequence, StoreError, StoreErrorKind, StoreFuture};
use tokio::time::Instant;

use super::inbox::Approvals;
use crate::driver::require_timers;
use crate::id::SessionId;
use crate::store::pages::Bounds;
use crate::store::upload::{limited_in, no_runtime};

/// How many approvals are deleted with one request.
const DELETED_TOGETHER: usize = 1_000;

/// The kinds of records that end, and are deleted some day.
const ENDING: [RecordKind; 4] =
    [RecordKind::Approval, RecordKind::Message, RecordKind::ToolCall, RecordKind::StepReport];

/// An approval that cannot be read, because its record is damaged or its encryption key is unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnreadableApproval {
    /// The ID.
    pub id: ApprovalId,
    /// Why it cannot be read.
    pub error: StoreError,
}

/// The approvals of all pages of a list, in the order in which they were first requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApprovalPage {
    pub(crate) approvals: Vec<Approval>,
    pub(crate) unreadable: Vec<UnreadableApproval>,
    /// The time on the clock of the store.
    pub(crate) now_ms: u64,
}

impl ApprovalPage {
    fn add(&mut self, page: RecordPage) {
        self.now_ms = page.now_ms;
        for UnreadableRecord { key, error, .. } in page.unreadable {
            self.add_unreadable(&key, error);
        }
        for record in &page.records {
            match Approval::from_record(record) {
                Ok(approval) => self.approvals.push(approval),
                Err(error) => self.add_unreadable(&record.key, error),
            }
        }
    }

    fn add_unreadable(&mut self, key: &RecordKey, error: StoreError) {
        match ApprovalId::parse(key.id()) {
            Ok(id) => self.unreadable.push(UnreadableApproval { id, error }),
            // No call has it, and it must not hide the others.
            Err(error) => tracing::warn!("{key} in the store is ignored: {error}"),
        }
    }

    /// Fails if a record cannot be read: it may be the one that is looked for.
    pub(super) fn readable(self) -> Result<Self, StoreError> {
        match self.unreadable.into_iter().next() {
            Some(unreadable) => Err(unreadable.error),
            None => Ok(Self { unreadable: Vec::new(), ..self }),
        }
    }
}

pub(crate) fn invalid_id(error: StoreError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "the store returned an invalid approval ID")
        .with_help("check who can write to the store, and restore it from a backup")
        .caused_by(error)
}

/// Returns the memory that a page takes, approximately.
fn size_of_page(page: &RecordPage) -> usize {
    let records = page.records.iter().map(|record| size_of::<Record>() + record.body.len());
    records.sum::<usize>() + page.unreadable.len() * size_of::<UnreadableRecord>()
}

/// A wait for changes of the approvals of a scope, from [`Approvals::watch`].
#[must_use = "a watch does nothing until `changed` is called"]
pub struct ApprovalWatch<'a> {
    approvals: &'a Approvals,
    changed: StoreFuture<'a, ()>,
}

impl ApprovalWatch<'_> {
    /// Waits until an approval may have changed since the watch was created. Stores without notifications let it return
    /// after half a second.
    ///
    /// # Errors
    /// Fails if the store fails, or if the Tokio runtime has no timers. Wait a moment before the next watch.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn changed(self) -> Result<(), StoreError> {
        require_timers().map_err(no_runtime)?;
        let interval = self.approvals.store().poll_interval();
        tokio::time::timeout(interval, self.changed).await.unwrap_or(Ok(()))
    }
}

impl fmt::Debug for ApprovalWatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalWatch").field("approvals", &self.approvals).finish_non_exhaustive()
    }
}

impl Approvals {
    fn owner(&self, session: &SessionId) -> Result<OwnerKey, StoreError> {
        self.check_scope()?;
        OwnerKey::session(self.scope(), session)
    }

    /// The empty scope is not one of hosts: a scope that was not set must not reach the records of a fleet.
    fn check_scope(&self) -> Result<(), StoreError> {
        ProjectKey::new(self.scope(), "approvals").map(drop)
    }

    /// Claims the approvals of a session. The request is not limited in time.
    pub(super) fn claim<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            let owner = self.owner(session)?;
            self.store().claim_records(&owner).await
        })
    }

    /// Stores an approval that is new, or that replaces the version before it. Returns whether it was stored. With an
    /// epoch, its session must have it.
    pub(super) fn write<'a>(
        &'a self,
        approval: &'a Approval,
        epoch: Option<Epoch>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let owner = self.owner(&approval.request.session_id)?;
            let change = [approval.to_change()?];
            let mut write = RecordWrite::new(&change);
            write.fence = epoch.map(|epoch| (&owner, epoch));
            limited_in(self.store_name(), self.store().write_records(write)).await
        })
    }

    /// Returns the open approvals of the scope, and those that cannot be read.
    pub(super) async fn list_open(&self) -> Result<ApprovalPage, StoreError> {
        self.list_all(RecordFilter::OpenIn(self.scope())).await
    }

    /// Returns the open approvals of a session. Fails if one of them cannot be read.
    pub(super) async fn open_of(&self, session: &SessionId) -> Result<ApprovalPage, StoreError> {
        let owner = self.owner(session)?;
        self.list_all(RecordFilter::OpenOf(&owner)).await?.readable()
    }

    /// Returns an approval, and the time on the clock of the store.
    pub(super) async fn read(
        &self,
        id: &ApprovalId,
    ) -> Result<(Option<Approval>, u64), StoreError> {
        let filter = RecordFilter::Id { scope: self.scope(), id: id.as_str() };
        let mut found = ApprovalPage::default();
        found.add(self.list(filter, Sequence::default(), 1).await?);
        let found = found.readable()?;
        Ok((found.approvals.into_iter().next(), found.now_ms))
    }

    async fn list_all(&self, filter: RecordFilter<'_>) -> Result<ApprovalPage, StoreError> {
        let mut all = ApprovalPage::default();
        let (mut bounds, mut after) = (Bounds::list(), Sequence::default());
        loop {
            let began = Instant::now();
            let page = self.list(filter, after, 100).await?;
            bounds.add(size_of_page(&page), page.more, began)?;
            let (reached, more) = (page.last().unwrap_or_default(), page.more);
            all.add(page);
            // A page that does not go on would be requested forever.
            if !more || reached <= after {
                return Ok(all);
            }
            after = reached;
        }
    }

    /// Lists records, and rejects those that were not requested.
    async fn list(
        &self,
        filter: RecordFilter<'_>,
        after: Sequence,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        self.check_scope()?;
        let list = RecordList::new(RecordKind::Approval, filter).after(after).limit(limit);
        let page = limited_in(self.store_name(), self.store().list_records(list)).await?;
        match page.records.iter().find(|record| !list.contains(record, page.now_ms)) {
            Some(foreign) => {
                let id = ApprovalId::parse(foreign.key.id()).map_err(invalid_id)?;
                Err(StoreError::unrequested_approval(&id))
            }
            None => Ok(page),
        }
    }

    /// Waits until an approval may have changed, or for as long as the store recommends.
    pub(super) async fn wait_for_change(&self, known: &Approval) -> Result<(), StoreError> {
        let key = Approval::record_key(self.scope(), &known.request.id)?;
        let watch = RecordWatch::Record { key: &key, version: known.version() };
        let changed = self.store().records_changed(watch);
        let interval = self.store().poll_interval();
        tokio::time::timeout(interval, changed).await.unwrap_or(Ok(()))
    }

    /// Begins to watch for changes of the approvals of the scope, such as new requests and decisions. Create the watch
    /// before a list, so that no change between the list and the wait is missed:
    ///
    /// ```
    /// use claude_agent_kit::approval::Approvals;
    ///
    /// async fn show(approvals: &Approvals) -> Result<(), claude_agent_kit::store::StoreError> {
    ///     loop {
    ///         let watch = approvals.watch();
    ///         for approval in approvals.pending().await? {
    ///             println!("{}", approval.request.description());
    ///         }
    ///         watch.changed().await?;
    ///     }
    /// }
    /// ```
    pub fn watch(&self) -> ApprovalWatch<'_> {
        let changed = self.store().records_changed(RecordWatch::Scope {
            scope: self.scope(),
            kind: RecordKind::Approval,
        });
        ApprovalWatch { approvals: self, changed }
    }

    /// Deletes all approvals of a session, in any state, and returns their number, for example after the session was
    /// [deleted](crate::history::History::delete). If the conversation continues nevertheless, its calls are
    /// asked about again.
    ///
    /// # Errors
    /// Fails if the store fails. Some approvals may have been deleted.
    pub async fn delete_session(&self, session: &SessionId) -> Result<u64, StoreError> {
        let owner = self.owner(session)?;
        self.delete(RecordSelection::Of(&owner), RecordKind::Approval).await
    }

    /// Deletes the open approvals of a session, and returns their number.
    pub(crate) async fn delete_open(&self, session: &SessionId) -> Result<u64, StoreError> {
        let owner = self.owner(session)?;
        self.delete(RecordSelection::OpenOf(&owner), RecordKind::Approval).await
    }

    /// Deletes the records of the scope that have ended and were created before a time, and returns their number. Those that
    /// are used again and again, such as budgets, have no end.
    pub(crate) async fn delete_closed(&self, time_ms: u64) -> Result<u64, StoreError> {
        self.check_scope()?;
        let selection = RecordSelection::ClosedBefore { scope: self.scope(), time_ms };
        let mut count = 0;
        for kind in ENDING {
            count += self.delete(selection, kind).await?;
        }
        Ok(count)
    }

    /// Deletes records in batches, and returns their number.
    async fn delete(
        &self,
        selection: RecordSelection<'_>,
        kind: RecordKind,
    ) -> Result<u64, StoreError> {
        let mut count: u64 = 0;
        loop {
            let request = self.store().delete_records(selection, Some(kind), DELETED_TOGETHER);
            let deleted = limited_in(self.store_name(), request).await?;
            count = count.saturating_add(deleted);
            if deleted < DELETED_TOGETHER as u64 {
                return Ok(count);
            }
        }
    }
}
