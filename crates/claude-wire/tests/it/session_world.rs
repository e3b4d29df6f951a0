//! A model of what the machine may never do, whatever happens in whatever order. The fuzz target
//! `machine` plays it too.

#[path = "session_choices.rs"]
mod choices;
#[path = "session_promises.rs"]
mod promises;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use claude_wire::Json;
use claude_wire::control::HostRequest;
use claude_wire::session::{
    CallKey, CallOutcome, Effect, Event, Exit, HookPlan, Machine, Plan, QueryLimits, Run, Settled,
    State, Waiter,
};

pub(crate) use choices::Choices;

use super::session_play::{
    ANSWER, INIT, RESULT, cancel, failure, hook, interrupt, lifecycle, message, oversized,
    permission, request, result_for, session_state, shown, success,
};

const EVENTS_OF_A_CASE: u64 = 60;

/// A request of the CLI.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    answers: u32,
    approved: bool,
    withdrawn: bool,
    run: bool,
}

/// A callback that was run.
#[derive(Clone, Debug, Default)]
struct Ran {
    request: String,
    has_limit: bool,
    cancels: u32,
    aborts: u32,
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Send,
    Ask,
    EndInput,
}

#[derive(Clone, Copy, Debug)]
struct Waits {
    call: Call,
    settled: bool,
    forgotten: bool,
}

/// Kept as it is, because writing it down takes longer than the machine does.
pub(crate) enum Logged {
    Event(Duration, Event),
    Effect(Effect),
}

impl Logged {
    pub(crate) fn shown(&self) -> String {
        let text = match self {
            Self::Event(now, event) => format!("{now:?} {event:?}"),
            Self::Effect(effect) => format!("    {}", shown(effect)),
        };
        text.chars().take(300).collect()
    }
}

/// A machine, and what may be expected of it.
pub(crate) struct World {
    random: Choices,
    machine: Machine,
    plan: Plan,
    now: Duration,
    pub(crate) events: u64,
    /// The last things that happened and were done.
    pub(crate) log: VecDeque<Logged>,
    requests: BTreeMap<String, Asked>,
    runs: BTreeMap<u64, Ran>,
    waiters: BTreeMap<u64, Waits>,
    /// Operations that the machine wrote.
    written: Vec<String>,
    sent: Vec<String>,
    turns_started: BTreeSet<String>,
    turns_ended: BTreeSet<String>,
    unwritten: usize,
    running: bool,
    stopping: bool,
    failed: bool,
    input_closed: bool,
    input_broken: bool,
    terminated: bool,
    killed: bool,
    exited: bool,
    eof: bool,
    /// Whether a result came. After it a query gives its handshake up without an error.
    result: bool,
    pub(crate) end: Option<String>,
}

impl World {
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
            unwritten: 0,
            running: false,
            stopping: false,
            failed: false,
            input_closed: false,
            input_broken: false,
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
        for _ in 0..EVENTS_OF_A_CASE {
            self.something_happens();
        }
        if self.random.one_in(2) {
            self.all_callbacks_end();
        }
        self.everything_ends();
        for _ in 0..3 {
            self.something_happens();
        }
    }

    fn happens(&mut self, event: Event) {
        self.events += 1;
        self.note(Logged::Event(self.now, event.clone()));
        let was_over = self.end.is_some();
        self.machine.handle(event, self.now);
        self.check_effects();
        if !was_over {
            self.check_state();
        }
    }

    fn note(&mut self, entry: Logged) {
        if self.log.len() == 60 {
            self.log.pop_front();
        }
        self.log.push_back(entry);
    }
}

// What happens.
impl World {
    fn something_happens(&mut self) {
        match self.random.below(100) {
            0..=44 if !self.eof => self.a_line_comes(),
            45..=46 if !self.eof => self.a_long_line_comes(),
            47..=59 => self.a_callback_ends(),
            60..=79 => self.the_host_asks(),
            80..=89 => self.time_passes(),
            90..=96 => self.bytes_are_written(),
            97 if self.random.one_in(4) => self.the_pipe_breaks(),
            98 if self.random.one_in(4) => self.output_ends(),
            99 if self.random.one_in(4) => self.process_ends(),
            _ => self.happens(Event::Tick),
        }
    }

