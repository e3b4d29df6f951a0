//! The turns that the host follows.

use std::collections::BTreeMap;

use claude_wire::id::MessageId;
use claude_wire::session::TurnEnd;

use crate::feed::Feed;
use crate::turn::TurnSlot;

#[derive(Debug, Default)]
pub(super) struct Turns {
    open: BTreeMap<MessageId, TurnSlot>,
}

impl Turns {
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

    /// Returns those of these turns that run.
    pub(super) fn running_of(&self, mut ids: Vec<MessageId>) -> Vec<MessageId> {
        ids.retain(|id| self.open.get(id).is_some_and(TurnSlot::is_started));
        ids
    }

    pub(super) fn any_started(&self) -> bool {
        self.open.values().any(TurnSlot::is_started)
    }

    pub(super) fn begin(&mut self, id: &MessageId, feed: &Feed) {
        if let Some(slot) = self.open.get(id) {
            slot.start();
            feed.begin(slot.reader);
        }
    }

    pub(super) fn finish(&mut self, id: &MessageId, how: TurnEnd, feed: &Feed) {
        if let Some(slot) = self.open.remove(id) {
            // How it ended is known before the reader comes to its end.
            slot.end(how);
            feed.finish(slot.reader);
        }
    }

    /// Ends all of them: the run is over.
    pub(super) fn end_all(&mut self, feed: &Feed) {
        for slot in std::mem::take(&mut self.open).into_values() {
            feed.finish(slot.reader);
        }
    }
}
