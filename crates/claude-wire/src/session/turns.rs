//! Which user messages the CLI still works on.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::cost::Cost;
use super::event::{Effect, Outgoing, TurnEnd};
use super::outbox::Outbox;
use crate::envelope::Envelope;
use crate::id::MessageId;

/// The turns of a session, oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: VecDeque<Turn>,
    /// The ids that the host chose. Only those can be used twice.
    chosen_ids: BTreeSet<MessageId>,
    /// Whether the CLI says which messages its frames are about. If it does, a result that names
    /// none ends a turn that the CLI began by itself.
    names_messages: bool,
    activity: Activity,
    /// The CLI has begun a turn whose result has not come.
    in_turn: bool,
}

/// What the CLI says of its own state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Activity {
    /// It says nothing.
    #[default]
    Unreported,
    Idle,
    Running,
    /// The turn has its result, but the CLI is not idle yet: that follows, or another turn.
    Ending,
}

#[derive(Debug)]
struct Turn {
    id: MessageId,
    written: bool,
    started: bool,
    /// The last result since it started, if that did not name it.
    result: Option<SeenResult>,
    /// The CLI is done with it, and its result is still to come.
    completed: bool,
}

/// What is known of a result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenResult {
    /// Whether its line was too long to be delivered.
    pub(super) oversized: bool,
    pub(super) cost: Option<Cost>,
}

impl Turns {
    /// Opens a turn, unless a message with its id was sent before.
    pub(super) fn open(&mut self, message: &Outgoing) -> bool {
        let id = message.id.clone();
        let is_used = self.open.iter().any(|turn| turn.id == id) || self.chosen_ids.contains(&id);
        if is_used {
            return false;
        }
        if message.chosen_id {
            self.chosen_ids.insert(id.clone());
        }
        let (written, started, result, completed) = (false, false, None, false);
        self.open.push_back(Turn { id, written, started, result, completed });
        true
    }

    pub(super) fn written(&mut self, id: &MessageId) {
        if let Some(turn) = self.open.iter_mut().find(|turn| turn.id == *id && !turn.written) {
            turn.written = true;
        }
    }

    /// The message was never written.
    pub(super) fn withdraw(&mut self, id: &MessageId) {
        if let Some(place) = self.open.iter().position(|turn| turn.id == *id && !turn.written) {
            drop(self.open.remove(place));
            self.chosen_ids.remove(id);
        }
    }

    pub(super) fn activity(&self) -> Activity {
        self.activity
    }

    /// Whether the CLI works on something, or is about to.
    pub(super) fn any_runs(&self) -> bool {
        self.activity == Activity::Running || self.open.iter().any(|turn| turn.written)
    }

    /// Whether a turn has begun that did not end.
    pub(super) fn any_started(&self) -> bool {
        self.open.iter().any(|turn| turn.started)
    }

    /// Whether the CLI has to do nothing more than become idle, unless it begins a turn by itself.
    pub(super) fn is_ending(&self) -> bool {
        self.activity == Activity::Ending && !self.any_runs()
    }

