//! A model of the session machine that generates random events and checks invariants. The fuzz target
//! `machine` uses it too.

#[path = "session_choices.rs"]
mod choices;
#[path = "session_invariants.rs"]
mod invariants;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{
    CallbackKey, CallbackOutcome, Completion, Effect, Event, HookPlan, Machine, Plan, QueryLimits,
    RunMode, RunState, Waiter,
};
use claude_wire::control::HostRequest;
use claude_wire::{Exit, Json};

pub(crate) use choices::Choices;

use super::session_harness::{
    ANSWER, INIT, RESULT, cancel, failure, hook, interrupt, lifecycle, message, oversized,
    permission, request, result_for, session_state, shown, success,
};

const EVENTS_PER_CASE: u64 = 60;

/// The state of a request of the CLI.
#[derive(Clone, Copy, Debug, Default)]
struct RequestState {
    responses: u32,
    approved: bool,
    cancelled: bool,
    run: bool,
}

/// The state of a callback.
#[derive(Clone, Debug, Default)]
struct CallbackState {
    request: String,
    has_timeout: bool,
    cancels: u32,
    aborts: u32,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum CommandKind {
    Send,
    Request,
    EndInput,
}

#[derive(Clone, Copy, Debug)]
struct Command {
    call: CommandKind,
    completed: bool,
    forgotten: bool,
}

/// Formatted only on failure, because formatting takes longer than the machine does.
pub(crate) enum LogEntry {
    Event(Duration, Event),
    Effect(Effect),
}

impl LogEntry {
    pub(crate) fn shown(&self) -> String {
        let text = match self {
            Self::Event(now, event) => format!("{now:?} {event:?}"),
            Self::Effect(effect) => format!("    {}", shown(effect)),
        };
        text.chars().take(300).collect()
    }
}

/// A machine and its expected state.
pub(crate) struct Model {
    random: Choices,
    machine: Machine,
    plan: Plan,
    now: Duration,
    pub(crate) events: u64,
    /// The last events and effects.
    pub(crate) log: VecDeque<LogEntry>,
    requests: BTreeMap<String, RequestState>,
    runs: BTreeMap<u64, CallbackState>,
    waiters: BTreeMap<u64, Command>,
    /// The IDs of written control requests.
    written: Vec<String>,
    sent: Vec<String>,
    turns_started: BTreeSet<String>,
    turns_ended: BTreeSet<String>,
    /// Whether a replay has started or was ruled out.
    replay_resolved: bool,
    unwritten: usize,
    running: bool,
    stopping: bool,
    failed: bool,
    stdin_closed: bool,
    stdin_broken: bool,
    terminated: bool,
    killed: bool,
    exited: bool,
    eof: bool,
    /// Whether there was a result, after which a query abandons its handshake without an error.
    result: bool,
    pub(crate) end: Option<String>,
}

impl Model {
    pub(crate) fn new(mut random: Choices) -> Self {
        let plan = plan(&mut random);
        Self {
            machine: Machine::new(plan.clone()),
            random,
            plan,
            now: Duration::ZERO,
            events: 0,
            log: VecDeque::new(),
            requests: BTreeMap::new(),
            runs: BTreeMap::new(),
            waiters: BTreeMap::new(),
            written: Vec::new(),
            sent: Vec::new(),
            turns_started: BTreeSet::new(),
            turns_ended: BTreeSet::new(),
            replay_resolved: false,
            unwritten: 0,
            running: false,
            stopping: false,
            failed: false,
            stdin_closed: false,
            stdin_broken: false,
            terminated: false,
            killed: false,
            exited: false,
            eof: false,
            result: false,
            end: None,
        }
    }

    pub(crate) fn play(&mut self) {
        self.check_effects();
        for _ in 0..EVENTS_PER_CASE {
            self.random_event();
        }
        if self.random.one_in(2) {
            self.end_all_callbacks();
        }
        self.end_run();
        for _ in 0..3 {
            self.random_event();
        }
    }

    fn handle(&mut self, event: Event) {
        self.events += 1;
        self.record(LogEntry::Event(self.now, event.clone()));
        let was_over = self.end.is_some();
        self.machine.handle(event, self.now);
        self.check_effects();
        if !was_over {
            self.check_state();
        }
    }

