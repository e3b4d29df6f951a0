//! Requests of the gate to the approval store. Each is boxed, so that it is compiled once and not into all that
//! await it.

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
    pub(super) fn epoch<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            let mut epochs = self.epochs.lock().await;
            if let Some((_, epoch)) = epochs.iter().find(|(known, _)| known == session) {
                return Ok(*epoch);
            }
            let scope = self.approvals().scope();
            let epoch = retry(&|| self.store().claim_approvals(scope, session)).await?;
            epochs.push((session.clone(), epoch));
            Ok(epoch)
        })
    }

    /// Records that the outcome of a call is unknown, if an earlier run started it.
    pub(super) async fn lose(
        &self,
        approval: &Approval,
        epoch: Epoch,
    ) -> Result<Option<Approval>, StoreError> {
        let lost = self.replace(approval, &|approval| approval.lose(epoch)).await?;
        lock(&self.turn).lost.extend(lost.clone());
        Ok(lost)
    }

    /// Writes an approval, and returns whether the stored one had the version before it.
    pub(super) fn write<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move { retry(&|| self.store().write_approval(write)).await })
    }

    /// Stores a change of an approval, unless it no longer applies.
    pub(super) fn replace<'a>(
        &'a self,
        approval: &Approval,
        change: &'a (dyn Fn(&Approval) -> Option<Approval> + Sync),
    ) -> StoreFuture<'a, Option<Approval>> {
        let mut current = approval.clone();
        Box::pin(async move {
            loop {
                let Some(changed) = change(&current) else { return Ok(None) };
                if self.write(ApprovalWrite::update(&changed)).await? {
                    return Ok(Some(changed));
                }
                tokio::time::sleep(CONFLICT_DELAY).await;
                match self.read(&current.request.id).await?.0 {
                    Some(stored) if stored == changed => return Ok(Some(changed)),
                    Some(stored) => current = stored,
                    None => return Ok(None),
                }
            }
        })
    }

    /// Returns an approval, and the time on the clock of the store.
    pub(super) fn read<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> StoreFuture<'a, (Option<Approval>, u64)> {
        Box::pin(async move { retry(&|| Box::pin(self.approvals().read(id))).await })
    }

    /// Returns the open approvals of a session, and the time on the clock of the store.
    pub(super) fn open<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (Vec<Approval>, u64)> {
        Box::pin(async move {
            let (mut open, mut after): (Vec<Approval>, Option<ApprovalPosition>) = <_>::default();
            loop {
                let filter = ApprovalFilter::OpenOf(session);
                let list =
                    ApprovalList::new(self.approvals().scope(), filter).after(after.as_ref());
                let page = retry(&|| self.store().list_approvals(list)).await?;
                after = page.approvals.last().map(ApprovalPosition::of);
                open.extend(page.approvals);
                if !page.more || after.is_none() {
                    return Ok((open, page.now_ms));
                }
            }
        })
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
async fn retry<'a, T>(request: &(dyn Fn() -> StoreFuture<'a, T> + Sync)) -> Result<T, StoreError> {
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
