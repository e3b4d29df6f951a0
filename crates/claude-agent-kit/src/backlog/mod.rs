//! The backlog of unread messages, shared by all subscribers.
//!
//! One log holds the items. A subscriber has a range of the log and a position up to which it has
//! read. An item is freed when the last subscriber whose range contains it has taken it. Two limits in
//! bytes determine when reading pauses and which subscribers lag, so that a slow reader does not block
//! the others.

use std::collections::{BTreeMap, VecDeque};

/// The limits of a backlog, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BacklogLimits {
    /// The size above which nothing more is read unless there are waiters.
    pub(crate) soft: usize,
    /// The maximum size: beyond it, if there are waiters, the subscribers with the most unread items
    /// lose them.
    pub(crate) hard: usize,
}

#[cfg(test)]
impl BacklogLimits {
    /// Creates limits. A backlog lowers the soft limit to the hard one, and raises both to at least 1.
    pub(crate) fn new(soft: usize, hard: usize) -> Self {
        Self { soft, hard }
    }
}

impl Default for BacklogLimits {
    fn default() -> Self {
        Self { soft: 16 * 1024 * 1024, hard: 256 * 1024 * 1024 }
    }
}

/// Identifies a subscriber of a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Subscriber(u64);

/// The outcome of [`Backlog::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BacklogRead {
    /// The subscriber has taken at least one item.
    Items,
    /// There is no item yet. The subscriber now counts as waiting, so that reading continues.
    Empty,
    /// No item follows.
    Ended,
    /// The subscriber lagged: unread items were discarded, and no item follows.
    Lagged {
        /// The size of the discarded items in bytes.
        bytes: u64,
    },
}

/// Items shared by subscribers, each of which takes every item of its range once, in order.
///
/// The caller pushes items and calls [`enforce`](Self::enforce) and then
/// [`may_read`](Self::may_read) before it reads more.
#[derive(Debug)]
pub(crate) struct Backlog<T> {
    limits: BacklogLimits,
    /// Sorted by number. The entry of a freed item may remain for a while.
    log: VecDeque<Entry<T>>,
    /// The number of entries in the log whose item is freed.
    freed: usize,
    /// The position after the last pushed item.
    head: Mark,
    /// The size of all items including their entries.
    bytes: usize,
    /// The number of open ranges, which all hold every new item.
    open: u32,
    early: EarlyItems,
    subscribers: BTreeMap<Subscriber, SubscriberRange>,
    next: u64,
    closed: bool,
}

#[derive(Debug)]
struct Entry<T> {
    number: u64,
    size: usize,
    /// The number of subscribers that will take the item. The last one takes it without a clone.
    holders: u32,
    item: Option<T>,
}

/// A position between two items: the number and the size in bytes of the items before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mark {
    number: u64,
    bytes: u64,
}

/// The state of the items before the first subscription.
#[derive(Clone, Copy, Debug)]
enum EarlyItems {
    /// The items are kept.
    Kept,
    /// This many bytes were discarded.
    Discarded(u64),
    /// The first subscription has taken over the items.
    Claimed,
}

#[derive(Clone, Copy, Debug)]
struct SubscriberRange {
    /// The position up to which items were taken.
    from: Mark,
    end: RangeEnd,
    /// Whether the subscriber was polled and found no item.
    is_waiting: bool,
}

#[derive(Clone, Copy, Debug)]
enum RangeEnd {
    /// The range has not started and holds no items.
    NotStarted,
    /// The range includes all new items.
    Open,
    /// The range ends at this position.
    At(Mark),
    /// This many bytes were discarded, which the next `take` reports.
    Lagged(u64),
    /// The end or the lag was reported.
    Finished,
}

/// The capacity above which an empty log is shrunk; the items of one read need less.
const MAX_EMPTY_CAPACITY: usize = 4096;

/// The capacity to which an empty log is shrunk.
const IDLE_CAPACITY: usize = 64;

