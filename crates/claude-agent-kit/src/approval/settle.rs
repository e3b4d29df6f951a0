//! The end of a turn: what its approvals have become.

use claude_wire::id::{SessionId, ToolUseId};
use claude_wire::message::ResultMessage;

use super::gate::Gate;
use super::store_access::RunEpochs;
use super::texts::settling_failed;
use crate::lock::lock;
use crate::store::StoreError;
use crate::warning::Warning;
use claude_session_store::approval::{Approval, ApprovalId, ApprovalStatus};

/// What a turn left behind.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// The approvals that are pending, unused, or have an unknown outcome.
    pub(crate) approvals: Vec<Approval>,
    /// The calls that were denied only because they wait for their approval.
    pub(crate) held: Vec<ToolUseId>,
    pub(crate) warnings: Vec<Warning>,
}

impl Gate {
    /// Records the end of a turn: its calls have results, and the run no longer waits for decisions.
    pub(crate) async fn settle(
        &self,
        session: Option<&SessionId>,
        result: Option<&ResultMessage>,
        is_stopping: bool,
    ) -> Settled {
        let mut settled = Settled::default();
        let is_touched = {
            let mut turn = lock(&self.turn);
            turn.is_unsettled = false;
            turn.is_touched
        };
        if let Some(session) = session.filter(|_| is_touched) {
            match self.settle_session(session, result, is_stopping).await {
                Ok(approvals) => settled.approvals = approvals,
                Err(error) => self.warn(settling_failed(&error)),
            }
        }
        let mut turn = lock(&self.turn);
        let lost = std::mem::take(&mut turn.lost);
        turn.reported.extend_from_slice(&lost);
        settled.approvals.extend(lost);
        for (call, _) in std::mem::take(&mut turn.held) {
            settled.held.push(call);
        }
        settled.warnings.append(&mut turn.warnings);
        settled
    }

    async fn settle_session(
        &self,
        session: &SessionId,
        result: Option<&ResultMessage>,
        is_stopping: bool,
    ) -> Result<Vec<Approval>, StoreError> {
        let Some(epochs) = self.settling_epochs(session, is_stopping).await? else {
            return self.unused(session).await;
        };
        let (deferred, cancelled, unsent) = {
            let turn = lock(&self.turn);
            (turn.deferred.clone(), turn.cancelled.clone(), turn.unsent.clone())
        };
        let kept = result.and_then(|result| result.deferred_tool_use.as_ref()?.id.clone());
        let (mut unused, mut lost) = (Vec::new(), Vec::new());
        let (open, now) = self.open(session).await?;
        for approval in open {
            // An agent in the background waits for the decision, or goes on without it.
            if !is_stopping && lock(&self.calls).is_awaited(&approval.request.id) {
                continue;
            }
            let is_deferred = |(call, id): &(ToolUseId, ApprovalId)| {
                *id == approval.request.id && kept.as_ref() != Some(call)
            };
            let is_gone = deferred.as_ref().is_some_and(is_deferred)
                || cancelled.contains(&approval.request.id);
            // Requests outlive a host that is stopped, for example to be deployed again.
            if is_gone
                && !is_stopping
                && self.replace(&approval, &Approval::withdraw).await?.is_some()
            {
                continue;
            }
            let released = |approval: &Approval| {
                let own = unsent.iter().filter(|(_, id)| *id == approval.request.id);
                // A call that another hook deferred did not run either.
                let is_kept = result.is_some_and(|result| is_deferred_by(result, approval));
                let mut calls = own.map(|(call, _)| call).chain(kept.iter().filter(|_| is_kept));
                calls.find_map(|call| epochs.release(approval, call))
            };
            let settled = |approval: &Approval| {
                let ended = released(approval).or_else(|| epochs.lose(approval));
                // The result of a run that is stopped does not say whether the tool ran.
                let finish = || if is_stopping { None } else { self.finish(approval, &epochs) };
                let ended = ended.or_else(finish).or_else(|| approval.park());
                // Requests of this turn expire at the resume, those of earlier ones now: perhaps no call asks again.
                ended.or_else(|| approval.expire(now))
            };
            let approval = self.replace(&approval, &settled).await?.unwrap_or(approval);
            match approval.status {
                ApprovalStatus::Pending | ApprovalStatus::Decided => unused.push(approval),
                ApprovalStatus::OutcomeUnknown => lost.push(approval),
                _ => {}
            }
        }
        let mut turn = lock(&self.turn);
        turn.lost.extend(lost);
        turn.deferred = None;
        turn.cancelled.clear();
        turn.unsent.clear();
        Ok(unused)
    }
}

