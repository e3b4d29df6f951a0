//! The backlog at random, against a model that holds a list per subscriber.

use std::collections::{BTreeMap, VecDeque};

use super::tests::Numbers;
use super::{Backlog, BacklogLimits, BacklogRead, Subscriber};

/// A small generator of numbers, so that a seed is a run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

/// The same by lists: every subscriber has its own, with number and size of each item.
#[derive(Default)]
struct Model {
    early: Option<Vec<(u32, usize)>>,
    early_lost: Option<u64>,
    lists: BTreeMap<Subscriber, List>,
    closed: bool,
}

#[derive(Default)]
struct List {
    items: VecDeque<(u32, usize)>,
    begun: bool,
    finished: bool,
    lagged: Option<u64>,
    told: bool,
    hungry: bool,
}

impl List {
    fn cost(&self) -> usize {
        self.items.iter().map(|(_, size)| Numbers::cost(*size)).sum()
    }
}

impl Model {
    fn push(&mut self, item: (u32, usize)) {
        self.early.iter_mut().for_each(|early| early.push(item));
        for list in self.lists.values_mut() {
            if list.begun && !list.finished && list.lagged.is_none() {
                list.items.push_back(item);
                list.hungry = false;
            }
        }
    }

    fn bytes(&self) -> usize {
        let held =
            self.lists.values().flat_map(|list| &list.items).chain(self.early.iter().flatten());
        held.copied().collect::<BTreeMap<u32, usize>>().into_values().map(Numbers::cost).sum()
    }

    fn take(&mut self, subscriber: Subscriber, most: usize) -> (Vec<u32>, BacklogRead) {
        let Some(list) = self.lists.get_mut(&subscriber) else {
            return (vec![], BacklogRead::Ended);
        };
        if let Some(bytes) = list.lagged {
            let told = std::mem::replace(&mut list.told, true);
            return (vec![], if told { BacklogRead::Ended } else { BacklogRead::Lagged { bytes } });
        }
        let (mut items, mut room) = (vec![], most);
        while let Some((item, size)) = list.items.front().copied() {
            if size > room && !items.is_empty() {
                break;
            }
            room = room.saturating_sub(size);
            items.push(item);
            list.items.pop_front();
        }
        let goes_on = !list.finished && !self.closed;
        list.hungry = items.is_empty() && goes_on;
        let taken = match (items.is_empty(), goes_on) {
            (false, _) => BacklogRead::Items,
            (true, true) => BacklogRead::Empty,
            (true, false) => BacklogRead::Ended,
        };
        (items, taken)
    }

    fn anybody_waits(&self) -> bool {
        !self.closed && self.lists.values().any(|list| list.hungry && !list.finished)
    }

    fn enforce(&mut self, hard: usize, has_waiters: bool) -> bool {
        let mut anyone = false;
        if self.closed || !(has_waiters || self.anybody_waits()) {
            return anyone;
        }
        while self.bytes() >= hard {
            if let Some(early) = self.early.take() {
                self.early_lost = Some(early.iter().map(|(_, size)| *size as u64).sum());
                continue;
            }
            let most = self.lists.values().map(List::cost).max().unwrap();
            let list = self.lists.values_mut().find(|list| list.cost() == most).unwrap();
            list.lagged = Some(list.items.drain(..).map(|(_, size)| size as u64).sum());
            list.hungry = false;
            anyone = true;
        }
        anyone
    }
}

