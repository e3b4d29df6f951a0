//! The turns of user messages: which are open, and when they start and end.

use std::collections::VecDeque;
use std::sync::Arc;

use claude_wire::id::MessageId;
use claude_wire::{Cost, Envelope};

use super::event::{Effect, OutgoingMessage, TurnEnd};
use super::outbox::Outbox;

/// The open turns of a session, oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: VecDeque<Turn>,
    /// The message IDs that the host chose, sorted. Only those can be used twice.
    chosen_ids: Vec<MessageId>,
    /// Whether the CLI reports message IDs. If it does, a result without one ends a turn that the CLI
    /// started by itself.
    reports_message_ids: bool,
    activity: Activity,
    /// Whether the CLI has started a turn whose result is pending.
    in_turn: bool,
    replay: Replay,
}

/// Whether the CLI will start a turn by itself to replay a deferred tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Replay {
    /// No turn of the CLI is a replay: the session is new, or the replay has started.
    #[default]
    Unexpected,
    /// The session is resumed, and the handshake is pending.
    Possible,
    /// The response to the handshake has announced a replay that has not started yet: the CLI lists the tools of
    /// in-process servers first.
    Announced,
}

/// The state that the CLI reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Activity {
    /// The CLI reports no state.
    #[default]
    Unreported,
    Idle,
    Running,
    /// The turn has its result; the idle state or another turn follows.
    Ending,
}

#[derive(Debug)]
struct Turn {
    id: MessageId,
    written: bool,
    started: bool,
    /// The last result since the start of the turn, if it did not name the message.
    result: Option<ResultSummary>,
    /// Whether the CLI has completed the message and its result is pending.
    completed: bool,
    /// Whether the CLI started the turn by itself, to replay a deferred tool call.
    is_replay: bool,
}

/// The facts about a result that the end of a turn reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResultSummary {
    /// Whether the line was too long to be delivered.
    pub(super) oversized: bool,
    pub(super) cost: Option<Cost>,
}

impl Turns {
    /// Creates an empty list. A replay can be expected only when a session is resumed.
    pub(super) fn new(expects_replay: bool) -> Self {
        let replay = if expects_replay { Replay::Possible } else { Replay::Unexpected };
        Self { replay, ..Self::default() }
    }

    /// Records that the handshake is complete or has failed. A replay that has not started before follows only if
    /// the CLI reports that the session is running.
    pub(super) fn handshake_ended(&mut self, is_running: bool, out: &mut Outbox) {
        if is_running && self.replay == Replay::Possible {
            self.replay = Replay::Announced;
        }
        if self.replay == Replay::Possible {
            self.expect_no_replay(out);
        }
    }

    fn expect_no_replay(&mut self, out: &mut Outbox) {
        self.replay = Replay::Unexpected;
        out.push(Effect::NoReplay);
    }

    /// Gives up an announced replay when the CLI is idle again, or has sent the result of another turn.
    fn end_announcement(&mut self, out: &mut Outbox) {
        if self.replay == Replay::Announced {
            self.expect_no_replay(out);
        }
    }

    /// Adds a turn and returns `true`, unless a message with its ID was sent before.
    pub(super) fn add(&mut self, message: &OutgoingMessage) -> bool {
        let id = message.id.clone();
        if self.open.iter().any(|turn| turn.id == id) {
            return false;
        }
        match self.chosen_ids.binary_search(&id) {
            Ok(_) => return false,
            Err(index) if message.chosen_id => self.chosen_ids.insert(index, id.clone()),
            Err(_) => {}
        }
        self.open.push_back(Turn::new(id));
        true
    }

    pub(super) fn written(&mut self, id: &MessageId) {
        if let Some(turn) = self.open.iter_mut().find(|turn| turn.id == *id && !turn.written) {
            turn.written = true;
        }
    }

    /// Removes the turn of a message that was not written.
    pub(super) fn withdraw(&mut self, id: &MessageId) {
        if let Some(index) = self.open.iter().position(|turn| turn.id == *id && !turn.written) {
            drop(self.open.remove(index));
            self.chosen_ids.retain(|chosen| chosen != id);
        }
    }

    pub(super) fn activity(&self) -> Activity {
        self.activity
    }

    /// Returns whether a turn is running or about to start.
    pub(super) fn has_running(&self) -> bool {
        self.activity == Activity::Running || self.open.iter().any(|turn| turn.written)
    }

    /// Returns whether a turn of a user message has started and not ended.
    pub(super) fn has_started(&self) -> bool {
        self.open.iter().any(|turn| turn.started)
    }

