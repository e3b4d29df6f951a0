//! The handshake, which only its response completes.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::Json;
use claude_wire::control::{
    CliControlRequest, ControlOutcome, ControlResponse, ControlSuccess, HostRequest,
    InitializeResponse, PermissionMode,
};
use claude_wire::id::RequestId;
use claude_wire::message::SessionState;

use super::event::{Effect, RunFailure, RunState, RunWarning};
use super::machine::Machine;
use super::shorten::{MAX_REASON_BYTES, truncate};

/// The maximum number of request IDs that are kept because the response to the handshake may repeat
/// them.
const MAX_SEEN_REQUESTS: usize = 8192;

#[derive(Debug)]
pub(super) enum Handshake {
    Pending {
        id: RequestId,
        deadline: Duration,
        /// The requests that arrived during the handshake.
        seen: Vec<RequestId>,
        /// Whether it contains MCP servers, which the CLI has to confirm.
        has_mcp_servers: bool,
    },
    Done,
    Failed,
}

impl Handshake {
    pub(super) fn is_pending(&self) -> bool {
        matches!(self, Self::Pending { .. })
    }

    pub(super) fn is_response_to(&self, request: &RequestId) -> bool {
        matches!(self, Self::Pending { id, .. } if id == request)
    }

    /// Returns whether the handshake contains MCP servers that this response does not confirm.
    fn lacks_mcp_servers(&self, response: &InitializeResponse) -> bool {
        matches!(self, Self::Pending { has_mcp_servers: true, .. })
            && response.mcp_servers_applied != Some(true)
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Pending { deadline, .. } => Some(*deadline),
            Self::Done | Self::Failed => None,
        }
    }

    /// Records a request and returns whether it is new.
    pub(super) fn is_new(&mut self, request: &RequestId) -> bool {
        match self {
            Self::Pending { seen, .. } => {
                let is_new = !seen.contains(request);
                if is_new && seen.len() < MAX_SEEN_REQUESTS {
                    seen.push(request.clone());
                }
                is_new
            }
            Self::Done | Self::Failed => true,
        }
    }
}

impl Machine {
    /// Creates the first effects.
    pub(super) fn begin(&mut self) {
        let Some(initialize) = self.plan.initialize.take() else {
            self.out.push(Effect::State(RunState::Running(Bytes::new())));
            return self.flush_queue(Duration::ZERO);
        };
        self.out.push(Effect::State(RunState::Initializing));
        let has_mcp_servers = initialize.mcp_servers.is_some();
        match self.operations.encode(HostRequest::Initialize(initialize)) {
            Ok((id, line)) => {
                let (deadline, seen) = (self.plan.limits.initialize, Vec::new());
                self.handshake = Handshake::Pending { id, deadline, seen, has_mcp_servers };
                self.out.write(line);
            }
            Err(error) => {
                let reason = format!("the request cannot be encoded: {error}");
                self.fail(RunFailure::InitializeRejected(reason), Duration::ZERO);
            }
        }
    }

    /// Handles the response to the handshake.
    pub(super) fn on_handshake_response(&mut self, line: &Bytes, now: Duration) {
        let outcome = ControlResponse::decode(line).map(|response| response.response);
        let success = match outcome {
            Ok(ControlOutcome::Success(success)) => success,
            Ok(ControlOutcome::Error(failure)) => return self.reject(failure.error, now),
            Ok(ControlOutcome::Undecodable(raw)) if raw.kind.as_deref() == Some("error") => {
                return self.reject(raw.raw.text().to_owned(), now);
            }
            // The handshake is complete all the same, and a session does not depend on the content.
            Ok(ControlOutcome::Undecodable(raw)) => with_text(Some(raw.raw)),
            Ok(_) | Err(_) => with_text(None),
        };
        self.handshake_confirmed(&success, now);
    }

    /// Handles a response to the handshake that exceeds the line length limit.
    pub(super) fn on_oversized_handshake_response(&mut self, subtype: Option<&str>, now: Duration) {
        match subtype {
            Some("error") => {
                self.reject("the response exceeds the line length limit".to_owned(), now);
            }
            _ => self.handshake_confirmed(&with_text(None), now),
        }
    }

    fn handshake_confirmed(&mut self, success: &ControlSuccess, now: Duration) {
        let response = success.response.as_ref().and_then(|response| response.deserialize().ok());
        let response: InitializeResponse = response.unwrap_or_default();
        if let Some(reason) = self.unmet_requirement(&response) {
            return self.reject(reason, now);
        }
        if self.handshake.lacks_mcp_servers(&response) {
            return self.fail(RunFailure::McpServersNotApplied, now);
        }
        self.check_mode(response.current_permission_mode);
        let text = success.response.as_ref().map(Json::text).unwrap_or_default();
        let text = Bytes::copy_from_slice(text.as_bytes());
        self.out.push(Effect::State(RunState::Running(text)));
        self.evidence.handshake_confirmed();
        let is_running = response.session_state == Some(SessionState::Running);
        self.turns.handshake_ended(is_running, &mut self.out);
        self.replay_pending_requests(success, now);
        self.handshake = Handshake::Done;
        self.flush_queue(now);
    }

    /// Returns why the CLI does not meet the plan, if it does not.
    fn unmet_requirement(&self, response: &InitializeResponse) -> Option<String> {
        // Reported only if the handshake contained plugins.
        if response.plugins_applied == Some(false) {
            return Some("the CLI did not load the plugins in `initialize`".to_owned());
        }
        let event = &self.plan.hooks.values().find(|hook| hook.fail_closed)?.event;
        if response.hooks_applied == Some(false) {
            return Some(format!("the CLI did not apply the fail-closed hook for {event}"));
        }
        if response.hook_on_failure_supported == Some(true) {
            return None;
        }
        Some(format!("the CLI does not support fail-closed hooks, such as the one for {event}"))
    }

    /// Warns if the default permission mode of this CLI version bypasses the permission callback.
    fn check_mode(&mut self, mode: Option<PermissionMode>) {
        use PermissionMode::{Auto, BypassPermissions, DontAsk};
        if let Some(mode @ (Auto | BypassPermissions | DontAsk)) = mode
            && self.plan.relies_on_default_mode
        {
            self.out.warn(RunWarning::ModeBypassesCallback(mode));
        }
    }

    /// Serves the requests that the response reports as pending, as if they had just arrived.
    fn replay_pending_requests(&mut self, success: &ControlSuccess, now: Duration) {
        let pending = success
            .pending_permission_requests
            .iter()
            .chain(success.pending_user_dialog_requests.iter())
            .chain(success.pending_elicitation_requests.iter());
        for frame in pending {
            let line = Bytes::copy_from_slice(frame.text().as_bytes());
            if let Ok(request) = CliControlRequest::decode(&line)
                && self.handshake.is_new(&request.request_id)
            {
                self.serve_request(Box::new(request), &line, now);
            }
        }
    }

    fn reject(&mut self, mut reason: String, now: Duration) {
        truncate(&mut reason, MAX_REASON_BYTES);
        self.fail(RunFailure::InitializeRejected(reason), now);
    }

    pub(super) fn handshake_tick(&mut self, now: Duration) {
        if self.handshake.deadline().is_some_and(|deadline| deadline <= now) {
            self.fail(RunFailure::InitializeTimeout(self.plan.limits.initialize), now);
        }
    }
}

fn with_text(response: Option<Json>) -> ControlSuccess {
    let mut success = ControlSuccess::default();
    success.response = response;
    success
}