/// The number of freed entries that does not justify a clean-up.
const MAX_FREED_ENTRIES: usize = 64;

impl<T: Clone> Backlog<T> {
    /// Creates a backlog without items or subscribers.
    pub(crate) fn new(limits: BacklogLimits) -> Self {
        // An empty backlog must be below both limits, or nothing would ever be read.
        let hard = limits.hard.max(1);
        let soft = limits.soft.clamp(1, hard);
        Self {
            limits: BacklogLimits { soft, hard },
            log: VecDeque::new(),
            freed: 0,
            head: Mark::default(),
            bytes: 0,
            // The first subscription holds its items before it exists.
            open: 1,
            early: EarlyItems::Kept,
            subscribers: BTreeMap::new(),
            next: 0,
            closed: false,
        }
    }

    /// Returns the size of an item including its entry, so that the limits also hold for many tiny
    /// items.
    pub(crate) const fn cost(size: usize) -> usize {
        size.saturating_add(size_of::<Entry<T>>())
    }

    /// Returns the size of all items including their entries.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an item of this size in bytes. Discards it if no subscriber will take it.
    pub(crate) fn push(&mut self, item: T, size: usize) {
        if self.closed {
            return;
        }
        let number = self.head.number;
        self.head = Mark { number: number + 1, bytes: self.head.bytes + size as u64 };
        if self.open > 0 {
            self.bytes = self.bytes.saturating_add(Self::cost(size));
            self.log.push_back(Entry { number, size, holders: self.open, item: Some(item) });
        }
    }

    /// Subscribes to all following items; the first subscription also includes all earlier items.
    ///
    /// If the earlier items were discarded, the first subscription returns only
    /// [`BacklogRead::Lagged`].
    pub(crate) fn subscribe(&mut self) -> Subscriber {
        let (from, end) = match self.early {
            // The subscriber takes over the hold on the early items.
            EarlyItems::Kept => (Mark::default(), RangeEnd::Open),
            EarlyItems::Discarded(bytes) => (self.head, RangeEnd::Lagged(bytes)),
            EarlyItems::Claimed => {
                self.open += 1;
                (self.head, RangeEnd::Open)
            }
        };
        self.early = EarlyItems::Claimed;
        self.add(from, end)
    }

    /// Subscribes to a turn, which holds no items before it [starts](Self::begin).
    ///
    /// As a first subscription it frees the earlier items: they belong to no turn, and would otherwise
    /// be held for a reader that may never subscribe.
    pub(crate) fn subscribe_turn(&mut self) -> Subscriber {
        self.release_early();
        self.add(self.head, RangeEnd::NotStarted)
    }

    /// Subscribes to a turn that starts at the next item, and keeps the earlier items for the first
    /// subscription: the host may never take this turn.
    pub(crate) fn subscribe_replay(&mut self) -> Subscriber {
        let subscriber = self.add(self.head, RangeEnd::NotStarted);
        self.begin(subscriber);
        subscriber
    }

    /// Frees the items before the first subscription, which then gets no earlier items.
    pub(crate) fn release_early(&mut self) {
        if let EarlyItems::Kept = self.early {
            self.open -= 1;
            self.release(0, self.head.number);
        }
        self.early = EarlyItems::Claimed;
    }

    fn add(&mut self, from: Mark, end: RangeEnd) -> Subscriber {
        let subscriber = Subscriber(self.next);
        self.next += 1;
        self.subscribers.insert(subscriber, SubscriberRange { from, end, is_waiting: false });
        subscriber
    }

    /// Starts the range of a turn at the next item.
    pub(crate) fn begin(&mut self, subscriber: Subscriber) {
        let Some(range) = self.subscribers.get_mut(&subscriber) else { return };
        if let RangeEnd::NotStarted = range.end {
            range.from = self.head;
            range.end = RangeEnd::Open;
            self.open += 1;
        }
    }

