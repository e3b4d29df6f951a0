//! The invariants of the machine, checked after every event. A part of the model, which the fuzz target
//! uses too.

use std::collections::BTreeSet;

use super::*;

impl Model {
    pub(super) fn accepts_requests(&self) -> bool {
        let open = !self.stdin_closed && !self.stdin_broken;
        open && !self.stopping && !self.failed && !self.exited && self.end.is_none()
    }

    fn running(&self) -> usize {
        self.runs.values().filter(|run| !run.done).count()
    }

    /// Decisions that wait for a place.
    fn waiting(&self) -> usize {
        let open = |state: &&RequestState| state.responses == 0 && !state.cancelled && !state.run;
        self.requests.values().filter(open).count()
    }

    pub(super) fn is_full(&self) -> bool {
        self.running() >= self.plan.limits.running_callbacks
            && self.waiting() >= self.plan.limits.waiting_callbacks
    }

    pub(super) fn check_effects(&mut self) {
        while let Some(effect) = self.machine.next_effect() {
            self.record(LogEntry::Effect(effect.clone()));
            if self.end.is_some() {
                assert!(matches!(effect, Effect::Complete(..)), "after the end: {effect:?}");
            }
            self.check(&effect);
        }
        if self.end.is_some() {
            for (number, waits) in &self.waiters {
                assert!(waits.completed || waits.forgotten, "{number} still waits: {waits:?}");
            }
        }
    }

    fn check(&mut self, effect: &Effect) {
        match effect {
            Effect::Write(line) => self.check_write(line),
            Effect::CloseStdin => assert!(!std::mem::replace(&mut self.stdin_closed, true)),
            Effect::Terminate => {
                assert!(!self.exited, "terminated although it is gone");
                assert!(!std::mem::replace(&mut self.terminated, true));
            }
            Effect::TerminateAtOnce => {
                assert!(!self.exited && !self.killed, "terminated although it is gone");
                self.terminated = true;
            }
            Effect::Kill => {
                assert!(self.terminated && !self.exited);
                assert!(!std::mem::replace(&mut self.killed, true));
            }
            Effect::Deliver(_) | Effect::DeliverPermission(_) => {
                assert!(!self.failed, "delivered after a failure");
            }
            Effect::State(state) => self.check_new_state(state),
            Effect::Complete(waiter, completed) => self.check_completion(waiter.0, completed),
            Effect::RunCallback { key, request, .. } => {
                self.check_run(key.0, request.request_id.as_str());
            }
            Effect::CancelCallback(key) => {
                let run = self.runs.get_mut(&key.0).unwrap();
                run.cancels += 1;
                assert!(run.cancels == 1 && !run.done, "{run:?}");
            }
            Effect::AbortCallback(key) => {
                let run = self.runs.get_mut(&key.0).unwrap();
                run.aborts += 1;
                assert!(run.cancels == 1 && run.aborts == 1 && !run.done, "{run:?}");
            }
            Effect::TurnStarted(id) => {
                assert!(!self.failed, "started after a failure");
                assert!(self.turns_started.insert(id.to_string()), "{id}");
            }
            Effect::ReplayStarted(id) => {
                self.check_replay();
                assert!(self.turns_started.insert(id.to_string()), "{id}");
            }
            Effect::NoReplay => self.check_replay(),
            Effect::TurnEnded(id, _) => {
                assert!(!self.failed, "ended after a failure");
                assert!(self.turns_ended.insert(id.to_string()), "{id}");
            }
            Effect::End(_) => self.check_end(shown(effect)),
            Effect::Warn(_)
            | Effect::Cost(_)
            | Effect::UnmatchedResponse { .. }
            | Effect::Stored(_)
            | Effect::Append(_)
            | Effect::RetryAppend(_)
            | Effect::CatchUp(_)
            | Effect::AbandonAppend => {}
        }
    }

    fn check_write(&mut self, line: &[u8]) {
        assert!(!self.stdin_closed && !self.stdin_broken, "written after the close");
        self.unwritten += line.len();
        let frame: serde_json::Value = serde_json::from_slice(line).unwrap();
        match frame["type"].as_str().unwrap() {
            "control_request" => {
                self.written.push(frame["request_id"].as_str().unwrap().to_owned());
            }
            "control_response" => {
                assert!(!self.stopping && !self.failed, "answered although it is being stopped");
                let id = frame["response"]["request_id"].as_str().unwrap();
                let state = self.requests.get_mut(id).unwrap();
                assert!(state.responses == 0 && !state.cancelled, "{id} {state:?}");
                state.responses += 1;
                let answer = &frame["response"]["response"];
                state.approved = answer["continue"] == true || answer["behavior"] == "allow";
            }
            _ => {}
        }
    }