    /// What a message means for turns that begin, before it is delivered.
    pub(super) fn before(&mut self, envelope: &Envelope<'_>, oversized: bool, out: &mut Outbox) {
        self.names_messages |=
            envelope.command_uuid.is_some() || !envelope.user_messages.is_empty();
        self.note_activity(envelope);
        match (&*envelope.kind, envelope.subtype.as_deref()) {
            ("command_lifecycle", _) if envelope.state.as_deref() == Some("started") => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                self.start(|turn| turn.id == *id, out);
            }
            ("system", Some("init")) => {
                self.in_turn = true;
                // A CLI that names no messages says at least that a turn begins.
                if !self.names_messages {
                    self.start_oldest(out);
                }
            }
            // A result belongs to its turn, so the turn begins before it at the latest.
            ("result", _) => self.start_those_that_end(envelope, oversized, out),
            _ => {}
        }
    }

    /// Without reports of its state nothing would say when a turn is over.
    fn note_activity(&mut self, envelope: &Envelope<'_>) {
        self.activity = match (&*envelope.kind, envelope.subtype.as_deref()) {
            ("system", Some("session_state_changed")) => match envelope.state.as_deref() {
                Some("idle") => Activity::Idle,
                _ => Activity::Running,
            },
            ("result", _) if self.activity == Activity::Running => Activity::Ending,
            // A turn that follows at once is not announced by a state.
            ("system", Some("init")) if self.activity == Activity::Ending => Activity::Running,
            _ => return,
        };
    }

    /// What a message means for turns that end, after it was delivered.
    pub(super) fn after(&mut self, envelope: &Envelope<'_>, seen: SeenResult, out: &mut Outbox) {
        match &*envelope.kind {
            "command_lifecycle" => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                match envelope.state.as_deref() {
                    Some("completed") => self.completed(id, out),
                    Some("cancelled") => self.cancelled(id, out),
                    _ => {}
                }
            }
            "system" if envelope.subtype.as_deref() == Some("session_state_changed") => {
                self.end_completed_if_idle(out);
            }
            "result" => self.result(envelope, seen, out),
            _ => {}
        }
    }

    /// The CLI is done with a message. Its result has come, unless the message joined the turn of
    /// another one; then the result is still to come. A message that the conversation has already
    /// is completed without a turn.
    fn completed(&mut self, id: &str, out: &mut Outbox) {
        let Some(place) = self.open.iter().position(|turn| turn.id == *id) else { return };
        let works = self.activity == Activity::Running
            || self.in_turn
            || self.open.iter().any(|turn| turn.started);
        match self.open[place].result {
            Some(seen) => self.end_at(place, unnamed_end(seen), out),
            None if works => self.open[place].completed = true,
            None => self.end_at(place, TurnEnd::WithoutResult, out),
        }
    }

    /// The CLI dropped a message. After an interrupt its result comes first.
    fn cancelled(&mut self, id: &str, out: &mut Outbox) {
        let Some(place) = self.open.iter().position(|turn| turn.id == *id) else { return };
        let end = self.open[place].result.map_or(TurnEnd::Cancelled, unnamed_end);
        self.end_at(place, end, out);
    }

    /// A CLI that is idle sends no result for what it has completed.
    fn end_completed_if_idle(&mut self, out: &mut Outbox) {
        if self.activity != Activity::Idle {
            return;
        }
        while let Some(place) = self.open.iter().position(|turn| turn.completed) {
            self.end_at(place, TurnEnd::WithoutResult, out);
        }
    }

    fn end_at(&mut self, place: usize, end: TurnEnd, out: &mut Outbox) {
        if let Some(turn) = self.open.remove(place) {
            out.push(Effect::TurnEnded(turn.id, end));
        }
    }

    fn start_those_that_end(&mut self, envelope: &Envelope<'_>, oversized: bool, out: &mut Outbox) {
        for id in self.open_turns_named_by(envelope) {
            self.start(|turn| turn.id == id, out);
        }
        // The result of a turn that was `completed` is this one, also if it was never `started`.
        for turn in self.open.iter_mut().filter(|turn| turn.completed) {
            turn.start(out);
        }
        if let Some(place) = self.ended_without_a_name(envelope, oversized) {
            self.open[place].start(out);
        }
    }

    fn result(&mut self, envelope: &Envelope<'_>, seen: SeenResult, out: &mut Outbox) {
        if let Some(place) = self.ended_without_a_name(envelope, seen.oversized) {
            self.end_at(place, unnamed_end(seen), out);
        }
        let messages: Arc<[MessageId]> = self.open_turns_named_by(envelope).into();
        for id in &*messages {
            if let Some(place) = self.open.iter().position(|turn| turn.id == *id) {
                let SeenResult { oversized, cost } = seen;
                let messages = messages.clone();
                self.end_at(place, TurnEnd::Result { messages, named: true, oversized, cost }, out);
            }
        }
        while let Some(place) = self.open.iter().position(|turn| turn.completed) {
            self.end_at(place, unnamed_end(seen), out);
        }
        self.in_turn = false;
        // Some versions name only one of several messages, or none after a local command.
        for turn in self.open.iter_mut().filter(|turn| turn.started) {
            turn.result = Some(seen);
        }
    }

    /// The open turns that a result names, in its order. It may name many more messages.
    fn open_turns_named_by(&self, envelope: &Envelope<'_>) -> Vec<MessageId> {
        if envelope.user_messages.is_empty() {
            return Vec::new();
        }
        let mut open: BTreeSet<&str> = self.open.iter().map(|turn| turn.id.as_str()).collect();
        let names = envelope.user_messages.iter().filter(|name| open.remove(&***name));
        names.map(|name| MessageId::from(&**name)).collect()
    }

    /// The turn that a result ends which names no message, if it ends one of the host's.
    fn ended_without_a_name(&self, envelope: &Envelope<'_>, oversized: bool) -> Option<usize> {
        match (self.names_messages, oversized) {
            _ if !envelope.user_messages.is_empty() => None,
            (false, _) => self.open.iter().position(|turn| turn.written),
            // The names may stand in the part that is lost.
            (true, true) => self.open.iter().position(|turn| turn.started),
            (true, false) => None,
        }
    }

    fn start_oldest(&mut self, out: &mut Outbox) {
        if !self.open.iter().any(|turn| turn.started) {
            self.start(|turn| turn.written, out);
        }
    }

    fn start(&mut self, wanted: impl Fn(&Turn) -> bool, out: &mut Outbox) {
        if let Some(turn) = self.open.iter_mut().find(|turn| !turn.started && wanted(turn)) {
            turn.start(out);
        }
    }
}

/// The end of a turn with a result that does not name it.
fn unnamed_end(seen: SeenResult) -> TurnEnd {
    let SeenResult { oversized, cost } = seen;
    TurnEnd::Result { messages: Arc::default(), named: false, oversized, cost }
}

impl Turn {
    fn start(&mut self, out: &mut Outbox) {
        if !self.started {
            self.started = true;
            out.push(Effect::TurnStarted(self.id.clone()));
        }
    }
}
