//! What waits to be written: for the handshake, or for room.

use std::collections::VecDeque;
use std::time::Duration;

use super::event::{Outgoing, Waiter};
use crate::control::HostRequest;

/// Both kinds in one queue: what was asked before a message stands before it on the wire too.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: VecDeque<Queued>,
    operations: usize,
}

#[derive(Debug)]
pub(super) struct Queued {
    pub(super) waiter: Waiter,
    pub(super) what: QueuedItem,
}

#[derive(Debug)]
pub(super) enum QueuedItem {
    Operation(Box<HostRequest>, Duration),
    Message(Outgoing),
}

impl Queue {
    pub(super) fn push(&mut self, waiter: Waiter, what: QueuedItem) {
        self.operations += usize::from(matches!(what, QueuedItem::Operation(..)));
        self.entries.push_back(Queued { waiter, what });
    }

    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn take_all(&mut self) -> VecDeque<Queued> {
        self.operations = 0;
        std::mem::take(&mut self.entries)
    }

    /// The length of the message that is next, if one is.
    pub(super) fn next_message_length(&self) -> Option<usize> {
        match &self.entries.front()?.what {
            QueuedItem::Message(message) => Some(message.line.len()),
            QueuedItem::Operation(..) => None,
        }
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let entry = self.entries.pop_front()?;
        self.operations -= usize::from(matches!(entry.what, QueuedItem::Operation(..)));
        Some(entry)
    }

    /// Takes out what this one waits for.
    pub(super) fn forget(&mut self, waiter: Waiter) -> Option<Queued> {
        let place = self.entries.iter().position(|entry| entry.waiter == waiter)?;
        let entry = self.entries.remove(place)?;
        self.operations -= usize::from(matches!(entry.what, QueuedItem::Operation(..)));
        Some(entry)
    }
}
