//! Requests of the gate to the approval store.

use std::time::Duration;

use claude_wire::id::SessionId;
use tokio::time::Instant;

use super::gate::Gate;
use super::record::{Approval, ApprovalStatus};
use super::request::ApprovalId;
use super::store::{ApprovalFilter, ApprovalList, ApprovalPosition, ApprovalWrite};
use crate::lock::lock;
use crate::store::{Epoch, StoreError, StoreFuture};

/// How long a failing store is tried again before the call is denied.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay between two tries.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The delay after a change that came too late because another one was stored.
pub(super) const CONFLICT_DELAY: Duration = Duration::from_millis(5);

impl Gate {
    /// Returns the epoch of this run for a session, which is claimed on its first request.
    pub(super) async fn epoch(&self, session: &SessionId) -> Result<Epoch, StoreError> {
        let mut epochs = self.epochs.lock().await;
        if let Some((_, epoch)) = epochs.iter().find(|(known, _)| known == session) {
            return Ok(*epoch);
        }
        let scope = self.approvals().scope();
        let epoch = retry(|| self.store().claim_approvals(scope, session)).await?;
        epochs.push((session.clone(), epoch));
        Ok(epoch)
    }

    /// Records that the outcome of a call is unknown, if an earlier run started it.
    pub(super) async fn lose(
        &self,
        approval: &Approval,
        epoch: Epoch,
    ) -> Result<Option<Approval>, StoreError> {
        let lost = self.replace(approval, |approval| approval.lose(epoch)).await?;
        lock(&self.turn).lost.extend(lost.clone());
        Ok(lost)
    }

    /// Stores a change of an approval, unless it no longer applies.
    pub(super) async fn replace(
        &self,
        approval: &Approval,
        change: impl Fn(&Approval) -> Option<Approval>,
    ) -> Result<Option<Approval>, StoreError> {
        let mut current = approval.clone();
        loop {
            let Some(changed) = change(&current) else { return Ok(None) };
            let write = ApprovalWrite::update(&changed);
            if retry(|| self.store().write_approval(write)).await? {
                return Ok(Some(changed));
            }
            tokio::time::sleep(CONFLICT_DELAY).await;
            match self.read(&current.request.id).await?.0 {
                Some(stored) if stored == changed => return Ok(Some(changed)),
                Some(stored) => current = stored,
                None => return Ok(None),
            }
        }
    }

    pub(super) async fn read(
        &self,
        id: &ApprovalId,
    ) -> Result<(Option<Approval>, u64), StoreError> {
        retry(|| Box::pin(self.approvals().read(id))).await
    }

    /// Returns the open approvals of a session, and the time on the clock of the store.
    pub(super) async fn open(
        &self,
        session: &SessionId,
    ) -> Result<(Vec<Approval>, u64), StoreError> {
        let (mut open, mut after): (Vec<Approval>, Option<ApprovalPosition>) = (Vec::new(), None);
        loop {
            let filter = ApprovalFilter::OpenOf(session);
            let list = ApprovalList::new(self.approvals().scope(), filter).after(after.as_ref());
            let page = retry(|| self.store().list_approvals(list)).await?;
            after = page.approvals.last().map(ApprovalPosition::of);
            open.extend(page.approvals);
            if !page.more || after.is_none() {
                return Ok((open, page.now_ms));
            }
        }
    }

    /// Returns whether the session has a decision that no call has used.
    pub(crate) async fn has_unused_decision(
        &self,
        session: &SessionId,
    ) -> Result<bool, StoreError> {
        let (open, now) = self.open(session).await?;
        let is_unused = |approval: &Approval| {
            approval.status == ApprovalStatus::Decided && !approval.is_expired(now)
        };
        Ok(open.iter().any(is_unused))
    }
}

/// Tries a request again while the store is unavailable.
pub(super) async fn retry<'a, T>(
    request: impl Fn() -> StoreFuture<'a, T>,
) -> Result<T, StoreError> {
    let deadline = Instant::now() + STORE_TIMEOUT;
    loop {
        match request().await {
            Err(error) if error.is_retryable() && Instant::now() < deadline => {
                tokio::time::sleep(RETRY_DELAY).await;
            }
            done => return done,
        }
    }
}
