//! The turns for which the host holds a handle.

use claude_agent_core::session::TurnEnd;
use claude_wire::id::MessageId;

use crate::feed::Feed;
use crate::list;
use crate::sort;
use crate::turn::TurnSlot;

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Few turns are open at a time.
    open: Vec<TurnSlot>,
}

impl Turns {
    pub(super) fn add(&mut self, slot: TurnSlot) {
        // An existing entry stays: the machine rejects a second turn with the same ID.
        if self.get(&slot.id).is_none() {
            self.open.push(slot);
        }
    }

    fn get(&self, id: &MessageId) -> Option<&TurnSlot> {
        self.open.iter().find(|slot| slot.id == *id)
    }

    fn remove(&mut self, id: &MessageId) -> Option<TurnSlot> {
        let at = self.open.iter().position(|slot| slot.id == *id)?;
        Some(self.open.swap_remove(at))
    }

    pub(super) fn forget(&mut self, id: &MessageId) {
        self.remove(id);
    }

    pub(super) fn open_ids(&self) -> Vec<MessageId> {
        list::map(&self.open, &|slot| slot.id.clone())
    }

    /// Returns the turns among these that are running.
    pub(super) fn running_of(&self, mut ids: Vec<MessageId>) -> Vec<MessageId> {
        ids.retain(|id| self.get(id).is_some_and(TurnSlot::is_started));
        ids
    }

    pub(super) fn any_started(&self) -> bool {
        self.open.iter().any(TurnSlot::is_started)
    }

    pub(super) fn begin(&mut self, id: &MessageId, feed: &Feed) {
        if let Some(slot) = self.get(id) {
            slot.start();
            feed.begin(slot.reader);
        }
    }

    pub(super) fn finish(&mut self, id: &MessageId, how: TurnEnd, feed: &Feed) {
        if let Some(slot) = self.remove(id) {
            // Set before the reader reaches the end of the turn.
            slot.end(how);
            feed.finish(slot.reader);
        }
    }

    /// Ends all turns when the run ends.
    pub(super) fn end_all(&mut self, feed: &Feed) {
        let mut slots = std::mem::take(&mut self.open);
        // Runs are reproducible.
        sort::sort_by(&mut slots, |one, other| one.id.cmp(&other.id));
        for slot in slots {
            feed.finish(slot.reader);
        }
    }
}