    fn record(&mut self, entry: LogEntry) {
        if self.log.len() == 60 {
            self.log.pop_front();
        }
        self.log.push_back(entry);
    }
}

// Random events.
impl Model {
    fn random_event(&mut self) {
        match self.random.below(100) {
            0..=44 if !self.eof => self.random_line(),
            45..=46 if !self.eof => self.random_oversized_line(),
            47..=59 => self.random_callback_end(),
            60..=79 => self.random_command(),
            80..=89 => self.advance_time(),
            90..=96 => self.write_bytes(),
            97 if self.random.one_in(4) => self.break_stdin(),
            98 if self.random.one_in(4) => self.end_stdout(),
            99 if self.random.one_in(4) => self.exit_process(),
            _ => self.handle(Event::Tick),
        }
    }

    fn random_line(&mut self) {
        let line = match self.random.below(20) {
            0 => success(INIT, r#"{"hook_on_failure_supported":true}"#),
            1 if self.random.one_in(6) => failure(INIT, "no"),
            1..=2 => ANSWER.to_owned(),
            3 => (*self.random.pick(&["", "7", "{", "garbage", "{}"]).unwrap()).to_owned(),
            4 => session_state(self.random.pick(&["running", "idle", "requires_action"]).unwrap()),
            5..=6 => self.lifecycle(),
            7 => self.result(),
            8..=10 => self.response(),
            11..=12 => return self.cancel_request(),
            13 => r#"{"type":"system","subtype":"init","session_id":"s"}"#.to_owned(),
            14 => r#"{"type":"control_response","response":{"subtype":"success"}}"#.to_owned(),
            15 => r#"{"type":"control_request","request":{"subtype":"new"}}"#.to_owned(),
            _ => return self.random_request(),
        };
        if !line.is_empty() {
            self.handle(Event::Line(line.into()));
        }
    }

    fn lifecycle(&mut self) -> String {
        let states = ["queued", "started", "started", "completed", "cancelled"];
        let state = *self.random.pick(&states).unwrap();
        let id = self.random.pick(&self.sent).cloned();
        lifecycle(id.as_deref().unwrap_or("nobody's"), state)
    }

    fn result(&mut self) -> String {
        self.result = true;
        match self.random.below(4) {
            0 => RESULT.to_owned(),
            1 => result_for(&["nobody's"]),
            _ => {
                let (one, other) =
                    (self.random.pick(&self.sent).cloned(), self.random.pick(&self.sent).cloned());
                let ids: Vec<&str> = [&one, &other].into_iter().flatten().map(|id| &**id).collect();
                result_for(&ids)
            }
        }
    }

    /// A response to an operation, possibly a second one.
    fn response(&mut self) -> String {
        let id = self.random.pick(&self.written).cloned();
        let id = id.unwrap_or_else(|| "req_99_00000000".to_owned());
        match self.random.below(4) {
            0 => failure(&id, "no"),
            1 => format!(
                r#"{{"type":"control_response","request_id":"{id}","response":{{"subtype":7}}}}"#
            ),
            2 => success(&id, r#"{"session_state":"running"}"#),
            _ => success(&id, "{}"),
        }
    }

    fn random_request(&mut self) {
        let id = format!("cli-{}", self.requests.len());
        let (line, decision) = match self.random.below(12) {
            0..=2 => (hook(&id, "hook_0"), true),
            3..=4 => (hook(&id, "hook_1"), true),
            5..=6 => (permission(&id), self.plan.permissions),
            7 => (hook(&id, "hook_9"), false),
            8 => (request(&id, r#""subtype":"brand_new""#), false),
            9 => (request(&id, r#""subtype":"hook_callback","callback_id":"hook_1""#), false),
            10 => {
                let state = r#""subtype":"elicitation","mcp_server_name":"s""#;
                (request(&id, state), self.plan.elicitation)
            }
            _ => (
                request(
                    &id,
                    r#""subtype":"mcp_message","server_name":"calc","message":{"id":1,"method":"x"}"#,
                ),
                false,
            ),
        };
        let (open, full) = (self.accepts_requests(), self.is_full());
        self.requests.insert(id.clone(), RequestState::default());
        self.handle(Event::Line(line.into()));
        let state = self.requests[&id];
        if !open {
            assert!(
                state.responses == 0 && !state.run,
                "{id} was served although requests are not accepted"
            );
        } else if decision && full {
            let denied = state.responses == 1 && !state.approved && !state.run;
            assert!(denied, "{id} was not denied under overload");
        } else if decision {
            assert_eq!(state.responses, 0, "{id} was denied although there was room");
        }
    }

    fn cancel_request(&mut self) {
        let ids: Vec<String> = self.requests.keys().cloned().collect();
        let id = self.random.pick(&ids).cloned().unwrap_or_else(|| "never".to_owned());
        if let Some(state) = self.requests.get_mut(&id) {
            state.cancelled = true;
        }
        self.handle(Event::Line(cancel(&id).into()));
    }

    fn random_oversized_line(&mut self) {
        let long = "x".repeat(3_000);
        let line = match self.random.below(4) {
            0 => {
                let id = self.random.pick(&self.written).cloned().unwrap_or_default();
                success(&id, &format!("\"{long}\""))
            }
            1 => {
                self.result = true;
                format!(r#"{{"type":"result","result":"{long}"}}"#)
            }
            2 => {
                let id = format!("cli-{}", self.requests.len());
                self.requests.insert(id.clone(), RequestState::default());
                request(&id, &format!(r#""subtype":"hook_callback","x":"{long}""#))
            }
            _ => format!(r#"{{"type":"assistant","x":"{long}"}}"#),
        };
        self.handle(oversized(&line));
    }

    fn random_callback_end(&mut self) {
        let keys: Vec<u64> = self.runs.keys().copied().collect();
        let key = self.random.pick(&keys).copied().unwrap_or(77);
        let outcome = match self.random.below(4) {
            0 => CallbackOutcome::Failed("oh".to_owned()),
            1 => CallbackOutcome::Aborted,
            _ => CallbackOutcome::Response(Json::from_text(r#"{"by":"callback"}"#).unwrap()),
        };
        self.end_callback(key, outcome);
    }

    /// Ends a callback, possibly one that has already ended, which the machine must ignore.
    fn end_callback(&mut self, key: u64, outcome: CallbackOutcome) {
        if let Some(run) = self.runs.get_mut(&key) {
            run.done = true;
        }
        self.handle(Event::CallbackDone { key: CallbackKey(key), outcome });
    }

    fn random_command(&mut self) {
        let number = u64::try_from(self.waiters.len()).unwrap();
        let waiter = Waiter(number);
        let call = match self.random.below(40) {
            0..=13 => CommandKind::Send,
            14..=27 => CommandKind::Request,
            28..=29 => CommandKind::EndInput,
            30..=31 => return self.handle(Event::Stop),
            _ => return self.forget_command(),
        };
        self.waiters.insert(number, Command { call, completed: false, forgotten: false });
        let event = match call {
            CommandKind::Send => {
                let id = format!("m-{}", self.sent.len());
                self.sent.push(id.clone());
                Event::Send { waiter, message: message(&id) }
            }
            CommandKind::Request => {
                let request = if self.random.one_in(5) { rewind() } else { interrupt() };
                let timeout = Duration::from_millis(self.random.below(60_000));
                Event::Request { waiter, request, timeout }
            }
            CommandKind::EndInput => Event::EndInput(waiter),
        };
        self.handle(event);
    }

    fn forget_command(&mut self) {
        let numbers: Vec<u64> = self.waiters.keys().copied().collect();
        let Some(number) = self.random.pick(&numbers).copied() else { return };
        if let Some(waits) = self.waiters.get_mut(&number) {
            waits.forgotten = true;
        }
        self.handle(Event::Forget(Waiter(number)));
    }

    fn advance_time(&mut self) {
        let jump = match self.random.below(4) {
            0 => Duration::from_millis(self.random.below(100_000)),
            1 => Duration::from_millis(self.random.below(200)),
            _ => self.machine.wake_at().map_or(Duration::ZERO, |at| at.saturating_sub(self.now)),
        };
        self.tick_after(jump);
    }

    fn tick_after(&mut self, jump: Duration) {
        self.now += jump;
        self.handle(Event::Tick);
        let next = self.machine.wake_at();
        // Each step of a shutdown has a grace period that starts with the step.
        assert!(next.is_none_or(|next| next > self.now), "deadline without an effect at {next:?}");
    }

    fn write_bytes(&mut self) {
        if self.unwritten > 0 && !self.stdin_broken {
            let max = u64::try_from(self.unwritten).unwrap();
            let bytes = usize::try_from(1 + self.random.below(max)).unwrap();
            self.unwritten -= bytes;
            self.handle(Event::Written(bytes));
        }
    }

    fn break_stdin(&mut self) {
        self.stdin_broken = true;
        self.handle(Event::WriteFailed("broken pipe".to_owned()));
    }

    fn end_stdout(&mut self) {
        if !self.eof && self.random.one_in(3) {
            let last = *self.random.pick(&["half", RESULT, ANSWER]).unwrap();
            self.result |= last == RESULT;
            self.handle(Event::LastLine(Bytes::from_static(last.as_bytes())));
        }
        self.eof = true;
        self.handle(Event::StdoutEnded(None));
    }

    fn exit_process(&mut self) {
        self.exited = true;
        let exit = *self.random.pick(&[Exit::Code(0), Exit::Code(1), Exit::Signal(9)]).unwrap();
        self.handle(Event::Exited(exit));
    }

    /// Ends all callbacks and checks that every request has a response, unless it was cancelled or the
    /// responses could not be written.
    fn end_all_callbacks(&mut self) {
        while let Some(key) = self.runs.iter().find(|(_, run)| !run.done).map(|(key, _)| *key) {
            self.end_callback(key, CallbackOutcome::Aborted);
        }
        if self.accepts_requests() {
            for (id, state) in &self.requests {
                assert!(state.cancelled || state.responses == 1, "{id} was not answered");
            }
        }
    }

    fn end_run(&mut self) {
        if self.random.one_in(2) {
            self.handle(Event::Stop);
        }
        let output_first = self.random.one_in(2);
        if output_first && !self.random.one_in(4) {
            self.end_stdout();
        }
        if !self.exited {
            self.exit_process();
        }
        for _ in 0..100 {
            if let Some(at) = self.machine.wake_at() {
                self.tick_after(at.saturating_sub(self.now));
            }
        }
        assert!(self.end.is_some(), "the process has exited but the run has not ended");
    }
}

/// Creates a plan with small limits, so that they are reached.
pub(crate) fn plan(random: &mut Choices) -> Plan {
    let run = if random.one_in(3) {
        let prompt = (!random.one_in(4)).then(|| message("prompt"));
        RunMode::Query { prompt, limits: QueryLimits::default() }
    } else {
        RunMode::Session
    };
    let mut plan = Plan::new(run);
    if random.one_in(4) {
        plan.initialize = None;
    }
    let limit = Duration::from_millis(1 + random.below(60_000));
    plan.hooks.insert("hook_0", HookPlan::new("PreToolUse", limit, false));
    plan.hooks.insert("hook_1", HookPlan::new("PreToolUse", limit, true));
    plan.permissions = !random.one_in(4);
    plan.elicitation = random.one_in(2);
    plan.permission_timeout = random.one_in(2).then_some(limit);
    plan.file_checkpointing = random.one_in(2);
    plan.resumes = random.one_in(2);
    let limits = &mut plan.limits;
    limits.waiting_operations = 3;
    limits.pending_operations = 5;
    limits.running_callbacks = 2;
    limits.waiting_callbacks = 2;
    limits.unwritten_bytes = 300;
    if random.one_in(4) {
        limits.cancel_grace = Duration::ZERO;
    }
    plan
}

fn rewind() -> HostRequest {
    let request = r#"{"subtype":"rewind_files","user_message_id":"m"}"#;
    Json::from_text(request).unwrap().deserialize().unwrap()
}
