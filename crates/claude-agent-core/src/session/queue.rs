//! Commands of the host that wait for the handshake or for room in the write buffer.

use std::collections::VecDeque;
use std::time::Duration;

use claude_wire::control::HostRequest;

use super::event::{OutgoingMessage, Waiter};

/// Operations and messages in one queue, which keeps their order on the wire.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: VecDeque<QueueEntry>,
    operations: usize,
}

#[derive(Debug)]
pub(super) struct QueueEntry {
    pub(super) waiter: Waiter,
    pub(super) item: QueuedItem,
}

#[derive(Debug)]
pub(super) enum QueuedItem {
    Operation(Box<HostRequest>, Duration),
    Message(OutgoingMessage),
}

impl Queue {
    pub(super) fn push(&mut self, waiter: Waiter, item: QueuedItem) {
        self.operations += usize::from(matches!(item, QueuedItem::Operation(..)));
        self.entries.push_back(QueueEntry { waiter, item });
    }

    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn take_all(&mut self) -> VecDeque<QueueEntry> {
        self.operations = 0;
        std::mem::take(&mut self.entries)
    }

    /// Returns the length of the next item, if it is a message.
    pub(super) fn next_message_length(&self) -> Option<usize> {
        match &self.entries.front()?.item {
            QueuedItem::Message(message) => Some(message.line.len()),
            QueuedItem::Operation(..) => None,
        }
    }

    pub(super) fn pop(&mut self) -> Option<QueueEntry> {
        let entry = self.entries.pop_front()?;
        self.operations -= usize::from(matches!(entry.item, QueuedItem::Operation(..)));
        Some(entry)
    }

    /// Removes the item of this waiter.
    pub(super) fn forget(&mut self, waiter: Waiter) -> Option<QueueEntry> {
        let index = self.entries.iter().position(|entry| entry.waiter == waiter)?;
        let entry = self.entries.remove(index)?;
        self.operations -= usize::from(matches!(entry.item, QueuedItem::Operation(..)));
        Some(entry)
    }
}
