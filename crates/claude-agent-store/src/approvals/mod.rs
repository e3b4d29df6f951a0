//! What the databases of approvals have in common: the columns of a record, and the news of changes.

pub(crate) mod errors;

use std::time::Duration;

use claude_session_store::approval::{
    Approval, ApprovalId, ApprovalList, ApprovalPage, ApprovalPosition, ApprovalStatus,
    ApprovalWrite, UnreadableApproval,
};
use claude_session_store::{Epoch, StoreError};
use tokio::sync::broadcast;

/// How often a decision of another process is looked for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The number of changes that a slow waiter may miss before it looks for its own.
const CAPACITY: usize = 64;

/// [`ApprovalWrite`] as the columns of a table.
pub(crate) struct Columns {
    pub(crate) approval: Approval,
    pub(crate) is_pending: bool,
    pub(crate) is_open: bool,
    pub(crate) body: String,
    pub(crate) replaces: Option<u64>,
    pub(crate) epoch: Option<Epoch>,
}

impl Columns {
    pub(crate) fn new(write: &ApprovalWrite<'_>) -> Result<Self, StoreError> {
        let approval = write.approval.clone();
        let body = serde_json::to_string(&approval).map_err(errors::invalid)?;
        Ok(Self {
            is_pending: approval.status == ApprovalStatus::Pending,
            is_open: approval.status.is_open(),
            body,
            replaces: write.replaces,
            epoch: write.epoch,
            approval,
        })
    }

    /// Returns the error of a write if the session has another epoch than the required one.
    pub(crate) fn check_epoch(&self, current: Epoch) -> Result<(), StoreError> {
        let session = &self.approval.request.session_id;
        match self.epoch.filter(|epoch| *epoch != current) {
            Some(epoch) => Err(StoreError::approvals_superseded(session, epoch, current)),
            None => Ok(()),
        }
    }
}

/// A row with a record.
pub(crate) struct Row<'a> {
    pub(crate) id: &'a str,
    pub(crate) requested_at_ms: u64,
    /// `None` if the column is not text.
    pub(crate) body: Option<&'a str>,
}

impl Row<'_> {
    /// Adds the record to a page. One that cannot be read, or is not that of its row, is reported to approvers; all
    /// other lists fail.
    pub(crate) fn add_to(
        &self,
        page: &mut ApprovalPage,
        list: &ApprovalList<'_>,
        corrupt: fn(&str) -> StoreError,
    ) -> Result<(), StoreError> {
        let is_own = |approval: &Approval| {
            list.contains(approval) && approval.request.id.as_str() == self.id
        };
        let approval: Option<Approval> = self.body.and_then(|body| serde_json::from_str(body).ok());
        if let Some(approval) = approval.filter(is_own) {
            page.approvals.push(approval);
            return Ok(());
        }
        let error = corrupt("approval");
        if !list.filter.reports_unreadable() {
            return Err(error);
        }
        let id = ApprovalId::parse(self.id).map_err(|_| corrupt("ID of an approval"))?;
        let position = ApprovalPosition::new(self.requested_at_ms, id);
        page.unreadable.push(UnreadableApproval::new(position, error));
        Ok(())
    }
}

/// Returns whether a page has as many records as its limit, and more follow.
pub(crate) fn is_full(page: &ApprovalPage, limit: usize) -> bool {
    page.approvals.len() + page.unreadable.len() >= limit.max(1)
}

/// Tells the waiting runs of this process about changed approvals.
#[derive(Clone)]
pub(crate) struct Changes(broadcast::Sender<ApprovalId>);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    pub(crate) fn send(&self, id: ApprovalId) {
        // The send fails if no run is waiting.
        drop(self.0.send(id));
    }

    /// Begins to collect changes. A caller that reads the record afterwards misses none.
    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }
}

pub(crate) struct Subscription(broadcast::Receiver<ApprovalId>);

impl Subscription {
    /// Waits until this approval has changed, or may have, or for the time.
    pub(crate) async fn changed(mut self, id: &ApprovalId, time: Duration) {
        let changed = async {
            // An error means that changes were missed.
            while self.0.recv().await.is_ok_and(|changed| changed != *id) {}
        };
        // Either way, the caller reads the record.
        drop(tokio::time::timeout(time, changed).await);
    }

    /// Waits until any approval has changed, or for the time.
    pub(crate) async fn any(mut self, time: Duration) {
        // Either way, the caller lists the approvals.
        drop(tokio::time::timeout(time, self.0.recv()).await);
    }
}
