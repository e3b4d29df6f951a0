//! Messages that were read and are not yet taken: held once, shared by everybody who follows them.
//!
//! One log holds the items; a subscriber is a range of it with a place up to which it has read. An
//! item is freed when the last subscriber whose range covers it has taken it. How much may be held
//! is limited in bytes, and the two limits say when reading pauses and who has to give way, so
//! that a slow reader stops nobody.

use std::collections::{BTreeMap, VecDeque};

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BacklogLimits {
    /// Bytes above which nothing more is read unless somebody waits.
    pub soft: usize,
    /// Bytes above which nothing more is held: if somebody waits, those who hold the most give way.
    pub hard: usize,
}

impl BacklogLimits {
    /// These limits. The soft one is never above the hard one, and an empty backlog is under both.
    pub fn new(soft: usize, hard: usize) -> Self {
        Self { soft, hard }
    }
}

impl Default for BacklogLimits {
    fn default() -> Self {
        Self { soft: 16 * 1024 * 1024, hard: 256 * 1024 * 1024 }
    }
}

/// Somebody who follows a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscriber(u64);

/// What a subscriber was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// At least one item.
    Items,
    /// Nothing is there yet. From now on the subscriber waits: reading goes on for it.
    Empty,
    /// Nothing will come any more.
    Ended,
    /// It did not keep up: so many bytes were freed without having been taken, and nothing will
    /// come any more.
    Lagged {
        /// The bytes that it lost.
        bytes: u64,
    },
}

/// Items shared by subscribers, each of whom sees every item of its range once, in order.
///
/// The caller adds items and asks [`may_read`](Self::may_read) before it reads more. A call of
/// [`enforce`](Self::enforce) before that makes the answer right at the hard limit.
#[derive(Debug)]
pub struct Backlog<T> {
    limits: BacklogLimits,
    /// Sorted by number. An item that nobody holds any more is gone; its entry may stay a while.
    log: VecDeque<Entry<T>>,
    /// Entries of the log without their item.
    dead: usize,
    /// The end of everything that was pushed.
    head: Mark,
    /// The cost of all items in the log.
    bytes: usize,
    /// Ranges without an end: every new item gets so many holders.
    open: u32,
    early: Early,
    subscribers: BTreeMap<Subscriber, Range>,
    next: u64,
    closed: bool,
}

#[derive(Debug)]
struct Entry<T> {
    number: u64,
    size: usize,
    /// Subscribers that will take it. The last one gets the item itself.
    holders: u32,
    item: Option<T>,
}

/// A place between two items: how many, and how many bytes, were pushed before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mark {
    number: u64,
    bytes: u64,
}

/// What became of the items before the first subscription.
#[derive(Clone, Copy, Debug)]
enum Early {
    /// They are kept.
    Kept,
    /// They had to be freed: so many bytes.
    Lost(u64),
    /// There was a first subscription.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    /// What is before was taken.
    from: Mark,
    until: Until,
    /// Whether it was polled and found nothing.
    hungry: bool,
}

#[derive(Clone, Copy, Debug)]
enum Until {
    /// It holds nothing before it begins.
    NotBegun,
    /// It goes on.
    Open,
    /// It ends there.
    Mark(Mark),
    /// Its items were freed, and it has not been told.
    Lagged(u64),
    /// It has been told everything.
    Over,
}

/// Entries that an empty log may keep room for; a batch of a read is smaller than that.
const SPIKE: usize = 4096;

/// Entries that an idle log may keep room for.
const IDLE: usize = 64;

/// Entries without their item that are not worth a clean-up.
const FEW: usize = 64;

impl<T: Clone> Backlog<T> {
    /// A backlog without items or subscribers.
    pub fn new(limits: BacklogLimits) -> Self {
        // An empty backlog must be under both limits, or nothing would ever be read.
        let hard = limits.hard.max(1);
        let soft = limits.soft.clamp(1, hard);
        Self {
            limits: BacklogLimits { soft, hard },
            log: VecDeque::new(),
            dead: 0,
            head: Mark::default(),
            bytes: 0,
            // The first subscription holds its items before there is one.
            open: 1,
            early: Early::Kept,
            subscribers: BTreeMap::new(),
            next: 0,
            closed: false,
        }
    }

