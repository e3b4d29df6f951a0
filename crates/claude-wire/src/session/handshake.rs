//! The handshake: only its answer confirms it.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;

use super::event::{Effect, Failure, Notice, State};
use super::machine::Machine;
use super::refusal::HookRefusal;
use super::shorten::{MAX_REASON_BYTES, truncate};
use crate::control::{
    CliControlRequest, ControlOutcome, ControlResponse, ControlSuccess, HostRequest,
    InitializeResponse, PermissionMode,
};
use crate::from_cli::control;
use crate::id::RequestId;
use crate::json::Json;

/// Requests that are remembered because the answer to the handshake may name them again.
const MOST_SEEN: usize = 8192;

#[derive(Debug)]
pub(super) enum Handshake {
    Pending {
        id: RequestId,
        deadline: Duration,
        /// Requests that came before its end.
        seen: BTreeSet<RequestId>,
    },
    Done,
    Failed,
}

impl Handshake {
    pub(super) fn is_pending(&self) -> bool {
        matches!(self, Self::Pending { .. })
    }

    pub(super) fn is_its_answer(&self, answered: &RequestId) -> bool {
        matches!(self, Self::Pending { id, .. } if id == answered)
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Pending { deadline, .. } => Some(*deadline),
            Self::Done | Self::Failed => None,
        }
    }

    /// Whether a request was not seen during the handshake. From now on it was.
    pub(super) fn is_new(&mut self, request: &RequestId) -> bool {
        match self {
            Self::Pending { seen, .. } if seen.len() < MOST_SEEN => seen.insert(request.clone()),
            Self::Pending { seen, .. } => !seen.contains(request),
            Self::Done | Self::Failed => true,
        }
    }
}

impl Machine {
    /// The first things to do.
    pub(super) fn begin(&mut self) {
        let Some(initialize) = self.plan.initialize.take() else {
            self.out.push(Effect::State(State::Running(Bytes::new())));
            return self.write_what_waits(Duration::ZERO);
        };
        self.out.push(Effect::State(State::Initializing));
        match self.operations.encode(HostRequest::Initialize(initialize)) {
            Ok((id, line)) => {
                let (deadline, seen) = (self.plan.limits.initialize, BTreeSet::new());
                self.handshake = Handshake::Pending { id, deadline, seen };
                self.out.write(line);
            }
            Err(error) => {
                let reason = format!("it cannot be written: {error}");
                self.fail(Failure::InitializeRejected(reason), Duration::ZERO);
            }
        }
    }

    /// The CLI answered the handshake.
    pub(super) fn handshake_answered(&mut self, line: &Bytes, now: Duration) {
        let answer = control::<ControlResponse>(line).map(|answer| answer.response);
        let success = match answer {
            Ok(ControlOutcome::Success(success)) => success,
            Ok(ControlOutcome::Error(failure)) => return self.reject(failure.error, now),
            Ok(ControlOutcome::Undecodable(odd)) if odd.kind.as_deref() == Some("error") => {
                return self.reject(odd.raw.text().to_owned(), now);
            }
            // It is an answer all the same, and a session can do without what it says.
            Ok(ControlOutcome::Undecodable(odd)) => with_text(Some(odd.raw)),
            Ok(ControlOutcome::Unknown(_)) | Err(_) => with_text(None),
        };
        self.handshake_confirmed(&success, now);
    }

    /// The CLI answered the handshake with a line that was too long.
    pub(super) fn handshake_answered_too_long(&mut self, subtype: Option<&str>, now: Duration) {
        match subtype {
            Some("error") => self.reject("an answer that is too long".to_owned(), now),
            _ => self.handshake_confirmed(&with_text(None), now),
        }
    }

    fn handshake_confirmed(&mut self, success: &ControlSuccess, now: Duration) {
        let answer = success.response.as_ref().and_then(|answer| answer.deserialize().ok());
        let answer: InitializeResponse = answer.unwrap_or_default();
        if let Some(reason) = self.misses_something(&answer) {
            return self.reject(reason, now);
        }
        self.check_mode(answer.current_permission_mode);
        let text = success.response.as_ref().map(Json::text).unwrap_or_default();
        let text = Bytes::copy_from_slice(text.as_bytes());
        self.out.push(Effect::State(State::Running(text)));
        self.evidence.handshake_confirmed();
        self.ask_again(success, now);
        self.handshake = Handshake::Done;
        self.write_what_waits(now);
    }

    /// What the session would have to do without, although it was asked for.
    fn misses_something(&self, answer: &InitializeResponse) -> Option<String> {
        // Said only where plugins were in the handshake.
        if answer.plugins_applied == Some(false) {
            return Some("the CLI did not load the plugins of the handshake".to_owned());
        }
        let mut guards = self.plan.hooks.values().filter(|hook| hook.fail_closed);
        let guard = guards.clone().next()?;
        if answer.hooks_applied == Some(false) {
            let event = &guard.event;
            return Some(format!("the CLI did not apply the fail-closed hook for {event}"));
        }
        if answer.hook_on_failure_supported == Some(true) {
            return None;
        }
        let guard = guards.find(|hook| HookRefusal::of(&hook.event).is_blocking())?;
        let event = &guard.event;
        Some(format!("the CLI does not support fail-closed hooks, such as the one for {event}"))
    }

    /// Versions differ in the mode that they start in, and in some the host is never asked.
    fn check_mode(&mut self, mode: Option<PermissionMode>) {
        use PermissionMode::{Auto, BypassPermissions, DontAsk};
        if let Some(mode @ (Auto | BypassPermissions | DontAsk)) = mode
            && self.plan.relies_on_default_mode
        {
            self.out.warn(Notice::ModeWithoutQuestions(mode));
        }
    }

    /// Serves the requests that the answer says are open, as if they had just come.
    fn ask_again(&mut self, success: &ControlSuccess, now: Duration) {
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
                self.asked(Box::new(request), &line, now);
            }
        }
    }

    fn reject(&mut self, mut reason: String, now: Duration) {
        truncate(&mut reason, MAX_REASON_BYTES);
        self.fail(Failure::InitializeRejected(reason), now);
    }

    pub(super) fn handshake_tick(&mut self, now: Duration) {
        if self.handshake.deadline().is_some_and(|deadline| deadline <= now) {
            self.fail(Failure::InitializeTimeout(self.plan.limits.initialize), now);
        }
    }
}

fn with_text(response: Option<Json>) -> ControlSuccess {
    ControlSuccess { response, ..ControlSuccess::default() }
}