    /// Ends the range of a subscriber after the last pushed item.
    pub(crate) fn finish(&mut self, subscriber: Subscriber) {
        let Some(range) = self.subscribers.get_mut(&subscriber) else { return };
        match range.end {
            RangeEnd::NotStarted => range.end = RangeEnd::Finished,
            RangeEnd::Open => {
                range.end = RangeEnd::At(self.head);
                self.open -= 1;
            }
            RangeEnd::At(_) | RangeEnd::Lagged(_) | RangeEnd::Finished => {}
        }
    }

    /// Appends the next items of a subscriber to `into`: as many as fit into `max_bytes`, but at least
    /// one.
    ///
    /// The last subscriber of an item takes it without a clone.
    pub(crate) fn take(
        &mut self,
        subscriber: Subscriber,
        max_bytes: usize,
        into: &mut VecDeque<T>,
    ) -> BacklogRead {
        let (head, closed) = (self.head, self.closed);
        let Some(range) = self.subscribers.get_mut(&subscriber) else { return BacklogRead::Ended };
        let (until, is_open) = match range.end {
            RangeEnd::NotStarted => (range.from, !closed),
            RangeEnd::Open => (head, !closed),
            RangeEnd::At(mark) => (mark, false),
            RangeEnd::Finished => return BacklogRead::Ended,
            RangeEnd::Lagged(bytes) => {
                range.end = RangeEnd::Finished;
                return BacklogRead::Lagged { bytes };
            }
        };
        if range.from.number == until.number {
            range.is_waiting = is_open;
            return if is_open { BacklogRead::Empty } else { BacklogRead::Ended };
        }
        range.is_waiting = false;
        let from = range.from;
        let reached = self.take_items(from, until.number, max_bytes, into);
        if let Some(range) = self.subscribers.get_mut(&subscriber) {
            range.from = reached;
        }
        BacklogRead::Items
    }

    /// Moves or clones items of a range, and returns the position after them.
    fn take_items(
        &mut self,
        from: Mark,
        until: u64,
        max_bytes: usize,
        into: &mut VecDeque<T>,
    ) -> Mark {
        let mut reached = from;
        let mut room = max_bytes;
        let mut at = self.position(from.number);
        while reached.number < until {
            let Some(entry) = self.log.get_mut(at) else { break };
            if entry.size > room && reached.number > from.number {
                break;
            }
            room = room.saturating_sub(entry.size);
            reached = Mark { number: reached.number + 1, bytes: reached.bytes + entry.size as u64 };
            entry.holders -= 1;
            if entry.holders > 0 {
                into.extend(entry.item.clone());
                at += 1;
                continue;
            }
            self.bytes -= Self::cost(entry.size);
            into.extend(entry.item.take());
            if at == 0 {
                self.log.pop_front();
            } else {
                self.freed += 1;
                at += 1;
            }
        }
        self.clean_up();
        reached
    }

    /// Removes a subscriber, and frees the items that only it held.
    pub(crate) fn unsubscribe(&mut self, subscriber: Subscriber) {
        self.release_range(subscriber);
        self.subscribers.remove(&subscriber);
    }

    /// Releases the items of a subscriber, and returns the size of those that it had not taken.
    fn release_range(&mut self, subscriber: Subscriber) -> u64 {
        let Some(range) = self.subscribers.get(&subscriber).copied() else { return 0 };
        let until = match range.end {
            RangeEnd::Open => {
                self.open -= 1;
                self.head
            }
            RangeEnd::At(mark) => mark,
            RangeEnd::NotStarted | RangeEnd::Lagged(_) | RangeEnd::Finished => return 0,
        };
        self.release(range.from.number, until.number);
        until.bytes - range.from.bytes
    }

    /// Closes the backlog: all subscribers end after the present items.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Returns whether more should be read: there is room, or there are waiters.
    ///
    /// Waiters are operations and stops, which the caller reports with `has_waiters`, and subscribers
    /// that were polled and found no item. A closed backlog stores nothing, so reading continues.
    pub(crate) fn may_read(&self, has_waiters: bool) -> bool {
        self.closed || self.bytes < self.limits.soft || self.has_waiting_reader(has_waiters)
    }

