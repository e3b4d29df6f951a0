//! The gate of a run: holds tool calls until an approver has decided.
//!
//! The gate is a `PreToolUse` hook that fails closed. What can go wrong, and what the gate does:
//!
//! | problem | outcome |
//! |---|---|
//! | the store fails before the request is stored | the call is denied, with a warning |
//! | the store fails while the run waits | the call is deferred, with a warning; the request is stored |
//! | it is unknown whether the decision was consumed | the record tells: it names the run and the call |
//! | the store does not even tell that | the call is denied; the decision is given back when the turn ends |
//! | two hosts ask for one call | one consumes the decision, the other one denies the call |
//! | two hosts claim the session and its approvals in different orders | the owner of the session claims them again |
//! | the host dies after the decision was consumed | the next run denies the call: its outcome is unknown |
//! | the call has changed, or would run in another directory | it has another ID, and becomes a request of its own |
//! | the store returns another record than the requested one | the call is denied, with a warning |
//! | the turn ends while an agent in the background waits or works | its approvals are settled when the agent ends |
//! | several calls in one answer | the CLI keeps one deferred call; the others are denied and can be issued again |
//! | a subagent makes the call | the CLI loses its deferred calls; it is denied and can be issued again |
//! | another hook denies the deferred call | the request is withdrawn when the turn ends |
//! | the turn is interrupted while the run waits | the request is withdrawn when the turn ends |
//! | the run is stopped while it waits | the request stays; the model is asked to issue the call again |

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claude_wire::id::{SessionId, ToolUseId};
use tokio::time::Instant;

use super::calls::{OpenCalls, WaitGuard};
use super::inbox::{Approvals, MAX_CONFLICTS, wait};
use super::matching::Call;
use super::policy::{ApprovalPolicy, ApprovalRule};
use super::store_access::{CONFLICT_DELAY, RETRY_DELAY};
use super::texts::{
    CHANGES_RULES, EXPIRED, HELD, INTERRUPTED, POLICY_FAILED, SUPERSEDED, UNAVAILABLE,
    UNIDENTIFIED, UNKNOWN, policy_failed, store_failed,
};
use crate::callback::{CallbackContext, CancelToken};
use crate::hook::HookResponse;
use crate::hook::input::PreToolUseInput;
use crate::lock::lock;
use crate::permission::Permission;
use crate::store::StoreName;
use crate::store::upload::limited_in;
use crate::store::{Epoch, SessionClaim, StoreError, StoreErrorKind};
use crate::warning::Warning;
use claude_session_store::approval::{
    Approval, ApprovalId, ApprovalStore, ApprovalUse, ApprovalWrite, Decision, Verdict,
};

/// How much longer than the wait for a decision the hook may take.
const HOOK_MARGIN: Duration = Duration::from_secs(60);

type Response = HookResponse<PreToolUseInput>;

/// The gate of one run.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(super) policy: ApprovalPolicy,
    /// The project under which a session store has the session, if the host chose one.
    pub(super) project: Option<Arc<str>>,
    /// Held while a request is matched and stored: two calls of this run must not make one decision.
    pub(super) requests: tokio::sync::Mutex<()>,
    /// The sessions of the run with their epochs, the current one last: `/clear` starts another session, and two hosts
    /// that resume one session at once may claim it again.
    pub(super) epochs: tokio::sync::Mutex<Vec<(SessionId, Epoch)>>,
    /// The claims on the sessions that the run has resumed from a session store.
    pub(super) sessions: Vec<SessionClaim>,
    /// Permissions for calls whose approval changes rules, which only a permission request can.
    grants: Mutex<Vec<(ToolUseId, Permission)>>,
    pub(super) turn: Mutex<TurnState>,
    pub(super) calls: Mutex<OpenCalls>,
    /// The approvals that this run has used, with their versions then. A store could return an earlier one again.
    pub(super) used: Mutex<Vec<(ApprovalId, u64)>>,
    /// Whether the store was unavailable for as long as a request waits for it.
    pub(super) is_store_down: AtomicBool,
}

