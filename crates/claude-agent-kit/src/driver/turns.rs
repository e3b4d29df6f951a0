//! The turns that somebody follows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use claude_wire::Body;
use claude_wire::id::MessageId;
use claude_wire::session::TurnEnd;

use crate::cost::{Cost, Ledger};
use crate::feed::Feed;
use crate::turn::TurnSlot;

#[derive(Debug)]
pub(super) struct Turns {
    open: BTreeMap<MessageId, TurnSlot>,
    ledger: Arc<Mutex<Ledger>>,
    /// What the last result cost, if it could be read.
    last_cost: Option<Cost>,
}

impl Turns {
    pub(super) fn new(ledger: Arc<Mutex<Ledger>>) -> Self {
        Self { open: BTreeMap::new(), ledger, last_cost: None }
    }

    pub(super) fn add(&mut self, slot: TurnSlot) {
        // One that is open already stays: the machine refuses a second of the same id.
        self.open.entry(slot.id.clone()).or_insert(slot);
    }

    pub(super) fn forget(&mut self, id: &MessageId) {
        self.open.remove(id);
    }

    pub(super) fn open_ids(&self) -> Vec<MessageId> {
        self.open.keys().cloned().collect()
    }

    /// Those of these turns that run.
    pub(super) fn running_of(&self, mut ids: Vec<MessageId>) -> Vec<MessageId> {
        ids.retain(|id| self.open.get(id).is_some_and(TurnSlot::is_started));
        ids
    }

    pub(super) fn begin(&mut self, id: &MessageId, feed: &Feed) {
        if let Some(slot) = self.open.get(id) {
            slot.start();
            feed.begin(slot.reader);
        }
    }

    pub(super) fn finish(&mut self, id: &MessageId, how: TurnEnd, feed: &Feed) {
        if let Some(slot) = self.open.remove(id) {
            let cost = match how {
                TurnEnd::Result { oversized: false, .. } => self.last_cost,
                TurnEnd::Cancelled | TurnEnd::WithoutResult => Some(Cost::default()),
                TurnEnd::Result { oversized: true, .. } => {
                    self.ledger().miss();
                    None
                }
            };
            // How it ended is known before the reader comes to its end.
            slot.end(how, cost);
            feed.finish(slot.reader);
        }
    }

    /// Records the cost of a result, before the turns that it ends are finished.
    pub(super) fn note_cost(&mut self, line: &Bytes) {
        let message = claude_wire::Message::decode(line.clone());
        let mut ledger = self.ledger();
        let cost = if let Ok(Body::Result(result)) = message.as_ref().map(|message| &message.body) {
            Some(ledger.enter(result))
        } else {
            ledger.miss();
            None
        };
        drop(ledger);
        self.last_cost = cost;
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the cost as incomplete if a started turn will have no result.
    pub(super) fn note_cut_off(&self) {
        if self.open.values().any(TurnSlot::is_started) {
            self.ledger().miss();
        }
    }

    /// The session is over; what did not end by then does not end.
    pub(super) fn end_all(&mut self, feed: &Feed) {
        for slot in std::mem::take(&mut self.open).into_values() {
            feed.finish(slot.reader);
        }
    }
}
