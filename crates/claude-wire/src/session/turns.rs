//! Which user messages the CLI still works on.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::event::{Effect, TurnEnd};
use super::outbox::Outbox;
use crate::envelope::Envelope;
use crate::id::MessageId;

/// The turns of a session, oldest first.
#[derive(Debug, Default)]
pub(super) struct Turns {
    open: VecDeque<Turn>,
    /// Whether the CLI says which messages its frames are about. If it does, a result that names
    /// none ends a turn that the CLI began by itself.
    names_messages: bool,
    busy: bool,
}

#[derive(Debug)]
struct Turn {
    id: MessageId,
    written: bool,
    started: bool,
    /// The CLI has dealt with it. Its result is the next one, which names it; one that does not
    /// must not leave anybody waiting.
    completed: bool,
}

impl Turns {
    pub(super) fn open(&mut self, id: MessageId) {
        self.open.push_back(Turn { id, written: false, started: false, completed: false });
    }

    pub(super) fn is_open(&self, id: &MessageId) -> bool {
        self.open.iter().any(|turn| turn.id == *id)
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
        }
    }

    /// Whether the CLI works on something, or is about to.
    pub(super) fn any_runs(&self) -> bool {
        self.busy || self.open.iter().any(|turn| turn.written)
    }

    /// What a message means for turns that begin, before it is delivered.
    pub(super) fn before(&mut self, envelope: &Envelope<'_>, oversized: bool, out: &mut Outbox) {
        self.names_messages |=
            envelope.command_uuid.is_some() || !envelope.user_messages.is_empty();
        match (&*envelope.kind, envelope.subtype.as_deref()) {
            ("command_lifecycle", _) if envelope.state.as_deref() == Some("started") => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                self.start(|turn| turn.id == *id, out);
            }
            ("system", Some("session_state_changed")) => {
                self.busy = envelope.state.as_deref() != Some("idle");
            }
            // A CLI that names no messages says at least that a turn begins.
            ("system", Some("init")) if !self.names_messages => self.start_oldest(out),
            // A result belongs to its turn, so the turn begins before it at the latest.
            ("result", _) => self.start_those_that_end(envelope, oversized, out),
            _ => {}
        }
    }

    /// What a message means for turns that end, after it was delivered.
    pub(super) fn after(&mut self, envelope: &Envelope<'_>, oversized: bool, out: &mut Outbox) {
        match &*envelope.kind {
            "command_lifecycle" if envelope.state.as_deref() == Some("cancelled") => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                if let Some(turn) = self.take(|turn| turn.id == *id) {
                    out.push(Effect::TurnEnded(turn.id, TurnEnd::Cancelled));
                }
            }
            "command_lifecycle" if envelope.state.as_deref() == Some("completed") => {
                let id = envelope.command_uuid.as_deref().unwrap_or_default();
                if let Some(turn) = self.open.iter_mut().find(|turn| turn.id == *id) {
                    turn.completed = true;
                }
            }
            "result" => self.result(envelope, oversized, out),
            _ => {}
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

    fn result(&mut self, envelope: &Envelope<'_>, oversized: bool, out: &mut Outbox) {
        let unnamed = self.ended_without_a_name(envelope, oversized);
        if let Some(turn) = unnamed.and_then(|place| self.open.remove(place)) {
            out.push(Effect::TurnEnded(turn.id, unnamed_end(oversized)));
        }
        let messages: Arc<[MessageId]> = self.open_turns_named_by(envelope).into();
        for id in &*messages {
            if let Some(turn) = self.take(|turn| turn.id == *id) {
                let end = TurnEnd::Result { messages: messages.clone(), named: true, oversized };
                out.push(Effect::TurnEnded(turn.id, end));
            }
        }
        while let Some(turn) = self.take(|turn| turn.completed) {
            out.push(Effect::TurnEnded(turn.id, unnamed_end(oversized)));
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

    fn take(&mut self, wanted: impl Fn(&Turn) -> bool) -> Option<Turn> {
        let place = self.open.iter().position(wanted)?;
        self.open.remove(place)
    }
}

/// The end of a turn with a result that does not name it.
fn unnamed_end(oversized: bool) -> TurnEnd {
    TurnEnd::Result { messages: Arc::default(), named: false, oversized }
}

impl Turn {
    fn start(&mut self, out: &mut Outbox) {
        if !self.started {
            self.started = true;
            out.push(Effect::TurnStarted(self.id.clone()));
        }
    }
}