    /// Returns whether the CLI is about to become idle, unless it starts a turn by itself.
    pub(super) fn is_ending(&self) -> bool {
        self.activity == Activity::Ending && !self.has_running()
    }

    /// Starts turns, before a message is delivered.
    pub(super) fn before_delivery(
        &mut self,
        envelope: &Envelope<'_>,
        oversized: bool,
        out: &mut Outbox,
    ) {
        self.reports_message_ids |=
            envelope.command_uuid.is_some() || !envelope.user_messages.is_empty();
        self.note_activity(envelope);
        match (&*envelope.kind, envelope.subtype.as_deref()) {
            ("command_lifecycle", _) if envelope.state.as_deref() == Some("started") => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                self.start(|turn| turn.id == *id, out);
                self.start_replay(id, out);
            }
            ("system", Some("init")) => {
                self.in_turn = true;
                // A CLI that does not report message IDs reports at least the start of a turn.
                if !self.reports_message_ids {
                    self.start_oldest(out);
                }
            }
            // A result belongs to its turn, so the turn starts before the result at the latest.
            ("result", _) => self.start_ending_turns(envelope, oversized, out),
            _ => {}
        }
    }

    /// Adds the turn in which the CLI replays a deferred tool call: the first one that no message of the host
    /// started.
    fn start_replay(&mut self, id: &str, out: &mut Outbox) {
        let id = MessageId::from(id);
        let is_known = id.as_str().is_empty()
            || self.open.iter().any(|turn| turn.id == id)
            || self.chosen_ids.binary_search(&id).is_ok();
        if self.replay == Replay::Unexpected || is_known {
            return;
        }
        self.replay = Replay::Unexpected;
        let turn = Turn { written: true, started: true, is_replay: true, ..Turn::new(id.clone()) };
        self.open.push_front(turn);
        out.push(Effect::ReplayStarted(id));
    }

    /// Updates the state, but not to `Ending` if the CLI reports no states: nothing would end it.
    fn note_activity(&mut self, envelope: &Envelope<'_>) {
        self.activity = match (&*envelope.kind, envelope.subtype.as_deref()) {
            ("system", Some("session_state_changed")) => match envelope.state.as_deref() {
                Some("idle") => Activity::Idle,
                _ => Activity::Running,
            },
            ("result", _) if self.activity == Activity::Running => Activity::Ending,
            // No state announces a turn that follows immediately.
            ("system", Some("init")) if self.activity == Activity::Ending => Activity::Running,
            _ => return,
        };
    }

    /// Ends turns, after a message was delivered.
    pub(super) fn after_delivery(
        &mut self,
        envelope: &Envelope<'_>,
        summary: ResultSummary,
        out: &mut Outbox,
    ) {
        match &*envelope.kind {
            "command_lifecycle" => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                match envelope.state.as_deref() {
                    Some("completed") => self.on_completed(id, out),
                    Some("cancelled") => self.on_cancelled(id, out),
                    _ => {}
                }
            }
            "system" if envelope.subtype.as_deref() == Some("session_state_changed") => {
                self.end_completed_if_idle(out);
                if self.activity == Activity::Idle {
                    self.end_announcement(out);
                }
            }
            "result" => {
                self.on_result(envelope, summary, out);
                self.end_announcement(out);
            }
            _ => {}
        }
    }

    /// Handles that the CLI has completed a message. Its result precedes this, unless the message joined
    /// the turn of another one: then the result follows. A message that is already part of the
    /// conversation completes without a turn.
    fn on_completed(&mut self, id: &str, out: &mut Outbox) {
        let Some(index) = self.open.iter().position(|turn| turn.id == *id) else { return };
        let is_busy = self.activity == Activity::Running
            || self.in_turn
            || self.open.iter().any(|turn| turn.started);
        match self.open[index].result {
            Some(summary) => self.end_at(index, unnamed_end(summary), out),
            None if is_busy => self.open[index].completed = true,
            None => self.end_at(index, TurnEnd::WithoutResult, out),
        }
    }

    /// Handles that the CLI has cancelled a message. After an interrupt its result precedes this.
    fn on_cancelled(&mut self, id: &str, out: &mut Outbox) {
        let Some(index) = self.open.iter().position(|turn| turn.id == *id) else { return };
        let end = self.open[index].result.map_or(TurnEnd::Cancelled, unnamed_end);
        self.end_at(index, end, out);
    }

    /// Ends the completed turns when the CLI is idle, because it sends no result for them.
    fn end_completed_if_idle(&mut self, out: &mut Outbox) {
        if self.activity != Activity::Idle {
            return;
        }
        while let Some(index) = self.open.iter().position(|turn| turn.completed) {
            self.end_at(index, TurnEnd::WithoutResult, out);
        }
    }

    fn end_at(&mut self, index: usize, end: TurnEnd, out: &mut Outbox) {
        if let Some(turn) = self.open.remove(index) {
            out.push(Effect::TurnEnded(turn.id, end));
        }
    }

    fn start_ending_turns(&mut self, envelope: &Envelope<'_>, oversized: bool, out: &mut Outbox) {
        for id in self.open_turns_named_by(envelope) {
            self.start(|turn| turn.id == id, out);
        }
        // This is also the result of a turn that was `completed` without being `started`.
        for turn in self.open.iter_mut().filter(|turn| turn.completed) {
            turn.start(out);
        }
        if let Some(index) = self.unnamed_turn(envelope, oversized) {
            self.open[index].start(out);
        }
    }

    fn on_result(&mut self, envelope: &Envelope<'_>, summary: ResultSummary, out: &mut Outbox) {
        if let Some(index) = self.unnamed_turn(envelope, summary.oversized) {
            self.end_at(index, unnamed_end(summary), out);
        }
        let messages: Arc<[MessageId]> = self.open_turns_named_by(envelope).into();
        for id in &*messages {
            if let Some(index) = self.open.iter().position(|turn| turn.id == *id) {
                let ResultSummary { oversized, cost } = summary;
                let messages = messages.clone();
                self.end_at(
                    index,
                    TurnEnd::Result { messages, named: true, oversized, cost, stored: None },
                    out,
                );
            }
        }
        while let Some(index) = self.open.iter().position(|turn| turn.completed) {
            self.end_at(index, unnamed_end(summary), out);
        }
        self.in_turn = false;
        // Some versions name only one of several messages, or none after a local command.
        for turn in self.open.iter_mut().filter(|turn| turn.started) {
            turn.result = Some(summary);
        }
    }

    /// Returns the open turns that a result names, in its order. It may name many other messages.
    fn open_turns_named_by(&self, envelope: &Envelope<'_>) -> Vec<MessageId> {
        if envelope.user_messages.is_empty() {
            return Vec::new();
        }
        let mut open: Vec<&str> = self.open.iter().map(|turn| turn.id.as_str()).collect();
        open.sort_unstable();
        let mut named = Vec::new();
        for name in &envelope.user_messages {
            if let Ok(index) = open.binary_search(&&**name) {
                open.remove(index);
                named.push(MessageId::from(&**name));
            }
        }
        named
    }

    /// Returns the turn that a result ends without naming its message, if it ends one.
    fn unnamed_turn(&self, envelope: &Envelope<'_>, oversized: bool) -> Option<usize> {
        // A replay has no message. Its result names the messages that joined it.
        if let Some(replay) = self.open.iter().position(|turn| turn.is_replay) {
            return Some(replay);
        }
        match (self.reports_message_ids, oversized) {
            _ if !envelope.user_messages.is_empty() => None,
            (false, _) => self.open.iter().position(|turn| turn.written),
            // The IDs may be in the part of the line that was discarded.
            (true, true) => self.open.iter().position(|turn| turn.started),
            (true, false) => None,
        }
    }

    fn start_oldest(&mut self, out: &mut Outbox) {
        if !self.open.iter().any(|turn| turn.started) {
            self.start(|turn| turn.written, out);
        }
    }

    fn start(&mut self, is_match: impl Fn(&Turn) -> bool, out: &mut Outbox) {
        if let Some(turn) = self.open.iter_mut().find(|turn| !turn.started && is_match(turn)) {
            turn.start(out);
        }
    }
}

/// Returns the end of a turn whose result does not name it.
fn unnamed_end(summary: ResultSummary) -> TurnEnd {
    let ResultSummary { oversized, cost } = summary;
    TurnEnd::Result { messages: Arc::default(), named: false, oversized, cost, stored: None }
}

impl Turn {
    fn new(id: MessageId) -> Self {
        let (written, started, completed) = (false, false, false);
        Self { id, written, started, result: None, completed, is_replay: false }
    }

    fn start(&mut self, out: &mut Outbox) {
        if !self.started {
            self.started = true;
            out.push(Effect::TurnStarted(self.id.clone()));
        }
    }
}