struct Trial {
    random: Random,
    soft: usize,
    hard: usize,
    backlog: Numbers,
    model: Model,
    known: Vec<Subscriber>,
    pushed: u32,
    largest: usize,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let hard = 1 + random.below(5000);
        let soft = 1 + random.below(hard);
        let backlog = Backlog::new(BacklogLimits::new(soft, hard));
        let model = Model { early: Some(vec![]), ..Model::default() };
        Self { random, soft, hard, backlog, model, known: vec![], pushed: 0, largest: 0 }
    }

    fn any(&mut self) -> Option<Subscriber> {
        let count = self.known.len();
        (count > 0).then(|| self.known[self.random.below(count)])
    }

    /// The driver: makes room, reads one item if it may.
    fn drive(&mut self) {
        let waits = self.random.below(4) == 0;
        assert_eq!(self.backlog.enforce(waits), self.model.enforce(self.hard, waits));
        let anybody = waits || self.model.anybody_waits();
        let may = self.backlog.may_read(waits);
        // The property: nobody waits while nobody reads.
        assert!(may || !anybody, "somebody waits and nobody reads");
        let room = self.model.bytes() < self.soft;
        assert_eq!(may, anybody || room || self.model.closed);
        if may {
            let size = self.random.below(300);
            self.largest = self.largest.max(Numbers::cost(size));
            self.backlog.push(self.pushed, size);
            if !self.model.closed {
                self.model.push((self.pushed, size));
            }
            self.pushed += 1;
        }
    }

    fn subscribe(&mut self) {
        let subscriber = self.backlog.subscribe();
        let mut list = List { begun: true, ..List::default() };
        list.items.extend(self.model.early.take().into_iter().flatten());
        list.lagged = self.model.early_lost.take();
        self.model.lists.insert(subscriber, list);
        self.known.push(subscriber);
    }

    fn subscribe_turn(&mut self) {
        let subscriber = self.backlog.subscribe_turn();
        (self.model.early, self.model.early_lost) = (None, None);
        self.model.lists.insert(subscriber, List::default());
        self.known.push(subscriber);
    }

    fn subscribe_replay(&mut self) {
        let subscriber = self.backlog.subscribe_replay();
        self.model.lists.insert(subscriber, List { begun: true, ..List::default() });
        self.known.push(subscriber);
    }

    fn step(&mut self) {
        match self.random.below(42) {
            40 => self.subscribe_replay(),
            41 if self.random.below(4) == 0 => {
                self.backlog.release_early();
                (self.model.early, self.model.early_lost) = (None, None);
            }
            0 => self.subscribe(),
            1 => self.subscribe_turn(),
            2..4 => {
                let Some(one) = self.any() else { return };
                self.backlog.begin(one);
                if let Some(list) = self.model.lists.get_mut(&one).filter(|list| !list.finished) {
                    list.begun = true;
                }
            }
            4 => {
                let Some(one) = self.any() else { return };
                self.backlog.finish(one);
                self.model.lists.get_mut(&one).into_iter().for_each(|list| list.finished = true);
            }
            5 => {
                let Some(one) = self.any() else { return };
                self.backlog.unsubscribe(one);
                self.model.lists.remove(&one);
            }
            6 if self.random.below(20) == 0 => {
                self.backlog.close();
                self.model.closed = true;
            }
            7..20 => {
                let Some(one) = self.any() else { return };
                let most = self.random.below(900);
                let mut items = VecDeque::new();
                let taken = self.backlog.take(one, most, &mut items);
                // In order, all of its range, nothing twice: the list says what is next.
                assert_eq!((items.into(), taken), self.model.take(one, most));
            }
            _ => self.drive(),
        }
        assert_eq!(self.backlog.bytes(), self.model.bytes());
        assert!(self.backlog.bytes() <= self.hard + self.largest);
    }

    /// Everybody reads to the end of what is there.
    fn settle(&mut self) {
        for one in self.known.clone() {
            loop {
                let mut items = VecDeque::new();
                let taken = self.backlog.take(one, usize::MAX, &mut items);
                assert_eq!((items.into(), taken), self.model.take(one, usize::MAX));
                if taken != BacklogRead::Items {
                    break;
                }
            }
        }
        let early: usize =
            self.model.early.iter().flatten().map(|item| Numbers::cost(item.1)).sum();
        assert_eq!(self.backlog.bytes(), early);
    }
}

#[test]
fn random_backlogs_never_stall_and_deliver_every_range() {
    for seed in 0..200 {
        let trial = std::panic::catch_unwind(|| {
            let mut trial = Trial::new(seed);
            for _ in 0..400 {
                trial.step();
            }
            trial.settle();
        });
        assert!(trial.is_ok(), "seed {seed}");
    }
}
