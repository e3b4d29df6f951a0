//! The handshake, which only its response completes.

use std::time::Duration;

use bytes::Bytes;

use super::event::{Effect, RunFailure, RunState, RunWarning};
use super::hook_denial::HookDenial;
use super::machine::Machine;
use super::shorten::{MAX_REASON_BYTES, truncate};
use crate::control::{
    CliControlRequest, ControlOutcome, ControlResponse, ControlSuccess, HostRequest,
    InitializeResponse, PermissionMode,
};
use crate::from_cli::control;
use crate::id::RequestId;
use crate::json::Json;

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
        match self.operations.encode(HostRequest::Initialize(initialize)) {
            Ok((id, line)) => {
                let (deadline, seen) = (self.plan.limits.initialize, Vec::new());
                self.handshake = Handshake::Pending { id, deadline, seen };
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
        let outcome = control::<ControlResponse>(line).map(|response| response.response);
        let success = match outcome {
            Ok(ControlOutcome::Success(success)) => success,
            Ok(ControlOutcome::Error(failure)) => return self.reject(failure.error, now),
            Ok(ControlOutcome::Undecodable(raw)) if raw.kind.as_deref() == Some("error") => {
                return self.reject(raw.raw.text().to_owned(), now);
            }
            // The handshake is complete all the same, and a session does not depend on the content.
            Ok(ControlOutcome::Undecodable(raw)) => with_text(Some(raw.raw)),
            Ok(ControlOutcome::Unknown(_)) | Err(_) => with_text(None),
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
        let response = success.response.as_ref().and_then(|response| response.decode().ok());
        let response: InitializeResponse = response.unwrap_or_default();
        if let Some(reason) = self.unmet_requirement(&response) {
            return self.reject(reason, now);
        }
        self.check_mode(response.current_permission_mode);
        let text = success.response.as_ref().map(Json::text).unwrap_or_default();
        let text = Bytes::copy_from_slice(text.as_bytes());
        self.out.push(Effect::State(RunState::Running(text)));
        self.evidence.handshake_confirmed();
        self.turns.handshake_ended();
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
        let mut guards = self.plan.hooks.values().filter(|hook| hook.fail_closed);
        let guard = guards.clone().next()?;
        if response.hooks_applied == Some(false) {
            let event = &guard.event;
            return Some(format!("the CLI did not apply the fail-closed hook for {event}"));
        }
        if response.hook_on_failure_supported == Some(true) {
            return None;
        }
        let guard = guards.find(|hook| HookDenial::for_event(&hook.event).is_blocking())?;
        let event = &guard.event;
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
            if let Ok(request) = control::<CliControlRequest>(&line)
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
    ControlSuccess { response, ..ControlSuccess::default() }
}