    fn a_line_comes(&mut self) {
        let line = match self.random.below(20) {
            0 => success(INIT, r#"{"hook_on_failure_supported":true}"#),
            1 if self.random.one_in(6) => failure(INIT, "no"),
            1..=2 => ANSWER.to_owned(),
            3 => (*self.random.pick(&["", "7", "{", "garbage", "{}"]).unwrap()).to_owned(),
            4 => session_state(self.random.pick(&["running", "idle", "requires_action"]).unwrap()),
            5..=6 => self.lifecycle(),
            7 => self.result(),
            8..=10 => self.answer(),
            11..=12 => return self.a_request_is_withdrawn(),
            13 => r#"{"type":"system","subtype":"init","session_id":"s"}"#.to_owned(),
            14 => r#"{"type":"control_response","response":{"subtype":"success"}}"#.to_owned(),
            15 => r#"{"type":"control_request","request":{"subtype":"new"}}"#.to_owned(),
            _ => return self.the_cli_asks(),
        };
        if !line.is_empty() {
            self.happens(Event::Line(line.into()));
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

    /// An answer to some operation, perhaps a second one.
    fn answer(&mut self) -> String {
        let id = self.random.pick(&self.written).cloned();
        let id = id.unwrap_or_else(|| "req_99_00000000".to_owned());
        match self.random.below(4) {
            0 => failure(&id, "no"),
            1 => format!(
                r#"{{"type":"control_response","request_id":"{id}","response":{{"subtype":7}}}}"#
            ),
            _ => success(&id, "{}"),
        }
    }

    fn the_cli_asks(&mut self) {
        let id = format!("cli-{}", self.requests.len());
        let (line, decision) = match self.random.below(12) {
            0..=2 => (hook(&id, "hook_0"), true),
            3..=4 => (hook(&id, "hook_1"), true),
            5..=6 => (permission(&id), self.plan.permissions),
            7 => (hook(&id, "hook_9"), false),
            8 => (request(&id, r#""subtype":"brand_new""#), false),
            9 => (request(&id, r#""subtype":"hook_callback","callback_id":"hook_1""#), false),
            10 => {
                let asked = r#""subtype":"elicitation","mcp_server_name":"s""#;
                (request(&id, asked), self.plan.elicitation)
            }
            _ => (
                request(
                    &id,
                    r#""subtype":"mcp_message","server_name":"calc","message":{"id":1,"method":"x"}"#,
                ),
                false,
            ),
        };
        let (open, full) = (self.takes_requests(), self.is_full());
        self.requests.insert(id.clone(), Asked::default());
        self.happens(Event::Line(line.into()));
        let asked = self.requests[&id];
        if !open {
            assert!(asked.answers == 0 && !asked.run, "{id} was served although nobody may");
        } else if decision && full {
            let refused = asked.answers == 1 && !asked.approved && !asked.run;
            assert!(refused, "{id} was not refused under overload");
        } else if decision {
            assert_eq!(asked.answers, 0, "{id} was refused although there was room");
        }
    }

    fn a_request_is_withdrawn(&mut self) {
        let ids: Vec<String> = self.requests.keys().cloned().collect();
        let id = self.random.pick(&ids).cloned().unwrap_or_else(|| "never".to_owned());
        if let Some(asked) = self.requests.get_mut(&id) {
            asked.withdrawn = true;
        }
        self.happens(Event::Line(cancel(&id).into()));
    }

    fn a_long_line_comes(&mut self) {
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
                self.requests.insert(id.clone(), Asked::default());
                request(&id, &format!(r#""subtype":"hook_callback","x":"{long}""#))
            }
            _ => format!(r#"{{"type":"assistant","x":"{long}"}}"#),
        };
        self.happens(oversized(&line));
    }

    fn a_callback_ends(&mut self) {
        let keys: Vec<u64> = self.runs.keys().copied().collect();
        let key = self.random.pick(&keys).copied().unwrap_or(77);
        let outcome = match self.random.below(4) {
            0 => CallOutcome::Failed("oh".to_owned()),
            1 => CallOutcome::Gone,
            _ => CallOutcome::Answer(Json::from_text(r#"{"by":"callback"}"#).unwrap()),
        };
        self.ends_callback(key, outcome);
    }

    /// Also one that has ended already: the machine must not be confused by it.
    fn ends_callback(&mut self, key: u64, outcome: CallOutcome) {
        if let Some(run) = self.runs.get_mut(&key) {
            run.done = true;
        }
        self.happens(Event::CallbackDone { key: CallKey(key), outcome });
    }

    fn the_host_asks(&mut self) {
        let number = u64::try_from(self.waiters.len()).unwrap();
        let waiter = Waiter(number);
        let call = match self.random.below(40) {
            0..=13 => Call::Send,
            14..=27 => Call::Ask,
            28..=29 => Call::EndInput,
            30..=31 => return self.happens(Event::Stop),
            _ => return self.the_host_forgets(),
        };
        self.waiters.insert(number, Waits { call, settled: false, forgotten: false });
        let event = match call {
            Call::Send => {
                let id = format!("m-{}", self.sent.len());
                self.sent.push(id.clone());
                Event::Send { waiter, message: message(&id) }
            }
            Call::Ask => {
                let request = if self.random.one_in(5) { rewind() } else { interrupt() };
                let limit = Duration::from_millis(self.random.below(60_000));
                Event::Ask { waiter, request, limit }
            }
            Call::EndInput => Event::EndInput(waiter),
        };
        self.happens(event);
    }

    fn the_host_forgets(&mut self) {
        let numbers: Vec<u64> = self.waiters.keys().copied().collect();
        let Some(number) = self.random.pick(&numbers).copied() else { return };
        if let Some(waits) = self.waiters.get_mut(&number) {
            waits.forgotten = true;
        }
        self.happens(Event::Forget(Waiter(number)));
    }

    fn time_passes(&mut self) {
        let jump = match self.random.below(4) {
            0 => Duration::from_millis(self.random.below(100_000)),
            1 => Duration::from_millis(self.random.below(200)),
            _ => self.machine.wake_at().map_or(Duration::ZERO, |at| at.saturating_sub(self.now)),
        };
        self.tick_after(jump);
    }

    fn tick_after(&mut self, jump: Duration) {
        self.now += jump;
        self.happens(Event::Tick);
        let next = self.machine.wake_at();
        // A stop goes on step by step, and each step has its time from now on.
        assert!(next.is_none_or(|next| next > self.now), "woken for nothing at {next:?}");
    }

    fn bytes_are_written(&mut self) {
        if self.unwritten > 0 && !self.input_broken {
            let most = u64::try_from(self.unwritten).unwrap();
            let bytes = usize::try_from(1 + self.random.below(most)).unwrap();
            self.unwritten -= bytes;
            self.happens(Event::Written(bytes));
        }
    }

    fn the_pipe_breaks(&mut self) {
        self.input_broken = true;
        self.happens(Event::WriteFailed("broken pipe".to_owned()));
    }

    fn output_ends(&mut self) {
        if !self.eof && self.random.one_in(3) {
            let last = *self.random.pick(&["half", RESULT, ANSWER]).unwrap();
            self.result |= last == RESULT;
            self.happens(Event::LastLine(Bytes::from_static(last.as_bytes())));
        }
        self.eof = true;
        self.happens(Event::OutputEnded(None));
    }

    fn process_ends(&mut self) {
        self.exited = true;
        let exit = *self.random.pick(&[Exit::Code(0), Exit::Code(1), Exit::Signal(9)]).unwrap();
        self.happens(Event::Exited(exit));
    }

    /// When all callbacks have ended, every request is answered, unless it was withdrawn or the
    /// answers could not be written.
    fn all_callbacks_end(&mut self) {
        while let Some(key) = self.runs.iter().find(|(_, run)| !run.done).map(|(key, _)| *key) {
            self.ends_callback(key, CallOutcome::Gone);
        }
        if self.takes_requests() {
            for (id, asked) in &self.requests {
                assert!(asked.withdrawn || asked.answers == 1, "{id} was not answered");
            }
        }
    }

    fn everything_ends(&mut self) {
        if self.random.one_in(2) {
            self.happens(Event::Stop);
        }
        let output_first = self.random.one_in(2);
        if output_first && !self.random.one_in(4) {
            self.output_ends();
        }
        if !self.exited {
            self.process_ends();
        }
        for _ in 0..100 {
            if let Some(at) = self.machine.wake_at() {
                self.tick_after(at.saturating_sub(self.now));
            }
        }
        assert!(self.end.is_some(), "the process is gone and the run goes on");
    }
}

/// Small limits, so that they are reached.
pub(crate) fn plan(random: &mut Choices) -> Plan {
    let run = if random.one_in(3) {
        let prompt = (!random.one_in(4)).then(|| message("prompt"));
        Run::Query { prompt, limits: QueryLimits::default() }
    } else {
        Run::Session
    };
    let mut plan = Plan::new(run);
    if random.one_in(4) {
        plan.initialize = None;
    }
    let limit = Duration::from_millis(1 + random.below(60_000));
    plan.hooks.insert("hook_0".into(), HookPlan::new("PreToolUse", limit, false));
    plan.hooks.insert("hook_1".into(), HookPlan::new("PreToolUse", limit, true));
    plan.permissions = !random.one_in(4);
    plan.elicitation = random.one_in(2);
    plan.permission_limit = random.one_in(2).then_some(limit);
    plan.file_checkpointing = random.one_in(2);
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
