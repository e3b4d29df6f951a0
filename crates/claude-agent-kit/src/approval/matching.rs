//! Finds or makes the request for a tool call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use claude_wire::Json;
use claude_wire::id::{AgentId, SessionId, ToolUseId};

use super::gate::Gate;
use super::inbox::MAX_CONFLICTS;
use super::store_access::CONFLICT_DELAY;
use crate::callback::CallbackContext;
use crate::hook::input::PreToolUseInput;
use crate::lock::lock;
use crate::store::{Epoch, StoreError};
use claude_session_store::approval::{Approval, ApprovalId, ApprovalRequest, ApprovalStatus};

/// The parts of the hook input that identify a tool call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: ApprovalId,
    pub(super) session: SessionId,
    pub(super) tool_use: ToolUseId,
    pub(super) tool: String,
    pub(super) input: Json,
    pub(super) agent: Option<AgentId>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) project: Option<String>,
}

/// The result of the search for an unused approval.
enum Found {
    Usable(Box<Approval>),
    Nothing {
        /// A call with the same input whose outcome is unknown.
        repeats: Option<ApprovalId>,
        /// A request for the same call in another directory.
        moved_from: Option<ApprovalId>,
    },
}

impl Gate {
    pub(super) fn identify(
        &self,
        call: PreToolUseInput,
        context: &CallbackContext,
    ) -> Option<Call> {
        let session = call.session_id.or_else(|| context.session_id.clone())?;
        let tool_use = call.tool_use_id.or_else(|| context.tool_use_id.clone())?;
        let (tool, input) = (call.tool_name?, call.input?);
        let folder = call.transcript_path.as_deref().and_then(|path| Path::new(path).parent());
        let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let project = self.project.as_deref().map(str::to_owned).or(name);
        let cwd = call.cwd.map(PathBuf::from);
        let id = ApprovalId::derive(&session, &tool_use, &tool, &input, cwd.as_deref());
        Some(Call { id, session, tool_use, tool, input, agent: call.agent_id, cwd, project })
    }

    /// Returns the approval of a call: its own one, an unused one for the same tool and input, or a new one.
    pub(super) async fn request(
        &self,
        call: &Call,
        epoch: Epoch,
        expires_after: Option<Duration>,
    ) -> Result<Approval, StoreError> {
        let _one_at_a_time = self.requests.lock().await;
        for _ in 0..MAX_CONFLICTS {
            let (own, now) = self.read(&call.id).await?;
            let mut new = self.new_request(call, now, expires_after);
            let approval = match own {
                Some(own) => {
                    self.check(call, &call.id, &own)?;
                    match own.renew(new) {
                        Some(renewed) => renewed,
                        None => return Ok(own),
                    }
                }
                None => match self.find(call).await? {
                    Found::Usable(approval) => return Ok(*approval),
                    Found::Nothing { repeats, moved_from } => {
                        (new.repeats, new.moved_from) = (repeats, moved_from);
                        Approval::new(new)
                    }
                },
            };
            // Otherwise another host was faster, or an earlier try was stored.
            if self.write(&approval, Some(epoch)).await? {
                return Ok(approval);
            }
            tokio::time::sleep(CONFLICT_DELAY).await;
        }
        Err(StoreError::never_written(&call.id))
    }

    fn new_request(
        &self,
        call: &Call,
        now: u64,
        expires_after: Option<Duration>,
    ) -> ApprovalRequest {
        let expiry = |after: Duration| {
            now.saturating_add(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
        };
        let mut request = ApprovalRequest::new(
            call.id.clone(),
            self.approvals().scope(),
            call.session.clone(),
            call.tool_use.clone(),
            &*call.tool,
            call.input.clone(),
            now,
        );
        request.project.clone_from(&call.project);
        request.cwd.clone_from(&call.cwd);
        request.agent_id.clone_from(&call.agent);
        request.expires_at_ms = expires_after.map(expiry);
        request
    }

    /// Rejects a record that is not the requested one, or is for another call. A store may be faulty or hostile, and
    /// an approval is valid for exactly what its approver saw.
    pub(super) fn check(
        &self,
        call: &Call,
        id: &ApprovalId,
        approval: &Approval,
    ) -> Result<(), StoreError> {
        let request = &approval.request;
        let is_for_call = request.id == *id
            && request.scope == self.approvals().scope()
            && request.session_id == call.session
            && request.is_for(&call.tool, &call.input)
            && self.is_in_directory(call, request);
        if !is_for_call {
            return Err(StoreError::unrequested_approval(&request.id));
        }
        let is_outdated =
            |(used, version): &(ApprovalId, u64)| used == id && approval.version() < *version;
        if lock(&self.used).iter().any(is_outdated) {
            return Err(StoreError::outdated_approval(id));
        }
        Ok(())
    }

    fn is_in_directory(&self, call: &Call, request: &ApprovalRequest) -> bool {
        self.policy.is_same_directory(request.cwd.as_deref(), call.cwd.as_deref())
    }

    /// Looks for an unused approval of another call with the same tool and input, in the same directory.
    async fn find(&self, call: &Call) -> Result<Found, StoreError> {
        let is_call = |approval: &Approval| approval.request.is_for(&call.tool, &call.input);
        let is_same = |approval: &&Approval| {
            is_call(approval) && self.is_in_directory(call, &approval.request)
        };
        let (reserved, mut repeats) = {
            let turn = lock(&self.turn);
            let lost = turn.lost.iter().chain(&turn.reported).find(is_same);
            (
                turn.deferred.as_ref().map(|(_, id)| id.clone()),
                lost.map(|lost| lost.request.id.clone()),
            )
        };
        let (mut pending, mut moved_from) = (None, None);
        let (open, now) = self.open(&call.session).await?;
        for approval in open {
            if !is_same(&&approval) {
                let is_moved = is_call(&approval)
                    && approval.status != ApprovalStatus::Started
                    && !approval.is_expired(now);
                moved_from = is_moved.then(|| approval.request.id.clone()).or(moved_from);
                continue;
            }
            // An expired request is for the call that made it.
            if self.replace(&approval, &|it| it.expire(now)).await?.is_some() {
                continue;
            }
            match approval.status {
                // The deferred call is replayed and uses it itself.
                _ if Some(&approval.request.id) == reserved.as_ref() => {}
                ApprovalStatus::Decided => return Ok(Found::Usable(Box::new(approval))),
                ApprovalStatus::Pending => pending = pending.or(Some(approval)),
                _ => {
                    if let Some(lost) = self.lose(&approval).await? {
                        repeats = Some(lost.request.id);
                    }
                }
            }
        }
        Ok(match pending {
            Some(approval) => Found::Usable(Box::new(approval)),
            None => Found::Nothing { repeats, moved_from },
        })
    }
}