impl Gate {
    /// Returns the epochs with which the end of a turn is recorded. A run that ends and has not asked for approvals of
    /// the session must not claim them: another host may have resumed the session, and would lose them.
    async fn settling_epochs(
        &self,
        session: &SessionId,
        is_stopping: bool,
    ) -> Result<Option<RunEpochs>, StoreError> {
        if self.known_epoch(session).await.is_none() {
            if is_stopping {
                return Ok(None);
            }
            self.epoch(session).await?;
        }
        Ok(Some(self.epochs_of(session).await))
    }

    /// Returns the approvals that are pending or decided, without a change.
    async fn unused(&self, session: &SessionId) -> Result<Vec<Approval>, StoreError> {
        let (mut open, _) = self.open(session).await?;
        open.retain(|it| matches!(it.status, ApprovalStatus::Pending | ApprovalStatus::Decided));
        Ok(open)
    }

    /// Records the result of a call, unless it is still running, such as one of an agent in the background.
    fn finish(&self, approval: &Approval, epochs: &RunEpochs) -> Option<Approval> {
        let is_running = |call: &ToolUseId| lock(&self.calls).is_running(call);
        if approval.started_for.as_ref().is_some_and(is_running) {
            return None;
        }
        epochs.finish(approval)
    }

    /// Records the results of calls whose agents have ended or go on, and that no run waits for the decisions about
    /// the others.
    pub(crate) async fn settle_agents(&self, session: &SessionId) {
        if let Err(error) = self.settle_calls_of_agents(session).await {
            tracing::warn!("the approvals of an agent could not be settled: {error}");
            self.warn(settling_failed(&error));
        }
    }

    async fn settle_calls_of_agents(&self, session: &SessionId) -> Result<(), StoreError> {
        self.epoch(session).await?;
        let epochs = self.epochs_of(session).await;
        let (open, _) = self.open(session).await?;
        for approval in open {
            self.replace(&approval, &|approval| self.settle_call_of_agent(approval, &epochs))
                .await?;
        }
        Ok(())
    }

    fn settle_call_of_agent(&self, approval: &Approval, epochs: &RunEpochs) -> Option<Approval> {
        let id = &approval.request.id;
        let finished = self.finish(approval, epochs);
        if finished.is_some()
            || approval.request.agent_id.is_none()
            || lock(&self.calls).is_awaited(id)
        {
            return finished;
        }
        let is_cancelled = lock(&self.turn).cancelled.contains(id);
        let withdrawn = if is_cancelled { approval.withdraw() } else { None };
        withdrawn.or_else(|| approval.park())
    }

    /// Returns whether calls of agents have changed approvals since the turn was settled.
    pub(crate) fn is_unsettled(&self) -> bool {
        lock(&self.turn).is_unsettled
    }
}

/// Returns whether the call that the turn deferred has the tool and the input of an approval.
fn is_deferred_by(result: &ResultMessage, approval: &Approval) -> bool {
    let call = result.deferred_tool_use.as_ref();
    let parts = call.and_then(|call| Some((call.tool_name.as_deref()?, call.input.as_ref()?)));
    parts.is_some_and(|(tool, input)| approval.request.is_for(tool, input))
}
