//! What must hold of the machine after every event; a part of the world, which the fuzz target plays
//! too.

use std::collections::BTreeSet;

use super::*;

impl World {
    pub(super) fn takes_requests(&self) -> bool {
        let open = !self.input_closed && !self.input_broken;
        open && !self.stopping && !self.failed && !self.exited && self.end.is_none()
    }

    fn running(&self) -> usize {
        self.runs.values().filter(|run| !run.done).count()
    }

    /// Decisions that wait for a place.
    fn waiting(&self) -> usize {
        let open = |asked: &&Asked| asked.answers == 0 && !asked.withdrawn && !asked.run;
        self.requests.values().filter(open).count()
    }

    pub(super) fn is_full(&self) -> bool {
        self.running() >= self.plan.limits.running_callbacks
            && self.waiting() >= self.plan.limits.waiting_callbacks
    }

    pub(super) fn check_effects(&mut self) {
        while let Some(effect) = self.machine.next_effect() {
            self.note(Logged::Effect(effect.clone()));
            if self.end.is_some() {
                assert!(matches!(effect, Effect::Settle(..)), "after the end: {effect:?}");
            }
            self.check(&effect);
        }
        if self.end.is_some() {
            for (number, waits) in &self.waiters {
                assert!(waits.settled || waits.forgotten, "{number} still waits: {waits:?}");
            }
        }
    }

    fn check(&mut self, effect: &Effect) {
        match effect {
            Effect::Write(line) => self.check_write(line),
            Effect::CloseInput => assert!(!std::mem::replace(&mut self.input_closed, true)),
            Effect::Terminate => {
                assert!(!self.exited, "terminated although it is gone");
                assert!(!std::mem::replace(&mut self.terminated, true));
            }
            Effect::Kill => {
                assert!(self.terminated && !self.exited);
                assert!(!std::mem::replace(&mut self.killed, true));
            }
            Effect::Deliver(_) | Effect::DeliverPermission(_) => {
                assert!(!self.failed, "delivered after a failure");
            }
            Effect::State(state) => self.check_new_state(state),
            Effect::Settle(waiter, settled) => self.check_settled(waiter.0, settled),
            Effect::Run { key, request, .. } => self.check_run(key.0, request.request_id.as_str()),
            Effect::Cancel(key) => {
                let run = self.runs.get_mut(&key.0).unwrap();
                run.cancels += 1;
                assert!(run.cancels == 1 && !run.done, "{run:?}");
            }
            Effect::Abort(key) => {
                let run = self.runs.get_mut(&key.0).unwrap();
                run.aborts += 1;
                assert!(run.cancels == 1 && run.aborts == 1 && !run.done, "{run:?}");
            }
            Effect::TurnStarted(id) => assert!(self.turns_started.insert(id.to_string()), "{id}"),
            Effect::TurnEnded(id, _) => assert!(self.turns_ended.insert(id.to_string()), "{id}"),
            Effect::End(_) => self.check_end(shown(effect)),
            Effect::Warn(_) | Effect::Cost(_) | Effect::Unclaimed { .. } => {}
        }
    }

    fn check_write(&mut self, line: &[u8]) {
        assert!(!self.input_closed && !self.input_broken, "written after the close");
        self.unwritten += line.len();
        let frame: serde_json::Value = serde_json::from_slice(line).unwrap();
        match frame["type"].as_str().unwrap() {
            "control_request" => {
                self.written.push(frame["request_id"].as_str().unwrap().to_owned());
            }
            "control_response" => {
                assert!(!self.stopping && !self.failed, "answered although it is being stopped");
                let id = frame["response"]["request_id"].as_str().unwrap();
                let asked = self.requests.get_mut(id).unwrap();
                assert!(asked.answers == 0 && !asked.withdrawn, "{id} {asked:?}");
                asked.answers += 1;
                let answer = &frame["response"]["response"];
                asked.approved = answer["continue"] == true || answer["behavior"] == "allow";
            }
            _ => {}
        }
    }

    fn check_new_state(&mut self, state: &State) {
        let known = match state {
            State::Running(_) => &mut self.running,
            State::Stopping => &mut self.stopping,
            State::Failed(_) => &mut self.failed,
            State::Initializing => return,
        };
        assert!(!std::mem::replace(known, true), "{state:?} a second time");
    }

    fn check_settled(&mut self, number: u64, settled: &Settled) {
        let waits = self.waiters.get_mut(&number).unwrap();
        assert!(!waits.settled && !waits.forgotten, "{number} {waits:?} {settled:?}");
        waits.settled = true;
        let fits = match settled {
            Settled::Sent => waits.call == Call::Send,
            Settled::InputEnded => waits.call == Call::EndInput,
            Settled::Answered(_) => waits.call == Call::Ask,
            Settled::Refused(_) => true,
        };
        assert!(fits, "{waits:?} {settled:?}");
    }

    fn check_run(&mut self, key: u64, id: &str) {
        let asked = self.requests.get_mut(id).unwrap();
        assert!(asked.answers == 0 && !asked.withdrawn && !asked.run, "{id} {asked:?}");
        asked.run = true;
        let has_limit = self.plan.permission_limit.is_some();
        let run = Ran { request: id.to_owned(), has_limit, ..Ran::default() };
        assert!(self.runs.insert(key, run).is_none(), "{key} twice");
        let running = self.running();
        assert!(running <= self.plan.limits.running_callbacks, "{running} run");
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
        let unsettled = |call: Call| {
            let waits = |waits: &&Waits| waits.call == call && !waits.settled && !waits.forgotten;
            self.waiters.values().filter(waits).count()
        };
        let limits = &self.plan.limits;
        let most = limits.waiting_operations.max(limits.pending_operations);
        assert!(unsettled(Call::Ask) <= most, "too many operations wait");
        if self.takes_requests() {
            assert!(self.waiting() <= limits.waiting_callbacks, "too many callbacks wait");
        }
        if self.end.is_some() {
            assert!(self.machine.wake_at().is_none() && !self.machine.has_waiters());
            return;
        }
        let waits = unsettled(Call::Ask) + unsettled(Call::Send);
        assert!(waits == 0 || self.machine.has_waiters(), "somebody waits and nobody reads");
        // Whatever depends on time has a time.
        let given_up = self.result && !matches!(self.plan.run, Run::Session);
        let handshake = self.plan.initialize.is_some() && !self.running && !given_up;
        let cancelled = |run: &Ran| run.cancels == 1 && run.aborts == 0 && !run.done;
        let limited = |run: &Ran| run.has_limit && run.cancels == 0 && !run.done;
        let depends = (handshake && !self.stopping && !self.failed)
            || (unsettled(Call::Ask) > 0)
            || self.runs.values().any(|run| cancelled(run) || limited(run))
            || ((self.stopping || self.failed || self.terminated) && !self.killed && !self.exited)
            || (self.input_broken && !self.input_closed && !self.exited)
            || (self.exited && !self.eof);
        assert!(!depends || self.machine.wake_at().is_some(), "nobody is woken");
        assert!(self.runs.values().all(|run| self.requests.contains_key(&run.request)));
    }
}