    fn has_waiting_reader(&self, has_waiters: bool) -> bool {
        has_waiters
            || self.subscribers.values().any(|range| {
                range.is_waiting
                    && match range.end {
                        RangeEnd::NotStarted => true,
                        RangeEnd::Open => range.from.number == self.head.number,
                        RangeEnd::At(_) | RangeEnd::Lagged(_) | RangeEnd::Finished => false,
                    }
            })
    }

    /// Enforces the hard limit if there are waiters: ends the subscribers with the most unread items with
    /// [`BacklogRead::Lagged`] until there is room. Returns whether there were any, which the caller
    /// must wake.
    ///
    /// Does nothing if there are no waiters, so that reading pauses.
    pub(crate) fn enforce(&mut self, has_waiters: bool) -> bool {
        if self.bytes < self.limits.hard || self.closed || !self.has_waiting_reader(has_waiters) {
            return false;
        }
        let mut any_lagged = false;
        while self.bytes >= self.limits.hard {
            if let EarlyItems::Kept = self.early {
                self.early = EarlyItems::Discarded(self.head.bytes);
                self.open -= 1;
                self.release(0, self.head.number);
                continue;
            }
            let Some(subscriber) = self.largest_holder() else { break };
            let bytes = self.release_range(subscriber);
            if let Some(range) = self.subscribers.get_mut(&subscriber) {
                range.end = RangeEnd::Lagged(bytes);
            }
            any_lagged = true;
        }
        any_lagged
    }

    /// Returns the subscriber with the most unread items, and among equals the oldest.
    fn largest_holder(&self) -> Option<Subscriber> {
        let held = |range: &SubscriberRange| {
            let until = match range.end {
                RangeEnd::Open => self.head,
                RangeEnd::At(mark) => mark,
                RangeEnd::NotStarted | RangeEnd::Lagged(_) | RangeEnd::Finished => return 0,
            };
            let entries = (until.number - range.from.number) * size_of::<Entry<T>>() as u64;
            until.bytes - range.from.bytes + entries
        };
        let mut most = (0, None);
        for (subscriber, range) in &self.subscribers {
            if held(range) > most.0 {
                most = (held(range), Some(*subscriber));
            }
        }
        most.1
    }

    /// Removes one holder from the items of a range.
    fn release(&mut self, from: u64, until: u64) {
        let at = self.position(from);
        for entry in self.log.range_mut(at..) {
            if entry.number >= until {
                break;
            }
            // Only entries outside of the range can have no holders left.
            entry.holders = entry.holders.saturating_sub(1);
            if entry.holders == 0 && entry.item.take().is_some() {
                self.bytes -= Self::cost(entry.size);
                self.freed += 1;
            }
        }
        self.clean_up();
    }

    /// Returns the index of the entry with this number, or of the first one after it.
    fn position(&self, number: u64) -> usize {
        match self.log.front() {
            // A subscriber that keeps up reads at the front.
            Some(front) if front.number >= number => 0,
            Some(_) => self.log.partition_point(|entry| entry.number < number),
            None => 0,
        }
    }

    /// Removes entries whose item is freed: at the front at once, elsewhere when there are many, so that
    /// they do not accumulate behind a range that is never read.
    fn clean_up(&mut self) {
        if self.freed > 0 {
            while self.log.front().is_some_and(|front| front.item.is_none()) {
                self.log.pop_front();
                self.freed -= 1;
            }
            if self.freed > MAX_FREED_ENTRIES && self.freed > self.log.len() / 2 {
                self.log.retain(|entry| entry.item.is_some());
                self.freed = 0;
            }
        }
        if self.log.is_empty() && self.log.capacity() > MAX_EMPTY_CAPACITY {
            self.log.shrink_to(IDLE_CAPACITY);
        }
    }
}

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
