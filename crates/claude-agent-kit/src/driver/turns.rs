//! The turns for which the host holds a handle.

use std::collections::HashMap;

use claude_wire::id::MessageId;
use claude_wire::session::TurnEnd;

use crate::feed::Feed;
use crate::sort;
use crate::turn::TurnSlot;

#[derive(Debug, Default)]
pub(super) struct Turns {
    open: HashMap<MessageId, TurnSlot>,
}

impl Turns {
    pub(super) fn add(&mut self, slot: TurnSlot) {
        // An existing entry stays: the machine rejects a second turn with the same ID.
        self.open.entry(slot.id.clone()).or_insert(slot);
    }

    pub(super) fn forget(&mut self, id: &MessageId) {
        self.open.remove(id);
    }

    pub(super) fn open_ids(&self) -> Vec<MessageId> {
        self.open.keys().cloned().collect()
    }

    /// Returns the turns among these that are running.
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
            // Set before the reader reaches the end of the turn.
            slot.end(how);
            feed.finish(slot.reader);
        }
    }

    /// Ends all turns when the run ends.
    pub(super) fn end_all(&mut self, feed: &Feed) {
        let mut slots: Vec<TurnSlot> = self.open.drain().map(|(_, slot)| slot).collect();
        // Runs are reproducible.
        sort::sort_by(&mut slots, |one, other| one.id.cmp(&other.id));
        for slot in slots {
            feed.finish(slot.reader);
        }
    }
}