    /// What an item of this size costs: a flood of tiny items must not take more memory than the
    /// limits say.
    pub const fn cost(size: usize) -> usize {
        size.saturating_add(size_of::<Entry<T>>())
    }

    /// The cost of everything that is held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an item of this size in bytes. It is dropped at once if nobody will take it.
    pub fn push(&mut self, item: T, size: usize) {
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

    /// Follows everything from now on; the first subscription ever also what came before it.
    ///
    /// If that had to be freed, the first subscription begins and ends with
    /// [`Taken::Lagged`]: nothing is lost without a word.
    pub fn subscribe(&mut self) -> Subscriber {
        let (from, until) = match self.early {
            // The hold on the early items passes to it.
            Early::Kept => (Mark::default(), Until::Open),
            Early::Lost(bytes) => (self.head, Until::Lagged(bytes)),
            Early::Over => {
                self.open += 1;
                (self.head, Until::Open)
            }
        };
        self.early = Early::Over;
        self.add(from, until)
    }

    /// Follows a turn, which holds nothing before it [begins](Self::begin).
    ///
    /// As a first subscription it frees what came before it: that belongs to no turn, and would
    /// otherwise be held for a stream that perhaps nobody asks for.
    pub fn subscribe_turn(&mut self) -> Subscriber {
        if let Early::Kept = self.early {
            self.open -= 1;
            self.release(0, self.head.number);
        }
        self.early = Early::Over;
        self.add(self.head, Until::NotBegun)
    }

    fn add(&mut self, from: Mark, until: Until) -> Subscriber {
        let subscriber = Subscriber(self.next);
        self.next += 1;
        self.subscribers.insert(subscriber, Range { from, until, hungry: false });
        subscriber
    }

    /// From now on the turn holds what is pushed.
    pub fn begin(&mut self, subscriber: Subscriber) {
        let Some(range) = self.subscribers.get_mut(&subscriber) else { return };
        if let Until::NotBegun = range.until {
            range.from = self.head;
            range.until = Until::Open;
            self.open += 1;
        }
    }

    /// What is pushed from now on is not for this subscriber: it ends when it has taken the rest.
    pub fn finish(&mut self, subscriber: Subscriber) {
        let Some(range) = self.subscribers.get_mut(&subscriber) else { return };
        match range.until {
            Until::NotBegun => range.until = Until::Over,
            Until::Open => {
                range.until = Until::Mark(self.head);
                self.open -= 1;
            }
            Until::Mark(_) | Until::Lagged(_) | Until::Over => {}
        }
    }

    /// Gives a subscriber its next items: as many as fit into `most` bytes, and at least one.
    ///
    /// The last one to take an item gets the item itself; those before it get a clone.
    pub fn take(&mut self, subscriber: Subscriber, most: usize, into: &mut VecDeque<T>) -> Taken {
        let (head, closed) = (self.head, self.closed);
        let Some(range) = self.subscribers.get_mut(&subscriber) else { return Taken::Ended };
        let (until, goes_on) = match range.until {
            Until::NotBegun => (range.from, !closed),
            Until::Open => (head, !closed),
            Until::Mark(mark) => (mark, false),
            Until::Over => return Taken::Ended,
            Until::Lagged(bytes) => {
                range.until = Until::Over;
                return Taken::Lagged { bytes };
            }
        };
        if range.from.number == until.number {
            range.hungry = goes_on;
            return if goes_on { Taken::Empty } else { Taken::Ended };
        }
        range.hungry = false;
        let from = range.from;
        let reached = self.hand_over(from, until.number, most, into);
        if let Some(range) = self.subscribers.get_mut(&subscriber) {
            range.from = reached;
        }
        Taken::Items
    }

    /// Moves or clones items of a range, and says how far it came.
    fn hand_over(&mut self, from: Mark, until: u64, most: usize, into: &mut VecDeque<T>) -> Mark {
        let mut reached = from;
        let mut room = most;
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
                self.dead += 1;
                at += 1;
            }
        }
        self.clean_up();
        reached
    }

    /// Forgets a subscriber, and frees what only it held.
    pub fn unsubscribe(&mut self, subscriber: Subscriber) {
        self.let_go(subscriber);
        self.subscribers.remove(&subscriber);
    }

    /// Gives up what a subscriber holds, and says how many bytes it had not taken.
    fn let_go(&mut self, subscriber: Subscriber) -> u64 {
        let Some(range) = self.subscribers.get(&subscriber).copied() else { return 0 };
        let until = match range.until {
            Until::Open => {
                self.open -= 1;
                self.head
            }
            Until::Mark(mark) => mark,
            Until::NotBegun | Until::Lagged(_) | Until::Over => return 0,
        };
        self.release(range.from.number, until.number);
        until.bytes - range.from.bytes
    }

    /// Nothing more will come: everybody ends after what is there.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether more should be read: there is room, or somebody waits for what comes.
    ///
    /// Somebody waits if the caller says so (`somebody_waits`: an operation, a stop), or if a
    /// subscriber was polled and found nothing, until there is something for it. A closed backlog
    /// takes nothing up and holds nobody back.
    pub fn may_read(&self, somebody_waits: bool) -> bool {
        self.closed || self.bytes < self.limits.soft || self.anybody_waits(somebody_waits)
    }

    fn anybody_waits(&self, somebody_waits: bool) -> bool {
        somebody_waits
            || self.subscribers.values().any(|range| {
                range.hungry
                    && match range.until {
                        Until::NotBegun => true,
                        Until::Open => range.from.number == self.head.number,
                        Until::Mark(_) | Until::Lagged(_) | Until::Over => false,
                    }
            })
    }

    /// At the hard limit, if anybody waits: ends those who hold the most with [`Taken::Lagged`]
    /// until there is room again. Says whether anyone was, and has to be woken.
    ///
    /// Those who nearly keep up are left alone. If nobody waits nothing is done, and reading pauses.
    pub fn enforce(&mut self, somebody_waits: bool) -> bool {
        if self.bytes < self.limits.hard || self.closed || !self.anybody_waits(somebody_waits) {
            return false;
        }
        let mut anyone = false;
        while self.bytes >= self.limits.hard {
            if let Early::Kept = self.early {
                self.early = Early::Lost(self.head.bytes);
                self.open -= 1;
                self.release(0, self.head.number);
                continue;
            }
            let Some(subscriber) = self.holds_most() else { break };
            let bytes = self.let_go(subscriber);
            if let Some(range) = self.subscribers.get_mut(&subscriber) {
                range.until = Until::Lagged(bytes);
            }
            anyone = true;
        }
        anyone
    }

    /// The subscriber that holds the most, if any holds something; of equals the oldest.
    fn holds_most(&self) -> Option<Subscriber> {
        let held = |range: &Range| {
            let until = match range.until {
                Until::Open => self.head,
                Until::Mark(mark) => mark,
                Until::NotBegun | Until::Lagged(_) | Until::Over => return 0,
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

    /// One holder less for the items from one number up to another.
    fn release(&mut self, from: u64, until: u64) {
        let at = self.position(from);
        for entry in self.log.range_mut(at..) {
            if entry.number >= until {
                break;
            }
            // An entry that is dead has no holders; those of a range are not.
            entry.holders = entry.holders.saturating_sub(1);
            if entry.holders == 0 && entry.item.take().is_some() {
                self.bytes -= Self::cost(entry.size);
                self.dead += 1;
            }
        }
        self.clean_up();
    }

    /// Where the entry with this number is, or the first one after it.
    fn position(&self, number: u64) -> usize {
        match self.log.front() {
            // Who keeps up reads at the front.
            Some(front) if front.number >= number => 0,
            Some(_) => self.log.partition_point(|entry| entry.number < number),
            None => 0,
        }
    }

    /// Removes entries without their item: at the front at once, between others when they are many,
    /// so that a range that is never read does not gather them without end.
    fn clean_up(&mut self) {
        if self.dead > 0 {
            while self.log.front().is_some_and(|front| front.item.is_none()) {
                self.log.pop_front();
                self.dead -= 1;
            }
            if self.dead > FEW && self.dead > self.log.len() / 2 {
                self.log.retain(|entry| entry.item.is_some());
                self.dead = 0;
            }
        }
        if self.log.is_empty() && self.log.capacity() > SPIKE {
            self.log.shrink_to(IDLE);
        }
    }
}
