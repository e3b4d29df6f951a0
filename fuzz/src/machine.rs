//! The session machine with any sequence of events. Half of the inputs choose among what a CLI and a host could do, and
//! are checked against a model; the others are arbitrary lines.

use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{CallbackKey, CallbackOutcome, Effect, Event, Machine, Waiter};
use claude_wire::{Exit, Frame, Framer, Json};
use session_harness::{interrupt, message};
use session_model::{Choices, Model, plan};

use super::input::Input;

#[allow(dead_code, reason = "the tests of the machine need more of it")]
#[path = "../../crates/claude-agent-core/tests/it/session_harness.rs"]
mod session_harness;
#[allow(dead_code, reason = "the tests of the machine need more of it")]
#[path = "../../crates/claude-agent-core/tests/it/session_model.rs"]
mod session_model;

/// The maximum number of effects of one event, without those that end the run.
const MAX_EFFECTS: usize = 10_000;

pub(super) fn run(data: &[u8]) {
    match data.split_first() {
        Some((b'w', choices)) => Model::new(Choices::given(choices)).play(),
        Some((_, lines)) => RandomSession::new(lines).play(),
        None => {}
    }
}

/// A machine that handles arbitrary events.
struct RandomSession<'a> {
    input: Input<'a>,
    machine: Machine,
    now: Duration,
    callbacks: Vec<CallbackKey>,
    unwritten: usize,
    closed: bool,
    ended: bool,
}

impl<'a> RandomSession<'a> {
    fn new(data: &'a [u8]) -> Self {
        let mut input = Input::new(data);
        let plan = plan(&mut Choices::given(input.bytes(24)));
        Self {
            input,
            machine: Machine::new(plan),
            now: Duration::ZERO,
            callbacks: Vec::new(),
            unwritten: 0,
            closed: false,
            ended: false,
        }
    }

    fn play(mut self) {
        self.effects();
        let mut waiter = 0;
        while !self.input.is_empty() {
            waiter += 1;
            if let Some(event) = self.event(Waiter(waiter)) {
                self.handle(event);
            }
        }
        self.handle(Event::StdoutEnded(None));
        self.handle(Event::Exited(Exit::Code(0)));
        for _ in 0..300 {
            if let Some(at) = self.machine.wake_at() {
                self.now = self.now.max(at);
                self.handle(Event::Tick);
            }
        }
        assert!(self.ended, "the process has exited but the run has not ended");
    }

    fn event(&mut self, waiter: Waiter) -> Option<Event> {
        Some(match self.input.byte() % 16 {
            0..=7 => return self.line(),
            8 => Event::Send { waiter, message: message(&format!("m-{}", waiter.0)) },
            9 => {
                let timeout = Duration::from_millis(u64::from(self.input.byte()) * 100);
                Event::Request { waiter, request: interrupt(), timeout }
            }
            10 => Event::Forget(Waiter(self.input.byte().into())),
            11 => {
                let key = self.callbacks.pop()?;
                let outcome = match self.input.byte() % 3 {
                    0 => CallbackOutcome::Aborted,
                    1 => CallbackOutcome::Failed(self.input.text()),
                    _ => CallbackOutcome::Response(Json::from(&*self.input.text())),
                };
                Event::CallbackDone { key, outcome }
            }
            12 => {
                let written = usize::from(self.input.byte()).min(self.unwritten);
                self.unwritten -= written;
                Event::Written(written)
            }
            13 => {
                self.now += Duration::from_millis(u64::from(self.input.byte()) * 500);
                Event::Tick
            }
            14 if self.input.one_in(4) => Event::EndInput(waiter),
            15 if self.input.one_in(4) => Event::Stop,
            _ => Event::Tick,
        })
    }

    /// Returns a line as the framer returns it: not empty, without line breaks, cut if it is too long.
    fn line(&mut self) -> Option<Event> {
        let mut framer = Framer::new(1024);
        framer.push(self.input.chunk());
        framer.push(b"\n");
        match framer.next_frame()? {
            Frame::Line(line) => Some(Event::Line(line)),
            Frame::Oversized(oversized) => Some(Event::Oversized(oversized)),
        }
    }

    fn handle(&mut self, event: Event) {
        self.machine.handle(event, self.now);
        self.effects();
    }

    fn effects(&mut self) {
        for count in 0.. {
            let Some(effect) = self.machine.next_effect() else { break };
            assert!(count < MAX_EFFECTS, "too many effects of one event");
            match effect {
                Effect::Write(line) => self.check_write(&line),
                Effect::CloseStdin => self.closed = true,
                Effect::RunCallback { key, .. } => self.callbacks.push(key),
                Effect::End(_) => assert!(!std::mem::replace(&mut self.ended, true)),
                _ => {}
            }
        }
    }

    fn check_write(&mut self, line: &Bytes) {
        assert!(!self.closed, "written after stdin was closed");
        self.unwritten += line.len();
        let (last, text) = line.split_last().expect("a line ends with a newline");
        assert!(*last == b'\n' && !text.contains(&b'\n'));
        assert!(serde_json::from_slice::<serde_json::Value>(text).is_ok(), "{line:?}");
    }
}
