//! The turns that somebody follows.

use std::collections::BTreeMap;

use bytes::Bytes;
use claude_wire::Body;
use claude_wire::id::MessageId;
use claude_wire::session::TurnEnd;

use crate::feed::Feed;
use crate::turn::{Totals, TurnSlot};

#[derive(Debug, Default)]
pub(super) struct Turns {
    open: BTreeMap<MessageId, TurnSlot>,
    /// What the CLI had counted before the last result, and after it.
    before: Totals,
    after: Totals,
}

impl Turns {
    pub(super) fn add(&mut self, slot: TurnSlot) {
        // One that is open already stays: the machine refuses a second of the same id.
        self.open.entry(slot.id.clone()).or_insert(slot);
    }

    pub(super) fn forget(&mut self, id: &MessageId) {
        self.open.remove(id);
    }

    pub(super) fn begin(&mut self, id: &MessageId, feed: &Feed) {
        if let Some(slot) = self.open.get(id) {
            feed.begin(slot.reader);
        }
    }

    pub(super) fn finish(&mut self, id: &MessageId, how: TurnEnd, feed: &Feed) {
        if let Some(slot) = self.open.remove(id) {
            // How it ended is known before the reader comes to its end.
            slot.end(how, self.before);
            feed.finish(slot.reader);
        }
    }

    /// The CLI's totals are those of the session; a turn's are the difference to those before it.
    pub(super) fn note_totals(&mut self, line: &Bytes) {
        let Ok(message) = claude_wire::Message::decode(line.clone()) else { return };
        if let Body::Result(result) = &message.body {
            self.before = self.after;
            self.after = Totals::of(result).unwrap_or(self.after);
        }
    }

    /// The session is over; what did not end by then does not end.
    pub(super) fn end_all(&mut self, feed: &Feed) {
        for slot in std::mem::take(&mut self.open).into_values() {
            feed.finish(slot.reader);
        }
    }
}
