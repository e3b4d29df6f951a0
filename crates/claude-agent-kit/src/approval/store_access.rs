//! Requests of the gate to the approval store. Each is boxed, so that it is compiled once and not into all that
//! await it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use claude_wire::id::{SessionId, ToolUseId};
use tokio::time::Instant;

use super::gate::Gate;
use super::inbox::MAX_CONFLICTS;
use crate::lock::lock;
use crate::store::upload::limited_in;
use crate::store::{Epoch, StoreError, StoreFuture};
use claude_session_store::approval::{Approval, ApprovalId, ApprovalStatus};

/// How long a failing store is tried again before the call is denied.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay between two tries.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The delay after a change that came too late because another one was stored.
pub(super) const CONFLICT_DELAY: Duration = Duration::from_millis(5);

/// The epochs of a run for one session, the current one last. There are several only if the run has claimed the approvals
/// again.
#[derive(Clone, Debug, Default)]
pub(super) struct RunEpochs(Vec<Epoch>);

impl RunEpochs {
    /// Returns the epoch in which this run has started a call, or the current one. `None` if the run has no claim.
    fn of(&self, approval: &Approval) -> Option<Epoch> {
        let started = approval.started_in.filter(|started| self.0.contains(started));
        started.or(self.0.last().copied())
    }

    /// Records the result of a call that this run has started.
    pub(super) fn finish(&self, approval: &Approval) -> Option<Approval> {
        approval.finish(self.of(approval)?)
    }

    /// Records that the outcome of a call is unknown, if an earlier run started it.
    pub(super) fn lose(&self, approval: &Approval) -> Option<Approval> {
        approval.lose(self.of(approval)?)
    }

    /// Gives back the decision that this run used for a call that did not run.
    pub(super) fn release(&self, approval: &Approval, call: &ToolUseId) -> Option<Approval> {
        approval.release(call, self.of(approval)?)
    }
}

impl Gate {
    /// Claims the approvals of a session that this run resumes: a claim at the end of its turn could take them from a
    /// host that has resumed the session since. If the store fails now, the first request claims them.
    pub(crate) async fn claim(&self, session: Option<&SessionId>) {
        let Some(session) = session else { return };
        let mut epochs = self.epochs.lock().await;
        let claim = self.approvals().claim(session);
        match tokio::time::timeout(STORE_TIMEOUT, claim).await {
            Ok(Ok(epoch)) => epochs.push((session.clone(), epoch)),
            Ok(Err(error)) => tracing::debug!("the approvals could not be claimed: {error}"),
            Err(_) => tracing::debug!("the approvals could not be claimed in time"),
        }
    }

    /// Returns the epoch of this run for a session, if it was claimed.
    pub(super) async fn known_epoch(&self, session: &SessionId) -> Option<Epoch> {
        let epochs = self.epochs.lock().await;
        epochs.iter().rfind(|(known, _)| known == session).map(|(_, epoch)| *epoch)
    }

    /// Returns all epochs of this run for a session.
    pub(super) async fn epochs_of(&self, session: &SessionId) -> RunEpochs {
        let epochs = self.epochs.lock().await;
        let own = epochs.iter().filter(|(known, _)| known == session);
        RunEpochs(own.map(|(_, epoch)| *epoch).collect())
    }

    /// Claims the approvals of a session again after another host has, and returns whether this run owns them. Two hosts that resume a session at once may
    /// claim the session and its approvals in different orders, and each would end because of the other one. The owner of
    /// the session continues.
    pub(super) async fn reclaim(&self, session: &SessionId, lost: Epoch) -> bool {
        let Some(claim) = self.sessions.iter().find(|it| it.key.session() == session) else {
            return false;
        };
        let mut epochs = self.epochs.lock().await;
        // Another call of this run was faster.
        if epochs.iter().rfind(|(known, _)| known == session).is_some_and(|(_, it)| *it > lost) {
            return true;
        }
        if let Err(error) = self.retry(&|| claim.check()).await {
            tracing::debug!("the session of the approvals is not owned: {error}");
            return false;
        }
        match self.retry(&|| self.approvals().claim(session)).await {
            Ok(epoch) => {
                epochs.push((session.clone(), epoch));
                true
            }
            Err(error) => {
                tracing::debug!("the approvals could not be claimed again: {error}");
                false
            }
        }
    }