/// What happened since the last prompt.
#[derive(Debug, Default)]
pub(super) struct TurnState {
    prompt: Option<String>,
    /// The call that was deferred, and its approval. The CLI keeps one.
    pub(super) deferred: Option<(ToolUseId, ApprovalId)>,
    /// The calls that were denied only because they wait for their approval.
    pub(super) held: Vec<(ToolUseId, ApprovalId)>,
    /// The requests of calls that were cancelled while the run waited.
    pub(super) cancelled: Vec<ApprovalId>,
    /// The approvals whose outcome turned out to be unknown, since the last turn and before.
    pub(super) lost: Vec<Approval>,
    pub(super) reported: Vec<Approval>,
    /// The calls that were denied although their decision may have been consumed: the response of the store was lost.
    pub(super) unsent: Vec<(ToolUseId, ApprovalId)>,
    pub(super) warnings: Vec<Warning>,
    /// Whether the run has asked for an approval, or may have decisions of an earlier run.
    pub(super) is_touched: bool,
    /// Whether something has happened since the approvals were settled.
    pub(super) is_unsettled: bool,
}

/// The next step of a call that needs approval.
enum Step {
    Respond(Response),
    /// With the time on the clock of the store.
    Wait(Approval, u64),
    /// Another call has used the decision.
    Match,
}

impl Gate {
    pub(crate) fn new(
        policy: ApprovalPolicy,
        project: Option<Arc<str>>,
        sessions: Vec<SessionClaim>,
        is_resumed: bool,
    ) -> Self {
        let turn = TurnState { is_touched: is_resumed, ..TurnState::default() };
        Self {
            policy,
            project,
            requests: tokio::sync::Mutex::default(),
            epochs: tokio::sync::Mutex::default(),
            sessions,
            is_store_down: AtomicBool::default(),
            grants: Mutex::default(),
            turn: Mutex::new(turn),
            calls: Mutex::default(),
            used: Mutex::default(),
        }
    }

