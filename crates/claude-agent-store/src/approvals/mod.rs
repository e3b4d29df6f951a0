//! What the databases of approvals have in common: the columns of a record, and the news of changes.

pub(crate) mod errors;

use std::time::Duration;

use claude_agent_kit::approval::{Approval, ApprovalId, ApprovalStatus, ApprovalWrite};
use claude_agent_kit::store::{Epoch, StoreError};
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

/// Reads the text of a record; `None` if the text is not a record.
pub(crate) fn read(body: &str) -> Option<Approval> {
    serde_json::from_str(body).ok()
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
}
