//! Approvals in the memory of this process.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::record::Approval;
use super::request::ApprovalId;
use super::store::{
    ApprovalFilter, ApprovalList, ApprovalPage, ApprovalPosition, ApprovalSelection, ApprovalStore,
    ApprovalWrite, Change,
};
use crate::lock;
use crate::memory::now_ms;
use crate::{Epoch, MemoryStore, StoreError, StoreFuture};
use claude_wire::id::SessionId;

/// The approvals of a [`MemoryStore`].
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryApprovals {
    table: Arc<Mutex<Table>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    epochs: Vec<((String, SessionId), Epoch)>,
    /// In the order of their positions.
    approvals: Vec<Approval>,
}

impl Table {
    fn claim(&mut self, scope: &str, session: &SessionId) -> Epoch {
        let key = (scope.to_owned(), session.clone());
        if let Some((_, epoch)) = self.epochs.iter_mut().find(|(known, _)| *known == key) {
            *epoch = Epoch::new(epoch.get() + 1);
            return *epoch;
        }
        self.epochs.push((key, Epoch::new(1)));
        Epoch::new(1)
    }

    /// Returns the current epoch of a session.
    fn epoch(&self, scope: &str, session: &SessionId) -> Epoch {
        let is_same =
            |(key, _): &&((String, SessionId), Epoch)| key.0 == scope && key.1 == *session;
        self.epochs.iter().find(is_same).map(|(_, epoch)| *epoch).unwrap_or_default()
    }

    fn write(&mut self, write: &ApprovalWrite<'_>) -> Result<bool, StoreError> {
        let request = &write.approval.request;
        if let Some(epoch) = write.epoch {
            let current = self.epoch(&request.scope, &request.session_id);
            if epoch != current {
                let session = &request.session_id;
                return Err(StoreError::approvals_superseded(session, epoch, current));
            }
        }
        let is_same = |stored: &&mut Approval| {
            stored.request.id == request.id && stored.request.scope == request.scope
        };
        let stored = self.approvals.iter_mut().find(is_same);
        match (stored, write.replaces) {
            (Some(stored), Some(version)) if stored.version() == version => {
                *stored = write.approval.clone();
            }
            (None, None) => self.approvals.push(write.approval.clone()),
            _ => return Ok(false),
        }
        // A renewed request has another time.
        self.approvals.sort_by_key(ApprovalPosition::of);
        Ok(true)
    }

    fn list(&self, list: &ApprovalList<'_>) -> ApprovalPage {
        let mut page = ApprovalPage::new(Vec::new(), false, now_ms());
        for approval in self.approvals.iter().filter(|approval| list.contains(approval)) {
            if page.approvals.len() >= list.limit.max(1) {
                page.more = true;
                break;
            }
            page.approvals.push(approval.clone());
        }
        page
    }

    fn delete(&mut self, scope: &str, selection: ApprovalSelection<'_>, limit: usize) -> u64 {
        let mut count = 0;
        self.approvals.retain(|approval| {
            let is_selected = approval.request.scope == scope && selection.contains(approval);
            let is_deleted = is_selected && count < limit as u64;
            count += u64::from(is_deleted);
            !is_deleted
        });
        count
    }
}

impl ApprovalStore for MemoryStore {
    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        Box::pin(async move { Ok(lock(&self.approvals.table).claim(scope, session)) })
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let written = lock(&self.approvals.table).write(&write)?;
            self.approvals.changed.notify_waiters();
            Ok(written)
        })
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        Box::pin(async move { Ok(lock(&self.approvals.table).list(&list)) })
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        Box::pin(async move {
            loop {
                // Created before the check, so that a change after the check wakes it.
                let changed = self.approvals.changed.notified();
                let list = ApprovalList::new(scope, ApprovalFilter::Id(id));
                let page = lock(&self.approvals.table).list(&list);
                if page.approvals.first().is_none_or(|stored| stored.version() != version) {
                    return Ok(Change::Possible);
                }
                changed.await;
            }
        })
    }

    fn scope_changed<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Change> {
        // Created now, so that a change before the first poll wakes it.
        let changed = self.approvals.changed.notified();
        Box::pin(async move {
            changed.await;
            Ok(Change::Possible)
        })
    }

    fn delete_approvals<'a>(
        &'a self,
        scope: &'a str,
        selection: ApprovalSelection<'a>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let count = lock(&self.approvals.table).delete(scope, selection, limit);
            self.approvals.changed.notify_waiters();
            Ok(count)
        })
    }
}