    /// Returns how long the hook may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.policy.park_after.saturating_add(HOOK_MARGIN)
    }

    pub(super) fn approvals(&self) -> &Approvals {
        &self.policy.approvals
    }

    pub(super) fn store(&self) -> &dyn ApprovalStore {
        self.policy.approvals.store()
    }

    /// Responds to the hook.
    pub(crate) async fn respond(
        &self,
        call: PreToolUseInput,
        context: CallbackContext,
    ) -> Response {
        // The policy goes by the name.
        if call.tool_name.is_none() {
            return Response::deny(UNIDENTIFIED);
        }
        let rule = match self.policy.rule(&call).await {
            Ok(rule) => rule,
            Err(error) => {
                tracing::warn!(tool = call.tool(), "the approval policy failed: {error}");
                self.warn(policy_failed(call.tool(), &error.to_string()));
                return Response::deny(POLICY_FAILED);
            }
        };
        let expires_after = match rule {
            ApprovalRule::Continue => return Response::new(),
            ApprovalRule::Allow => return Response::allow(),
            ApprovalRule::Deny(reason) => return Response::deny(reason),
            ApprovalRule::Require => self.policy.expires_after,
            ApprovalRule::RequireWithin(time) => Some(time),
        };
        // A background agent may belong to an earlier prompt.
        if call.agent_id.is_none() {
            self.enter_prompt(call.prompt_id.as_deref());
        }
        {
            let mut turn = lock(&self.turn);
            (turn.is_touched, turn.is_unsettled) = (true, true);
        }
        let Some(call) = self.identify(call, &context) else { return Response::deny(UNIDENTIFIED) };
        loop {
            let epoch = match self.epoch(&call.session).await {
                Ok(epoch) => epoch,
                Err(error) => return self.failed(&call, &error),
            };
            let required = self.require(&call, epoch, expires_after, &context.cancel);
            match Box::pin(required).await {
                Ok(response) => return response,
                // Each time, another host has claimed the approvals and not the session.
                Err(error)
                    if error.kind() == StoreErrorKind::Superseded
                        && self.reclaim(&call.session, epoch).await => {}
                Err(error) => return self.failed(&call, &error),
            }
        }
    }

    /// Returns the response for a call whose approval the store does not let be requested or used.
    fn failed(&self, call: &Call, error: &StoreError) -> Response {
        if error.kind() == StoreErrorKind::Superseded {
            return Response::deny(SUPERSEDED).stop(SUPERSEDED);
        }
        tracing::warn!(approval = %call.id, "the approval store failed: {error}");
        self.warn(store_failed(&call.tool, error));
        Response::deny(UNAVAILABLE)
    }

    /// Forgets the deferred call of an earlier prompt, which has ended since.
    fn enter_prompt(&self, prompt: Option<&str>) {
        let mut turn = lock(&self.turn);
        if turn.prompt.as_deref() != prompt {
            turn.prompt = prompt.map(str::to_owned);
            turn.deferred = None;
            turn.held.clear();
        }
    }

    /// Requests the approval of a call, and waits for the decision.
    async fn require(
        &self,
        call: &Call,
        epoch: Epoch,
        expires_after: Option<Duration>,
        cancel: &CancelToken,
    ) -> Result<Response, StoreError> {
        let deadline = after(self.policy.park_after);
        let mut approval = self.request(call, epoch, expires_after).await?;
        let _waiting = WaitGuard { gate: self, tool_use: &call.tool_use };
        loop {
            let id = approval.request.id.clone();
            lock(&self.calls).wait(call, &id, cancel);
            lock(&self.turn).cancelled.retain(|cancelled| *cancelled != id);
            let step = match self.step(call, &id, epoch, cancel).await {
                // The request is stored, and the decision was not used.
                Err(error) if error.is_retryable() && !self.is_unsent(&id) => {
                    self.warn(store_failed(&call.tool, &error));
                    return Ok(self.park(call, &approval));
                }
                step => step?,
            };
            match step {
                Step::Respond(response) => return Ok(response),
                Step::Match => approval = self.request(call, epoch, expires_after).await?,
                Step::Wait(pending, now) => {
                    approval = pending;
                    if !self.is_waiting(&approval, deadline) {
                        return Ok(self.park(call, &approval));
                    }
                    if let Some(waiting) = self.replace(&approval, &Approval::unpark).await? {
                        approval = waiting;
                    }
                    let expiry =
                        approval.request.expires_at_ms.map(|expiry| expiry.saturating_sub(now));
                    let until = expiry.map_or(deadline, |left| after(Duration::from_millis(left)));
                    if self.wait(&approval, until.min(deadline), cancel).await.is_none() {
                        lock(&self.turn).cancelled.push(id);
                        return Ok(Response::deny(INTERRUPTED));
                    }
                }
            }
        }
    }

    /// Returns whether the decision may have been consumed although no response was sent to the CLI.
    fn is_unsent(&self, approval: &ApprovalId) -> bool {
        lock(&self.turn).unsent.iter().any(|(_, id)| id == approval)
    }

    /// Returns whether the run waits for the decision: not after the deadline, and not if it parks anyway.
    fn is_waiting(&self, approval: &Approval, deadline: Instant) -> bool {
        let turn = lock(&self.turn);
        let is_held = turn.held.iter().any(|(_, held)| *held == approval.request.id);
        turn.deferred.is_none() && !is_held && Instant::now() < deadline
    }

    /// Waits until the approval may have changed, or the deadline is reached. Returns `None` if the call was
    /// cancelled.
    async fn wait(
        &self,
        approval: &Approval,
        deadline: Instant,
        cancel: &CancelToken,
    ) -> Option<()> {
        let (store, scope) = (self.store(), self.approvals().scope());
        let changed = async {
            let id = &approval.request.id;
            match store.approval_changed(scope, id, approval.version()).await {
                Ok(change) => wait(change).await,
                Err(error) => {
                    tracing::debug!("the approval store failed: {error}");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        };
        let waited =
            cancel.clone().unless_cancelled(tokio::time::timeout_at(deadline, changed)).await;
        waited.map(drop)
    }

    /// Defers the call, or denies it if the CLI would not keep it.
    fn park(&self, call: &Call, approval: &Approval) -> Response {
        let mut turn = lock(&self.turn);
        let id = approval.request.id.clone();
        if call.agent.is_some() || turn.deferred.is_some() {
            if call.agent.is_some() {
                lock(&self.calls).hold(call, &id);
            }
            turn.held.push((call.tool_use.clone(), id));
            return Response::deny(HELD);
        }
        turn.deferred = Some((call.tool_use.clone(), id));
        Response::defer()
    }

    /// Tries to use the decision for a call.
    async fn step(
        &self,
        call: &Call,
        id: &ApprovalId,
        epoch: Epoch,
        cancel: &CancelToken,
    ) -> Result<Step, StoreError> {
        let mut unsent = UnsentGuard { turn: &self.turn, entry: None };
        for _ in 0..MAX_CONFLICTS {
            let (approval, now) = self.read(id).await?;
            let Some(approval) = approval else { return Ok(Step::Match) };
            self.check(call, id, &approval)?;
            let is_own = approval.request.tool_use_id == call.tool_use;
            if unsent.entry.is_some() && approval.is_used_by(&call.tool_use, epoch) {
                return self.send(call, &approval, epoch, cancel, unsent).await;
            }
            let (changed, response) = match approval.consume(&call.tool_use, epoch, now) {
                ApprovalUse::Pending => return Ok(Step::Wait(approval, now)),
                ApprovalUse::Used if !is_own => return Ok(Step::Match),
                ApprovalUse::Used => {
                    self.lose(&approval).await?;
                    return Ok(Step::Respond(Response::deny(UNKNOWN)));
                }
                ApprovalUse::Expired(changed) => (changed, None),
                ApprovalUse::Decision(decision, changed) => (changed, Some(decision)),
            };
            if cancel.is_cancelled() {
                lock(&self.turn).cancelled.push(id.clone());
                return Ok(Step::Respond(Response::deny(INTERRUPTED)));
            }
            if changed.version() != approval.version() {
                let is_retry = unsent.entry.is_some();
                unsent.entry = Some((call.tool_use.clone(), id.clone()));
                let write = ApprovalWrite::update(&changed).epoch(epoch);
                match limited_in(
                    StoreName::Approvals(self.store()),
                    self.store().write_approval(write),
                )
                .await
                {
                    Ok(true) => {}
                    Ok(false) => {
                        tokio::time::sleep(CONFLICT_DELAY).await;
                        continue;
                    }
                    // It is unknown whether the change was stored: the record tells.
                    Err(error) if error.is_retryable() && !is_retry => {
                        tokio::time::sleep(RETRY_DELAY).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            return match response {
                Some(_) => self.send(call, &changed, epoch, cancel, unsent).await,
                None => Ok(Step::Respond(Response::deny(EXPIRED))),
            };
        }
        Err(StoreError::never_written(id))
    }

    /// Returns the response for a decision that was consumed, unless the call was cancelled meanwhile.
    async fn send(
        &self,
        call: &Call,
        approval: &Approval,
        epoch: Epoch,
        cancel: &CancelToken,
        mut unsent: UnsentGuard<'_>,
    ) -> Result<Step, StoreError> {
        if cancel.is_cancelled() {
            let release = |approval: &Approval| approval.release(&call.tool_use, epoch);
            self.replace(approval, &release).await?;
            return Ok(Step::Respond(Response::deny(INTERRUPTED)));
        }
        unsent.entry = None;
        // An earlier try, before the approvals were claimed again. Another approval that was consumed for a call with
        // this ID stays unsent: its decision is given back.
        let sent = (call.tool_use.clone(), approval.request.id.clone());
        lock(&self.turn).unsent.retain(|unsent| *unsent != sent);
        lock(&self.used).push((approval.request.id.clone(), approval.version()));
        Ok(Step::Respond(self.apply(call, approval)))
    }

    /// Returns the response for a decision that was consumed.
    fn apply(&self, call: &Call, approval: &Approval) -> Response {
        match approval.decision.as_ref().map(Decision::verdict) {
            Some(Verdict::Allow { input, permissions }) => {
                lock(&self.calls).run(call, &approval.request.id);
                // Always the approved input: another hook may have changed it.
                let input = input.as_ref().unwrap_or(&call.input).clone();
                if permissions.is_empty() {
                    return Response::allow().updated_input(input);
                }
                let permission = Permission::allow().with_permissions(permissions.iter().cloned());
                lock(&self.grants).push((call.tool_use.clone(), permission.with_input(input)));
                Response::ask(CHANGES_RULES)
            }
            Some(Verdict::Deny { message }) => Response::deny(message),
            None => Response::deny(UNKNOWN),
        }
    }

    /// Returns the permission for a call whose approval changes rules, once.
    pub(crate) fn take_grant(&self, tool_use: &ToolUseId) -> Option<Permission> {
        let mut grants = lock(&self.grants);
        let index = grants.iter().position(|(granted, _)| granted == tool_use)?;
        Some(grants.swap_remove(index).1)
    }

    pub(super) fn warn(&self, warning: Warning) {
        lock(&self.turn).warnings.push(warning);
    }
}

/// Records a decision that may have been consumed without a response to the CLI, also if the hook is aborted.
struct UnsentGuard<'a> {
    turn: &'a Mutex<TurnState>,
    entry: Option<(ToolUseId, ApprovalId)>,
}

impl Drop for UnsentGuard<'_> {
    fn drop(&mut self) {
        lock(self.turn).unsent.extend(self.entry.take());
    }
}

/// Returns the time after a duration, which may be endless.
fn after(duration: Duration) -> Instant {
    let longest = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + duration.min(longest)
}