    fn check_new_state(&mut self, state: &RunState) {
        let known = match state {
            RunState::Running(_) => &mut self.running,
            RunState::Stopping => &mut self.stopping,
            RunState::Failed(_) => &mut self.failed,
            RunState::Initializing => return,
        };
        assert!(!std::mem::replace(known, true), "{state:?} a second time");
    }

    fn check_completion(&mut self, number: u64, completed: &Completion) {
        let waits = self.waiters.get_mut(&number).unwrap();
        assert!(!waits.completed && !waits.forgotten, "{number} {waits:?} {completed:?}");
        waits.completed = true;
        let fits = match completed {
            Completion::Sent => waits.call == CommandKind::Send,
            Completion::InputEnded => waits.call == CommandKind::EndInput,
            Completion::Response(_) => waits.call == CommandKind::Request,
            Completion::Rejected(_) => true,
        };
        assert!(fits, "{waits:?} {completed:?}");
    }

    fn check_run(&mut self, key: u64, id: &str) {
        let state = self.requests.get_mut(id).unwrap();
        assert!(state.responses == 0 && !state.cancelled && !state.run, "{id} {state:?}");
        state.run = true;
        let has_timeout = self.plan.permission_timeout.is_some();
        let run = CallbackState { request: id.to_owned(), has_timeout, ..CallbackState::default() };
        assert!(self.runs.insert(key, run).is_none(), "{key} twice");
        let running = self.running();
        assert!(running <= self.plan.limits.running_callbacks, "{running} run");
    }

    /// Only a resumed session has a replay, or is told once that there is none.
    fn check_replay(&mut self) {
        assert!(self.plan.resumes && matches!(self.plan.run, RunMode::Session));
        assert!(!std::mem::replace(&mut self.replay_resolved, true), "a second replay");
    }

    fn check_end(&mut self, end: String) {
        assert!(self.exited, "the process lives");
        for (key, run) in &self.runs {
            assert!(run.done || run.aborts == 1, "{key} still runs: {run:?}");
        }
        assert!(self.turns_ended.is_subset(&self.turns_started_or_cancelled()));
        self.end = Some(end);
    }

    /// A turn that is cancelled need not have begun.
    fn turns_started_or_cancelled(&self) -> BTreeSet<String> {
        self.turns_started.iter().chain(&self.sent).cloned().collect()
    }

    pub(super) fn check_state(&self) {
        let pending = |call: CommandKind| {
            let waits =
                |waits: &&Command| waits.call == call && !waits.completed && !waits.forgotten;
            self.waiters.values().filter(waits).count()
        };
        let limits = &self.plan.limits;
        let most = limits.waiting_operations.max(limits.pending_operations);
        assert!(pending(CommandKind::Request) <= most, "too many operations wait");
        if self.accepts_requests() {
            assert!(self.waiting() <= limits.waiting_callbacks, "too many callbacks wait");
        }
        if self.end.is_some() {
            assert!(self.machine.wake_at().is_none() && !self.machine.has_waiters());
            return;
        }
        let waits = pending(CommandKind::Request) + pending(CommandKind::Send);
        assert!(waits == 0 || self.machine.has_waiters(), "somebody waits and nobody reads");
        // Whatever depends on time has a time.
        let given_up = self.result && !matches!(self.plan.run, RunMode::Session);
        let handshake = self.plan.initialize.is_some() && !self.running && !given_up;
        let cancelled = |run: &CallbackState| run.cancels == 1 && run.aborts == 0 && !run.done;
        let limited = |run: &CallbackState| run.has_timeout && run.cancels == 0 && !run.done;
        let depends = (handshake && !self.stopping && !self.failed)
            || (pending(CommandKind::Request) > 0)
            || self.runs.values().any(|run| cancelled(run) || limited(run))
            || ((self.stopping || self.failed || self.terminated) && !self.killed && !self.exited)
            || (self.stdin_broken && !self.stdin_closed && !self.exited)
            || (self.exited && !self.eof);
        assert!(!depends || self.machine.wake_at().is_some(), "nobody is woken");
        assert!(self.runs.values().all(|run| self.requests.contains_key(&run.request)));
    }
}
