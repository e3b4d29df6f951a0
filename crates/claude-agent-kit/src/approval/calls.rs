//! The tool calls of a run that are in progress: waiting for a decision, or running.
//!
//! Approvals belong to their calls, and not to the end of any turn: an agent in the background makes calls while the
//! turns of the main conversation end. A message tells that a call or an agent has ended.

use bytes::Bytes;
use claude_wire::id::{AgentId, SessionId, ToolUseId};
use claude_wire::message::{SystemMessage, TaskStatus};
use claude_wire::{Body, Message};

use super::gate::Gate;
use super::matching::Call;
use crate::callback::CancelToken;
use crate::lock::lock;
use claude_session_store::approval::ApprovalId;

/// The calls in progress. The CLI limits how many there are at a time.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Vec<OpenCall>);

#[derive(Debug)]
struct OpenCall {
    tool_use: ToolUseId,
    approval: ApprovalId,
    session: SessionId,
    agent: Option<AgentId>,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    /// The hook waits for a decision, unless it is cancelled.
    Waiting(CancelToken),
    /// The call of an agent was denied until it is approved, and the agent goes on.
    Held,
    /// The call was allowed, and its result has not arrived.
    Running,
}

impl OpenCalls {
    /// Records that a call waits for the decision about this approval.
    pub(super) fn wait(&mut self, call: &Call, approval: &ApprovalId, cancel: &CancelToken) {
        self.set(call, approval, Progress::Waiting(cancel.clone()));
    }

    /// Records that a call was allowed.
    pub(super) fn run(&mut self, call: &Call, approval: &ApprovalId) {
        self.set(call, approval, Progress::Running);
    }

    /// Records that the call of an agent was denied until it is approved.
    pub(super) fn hold(&mut self, call: &Call, approval: &ApprovalId) {
        self.set(call, approval, Progress::Held);
    }

    fn set(&mut self, call: &Call, approval: &ApprovalId, progress: Progress) {
        self.0.retain(|open| open.tool_use != call.tool_use);
        self.0.push(OpenCall {
            tool_use: call.tool_use.clone(),
            approval: approval.clone(),
            session: call.session.clone(),
            agent: call.agent.clone(),
            progress,
        });
    }

    /// Removes a call that no longer waits and was not allowed. One of an agent that was cancelled stays until its end is
    /// reported, so that its request is withdrawn then.
    fn stop_waiting(&mut self, tool_use: &ToolUseId) {
        self.0.retain(|open| match &open.progress {
            Progress::Waiting(cancel) if open.tool_use == *tool_use => {
                open.agent.is_some() && cancel.is_cancelled()
            }
            Progress::Waiting(_) | Progress::Held | Progress::Running => true,
        });
    }

    /// Returns whether the run still needs the decision, or the agent that asked for it is still at work.
    pub(super) fn is_awaited(&self, approval: &ApprovalId) -> bool {
        self.0.iter().any(|open| {
            open.approval == *approval
                && match &open.progress {
                    Progress::Waiting(cancel) => !cancel.is_cancelled(),
                    Progress::Held => true,
                    Progress::Running => false,
                }
        })
    }

    /// Returns whether a call was allowed and has no result yet.
    pub(super) fn is_running(&self, tool_use: &ToolUseId) -> bool {
        let is_same = |open: &OpenCall| open.tool_use == *tool_use;
        self.0.iter().any(|open| is_same(open) && matches!(open.progress, Progress::Running))
    }

    /// Removes the calls that have ended, and returns the session of an agent among them.
    fn end(&mut self, has_ended: impl Fn(&OpenCall) -> bool) -> Option<SessionId> {
        let mut session = None;
        self.0.retain(|open| {
            let ends = has_ended(open);
            if ends && open.agent.is_some() {
                session = Some(open.session.clone());
            }
            !ends
        });
        session
    }
}

/// Records that a call no longer waits, even if its hook is aborted.
pub(super) struct WaitGuard<'a> {
    pub(super) gate: &'a Gate,
    pub(super) tool_use: &'a ToolUseId,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        lock(&self.gate.calls).stop_waiting(self.tool_use);
    }
}

impl Gate {
    /// Records what a line of the CLI says about the calls in progress. Returns the session if a call of an agent has
    /// ended: no turn of the host may end afterwards, so its approval has to be settled now.
    ///
    /// Called for lines in the order of their arrival. Results are delivered later if they wait for the store, and a
    /// late result must not end a call of the next turn.
    pub(crate) fn observe(&self, line: &Bytes) -> Option<SessionId> {
        let agent_of = self.ended_by(line)?;
        lock(&self.turn).is_unsettled = true;
        Some(agent_of)
    }

    fn ended_by(&self, line: &Bytes) -> Option<SessionId> {
        if lock(&self.calls).0.is_empty() {
            return None;
        }
        // Of a message that cannot be decoded nothing is known; its calls stay open, and are never run again.
        let message = Message::decode(line.clone()).ok()?;
        match &message.body {
            Body::User(user) => {
                let results: Vec<&ToolUseId> =
                    user.tool_results().map(|result| &result.tool_use_id).collect();
                lock(&self.calls).end(|open| results.contains(&&open.tool_use))
            }
            // The calls of the main conversation have results before its turn has one.
            Body::Result(_) => lock(&self.calls).end(|open| open.agent.is_none()),
            Body::System(SystemMessage::TaskNotification(task)) => {
                self.end_task(task.task_id.as_ref()?.as_str(), task.status.as_ref()?)
            }
            Body::System(SystemMessage::TaskUpdated(task)) => {
                let status = task.patch.as_ref().and_then(|patch| patch.status.as_ref())?;
                self.end_task(task.task_id.as_ref()?.as_str(), status)
            }
            _ => None,
        }
    }

    /// Records the end of a task. The task of an agent has its ID.
    fn end_task(&self, task: &str, status: &TaskStatus) -> Option<SessionId> {
        use TaskStatus::{Completed, Failed, Killed, Stopped};
        if !matches!(status, Completed | Failed | Killed | Stopped) {
            return None;
        }
        let is_own = |open: &OpenCall| open.agent.as_ref().is_some_and(|agent| agent == task);
        lock(&self.calls).end(is_own)
    }
}