    /// Returns the epoch of this run for a session, which is claimed on its first request.
    pub(super) fn epoch<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            let mut epochs = self.epochs.lock().await;
            if let Some((_, epoch)) = epochs.iter().rfind(|(known, _)| known == session) {
                return Ok(*epoch);
            }
            let epoch = self.retry(&|| self.approvals().claim(session)).await?;
            epochs.push((session.clone(), epoch));
            Ok(epoch)
        })
    }

    /// Records that the outcome of a call is unknown, if an earlier run started it.
    pub(super) async fn lose(&self, approval: &Approval) -> Result<Option<Approval>, StoreError> {
        let epochs = self.epochs_of(&approval.request.session_id).await;
        let lost = self.replace(approval, &|approval| epochs.lose(approval)).await?;
        lock(&self.turn).lost.extend(lost.clone());
        Ok(lost)
    }

    /// Writes an approval, and returns whether the stored one had the version before it.
    pub(super) fn write<'a>(
        &'a self,
        approval: &'a Approval,
        epoch: Option<Epoch>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.retry(&|| self.approvals().write(approval, epoch)).await })
    }

    /// Stores a change of an approval, unless it no longer applies.
    pub(super) fn replace<'a>(
        &'a self,
        approval: &Approval,
        change: &'a (dyn Fn(&Approval) -> Option<Approval> + Sync),
    ) -> StoreFuture<'a, Option<Approval>> {
        let mut current = approval.clone();
        Box::pin(async move {
            for _ in 0..MAX_CONFLICTS {
                let Some(changed) = change(&current) else { return Ok(None) };
                if self.write(&changed, None).await? {
                    return Ok(Some(changed));
                }
                tokio::time::sleep(CONFLICT_DELAY).await;
                match self.read(&current.request.id).await?.0 {
                    Some(stored) if stored == changed => return Ok(Some(changed)),
                    Some(stored) => current = stored,
                    None => return Ok(None),
                }
            }
            Err(StoreError::never_written(&current.request.id))
        })
    }

    /// Returns an approval, and the time on the clock of the store.
    pub(super) fn read<'a>(
        &'a self,
        id: &'a ApprovalId,
    ) -> StoreFuture<'a, (Option<Approval>, u64)> {
        Box::pin(async move { self.retry(&|| Box::pin(self.approvals().read(id))).await })
    }

    /// Returns the open approvals of a session, and the time on the clock of the store.
    pub(super) fn open<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (Vec<Approval>, u64)> {
        Box::pin(async move {
            let page = self.retry(&|| Box::pin(self.approvals().open_of(session))).await?;
            Ok((page.approvals, page.now_ms))
        })
    }

    /// Returns whether the session has a decision that no call has used. Requests that expired are recorded as such:
    /// no call waits for them, and the conversation would be listed as resumable again and again.
    pub(crate) async fn has_unused_decision(
        &self,
        session: &SessionId,
    ) -> Result<bool, StoreError> {
        let (open, now) = self.open(session).await?;
        let mut is_unused = false;
        for approval in open {
            let expired = self.replace(&approval, &|it| it.expire(now)).await?;
            is_unused |= expired.is_none() && approval.status == ApprovalStatus::Decided;
        }
        Ok(is_unused)
    }

    /// Tries a request again while the store is unavailable. A store that was unavailable for the whole time is not waited
    /// for again until it responds: the outcome of the turn would be held up as long as its calls were.
    async fn retry<'a, T: 'static>(
        &self,
        request: &(dyn Fn() -> StoreFuture<'a, T> + Sync),
    ) -> Result<T, StoreError> {
        let is_down = self.is_store_down.load(Ordering::Relaxed);
        let deadline = Instant::now() + if is_down { Duration::ZERO } else { STORE_TIMEOUT };
        loop {
            // A request that never returns would hold up the call, and then the outcome of its turn.
            let done = limited_in(self.approvals().store_name(), request()).await;
            let is_unavailable = done.as_ref().err().is_some_and(StoreError::is_retryable);
            if !is_unavailable || Instant::now() >= deadline {
                self.is_store_down.store(is_unavailable, Ordering::Relaxed);
                return done;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}
