//! What is held for whom, when reading pauses and who gives way.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::{Backlog, BacklogLimits, BacklogRead, Subscriber};

/// An item is its number; it is as large as the test says.
pub(super) type Numbers = Backlog<u32>;

fn unlimited() -> Numbers {
    Backlog::new(BacklogLimits::default())
}

/// A backlog with room for so many items of ten bytes before reading pauses, and before somebody
/// has to give way.
fn limited(soft: usize, hard: usize) -> Numbers {
    let cost = Numbers::cost(10);
    Backlog::new(BacklogLimits::new(soft * cost, hard * cost))
}

fn push(backlog: &mut Numbers, numbers: impl IntoIterator<Item = u32>) {
    for number in numbers {
        backlog.push(number, 10);
    }
}

/// Everything that is there for a subscriber, and what came after it.
fn drain(backlog: &mut Numbers, subscriber: Subscriber) -> (Vec<u32>, BacklogRead) {
    let mut items = VecDeque::new();
    loop {
        match backlog.take(subscriber, 1000, &mut items) {
            BacklogRead::Items => {}
            other => return (items.into(), other),
        }
    }
}

#[test]
fn first_subscription_includes_earlier_items() {
    let mut backlog = unlimited();
    push(&mut backlog, 0..3);
    let first = backlog.subscribe();
    push(&mut backlog, 3..5);
    let second = backlog.subscribe();
    push(&mut backlog, 5..6);
    assert_eq!(drain(&mut backlog, second), (vec![5], BacklogRead::Empty));
    assert_eq!(drain(&mut backlog, first), (vec![0, 1, 2, 3, 4, 5], BacklogRead::Empty));
    assert_eq!(backlog.bytes(), 0);
}

#[test]
fn before_the_first_subscription_reading_pauses_and_nothing_is_dropped() {
    let mut backlog = limited(3, 5);
    push(&mut backlog, 0..2);
    assert!(backlog.may_read(false));
    push(&mut backlog, 2..3);
    assert!(!backlog.may_read(false));
    assert!(!backlog.enforce(false));
    let first = backlog.subscribe();
    assert_eq!(drain(&mut backlog, first), (vec![0, 1, 2], BacklogRead::Empty));
    assert!(backlog.may_read(false));
}

#[test]
fn turn_gets_the_items_between_begin_and_finish() {
    let mut backlog = unlimited();
    push(&mut backlog, 0..2);
    let turn = backlog.subscribe_turn();
    // What came before belongs to no turn, and is not held for a stream that may never come.
    assert_eq!(backlog.bytes(), 0);
    push(&mut backlog, 2..4);
    assert_eq!(backlog.bytes(), 0);
    assert_eq!(drain(&mut backlog, turn), (vec![], BacklogRead::Empty));
    backlog.begin(turn);
    push(&mut backlog, 4..6);
    // A second begin changes nothing.
    backlog.begin(turn);
    push(&mut backlog, 6..7);
    backlog.finish(turn);
    push(&mut backlog, 7..9);
    assert_eq!(drain(&mut backlog, turn), (vec![4, 5, 6], BacklogRead::Ended));
    assert_eq!(backlog.bytes(), 0);
    // A finished one cannot begin again.
    backlog.begin(turn);
    push(&mut backlog, 9..10);
    assert_eq!(drain(&mut backlog, turn), (vec![], BacklogRead::Ended));
    let later = backlog.subscribe();
    assert_eq!(drain(&mut backlog, later), (vec![], BacklogRead::Empty));
}

#[test]
fn a_turn_that_never_begins_ends_without_items() {
    let mut backlog = unlimited();
    let (cancelled, closed) = (backlog.subscribe_turn(), backlog.subscribe_turn());
    push(&mut backlog, 0..2);
    backlog.finish(cancelled);
    assert_eq!(drain(&mut backlog, cancelled), (vec![], BacklogRead::Ended));
    backlog.close();
    assert_eq!(drain(&mut backlog, closed), (vec![], BacklogRead::Ended));
}

#[test]
fn after_close_subscribers_end_with_the_present_items() {
    let mut backlog = unlimited();
    push(&mut backlog, 0..2);
    backlog.close();
    push(&mut backlog, 2..3);
    let first = backlog.subscribe();
    assert_eq!(drain(&mut backlog, first), (vec![0, 1], BacklogRead::Ended));
    let second = backlog.subscribe();
    assert_eq!(drain(&mut backlog, second), (vec![], BacklogRead::Ended));
}

#[test]
fn subscriber_takes_up_to_its_limit_and_at_least_one_item() {
    let mut backlog = unlimited();
    let subscriber = backlog.subscribe();
    push(&mut backlog, 0..10);
    for (most, expected) in [(0, vec![0]), (9, vec![1]), (30, vec![2, 3, 4]), (39, vec![5, 6, 7])] {
        let mut items = VecDeque::new();
        assert_eq!(backlog.take(subscriber, most, &mut items), BacklogRead::Items);
        assert_eq!(items, expected, "{most}");
    }
    assert_eq!(drain(&mut backlog, subscriber), (vec![8, 9], BacklogRead::Empty));
}

#[test]
fn unsubscribe_frees_exclusive_items() {
    let mut backlog = unlimited();
    let (first, second) = (backlog.subscribe(), backlog.subscribe());
    push(&mut backlog, 0..4);
    let mut items = VecDeque::new();
    assert_eq!(backlog.take(second, 20, &mut items), BacklogRead::Items);
    assert_eq!(backlog.bytes(), 4 * Numbers::cost(10));
    backlog.unsubscribe(first);
    assert_eq!(backlog.bytes(), 2 * Numbers::cost(10));
    assert_eq!(drain(&mut backlog, first), (vec![], BacklogRead::Ended));
    assert_eq!(drain(&mut backlog, second), (vec![2, 3], BacklogRead::Empty));
    backlog.unsubscribe(second);
    push(&mut backlog, 4..6);
    assert_eq!(backlog.bytes(), 0);
}

/// An item that counts how often it was cloned.
struct Counting(Rc<Cell<usize>>);

impl Clone for Counting {
    fn clone(&self) -> Self {
        self.0.set(self.0.get() + 1);
        Self(Rc::clone(&self.0))
    }
}

#[test]
fn the_last_holder_gets_the_item_itself() {
    for subscribers in 1..4 {
        let clones = Rc::new(Cell::new(0));
        let mut backlog = Backlog::new(BacklogLimits::default());
        let all: Vec<_> = (0..subscribers).map(|_| backlog.subscribe()).collect();
        for _ in 0..10 {
            backlog.push(Counting(Rc::clone(&clones)), 1);
        }
        for subscriber in all {
            let mut items = VecDeque::new();
            assert_eq!(backlog.take(subscriber, 1000, &mut items), BacklogRead::Items);
            assert_eq!(items.len(), 10);
        }
        assert_eq!(clones.get(), 10 * (subscribers - 1));
        // Nothing is left of them but the counter here.
        assert_eq!(Rc::strong_count(&clones), 1);
    }
}

#[test]
fn reading_continues_above_the_soft_limit_for_waiters() {
    let mut backlog = limited(2, 100);
    let (slow, quick) = (backlog.subscribe(), backlog.subscribe());
    push(&mut backlog, 0..2);
    assert!(!backlog.may_read(false));
    assert!(backlog.may_read(true));
    // It takes what there is; that it has nothing left is not known before it asks again.
    let mut items = VecDeque::new();
    assert_eq!(backlog.take(quick, 1000, &mut items), BacklogRead::Items);
    assert!(!backlog.may_read(false));
    assert_eq!(backlog.take(quick, 1000, &mut items), BacklogRead::Empty);
    assert!(backlog.may_read(false));
    // It got something, and does not wait any more.
    push(&mut backlog, 2..3);
    assert!(!backlog.may_read(false));
    assert_eq!(drain(&mut backlog, quick), (vec![2], BacklogRead::Empty));
    assert!(backlog.may_read(false));
    backlog.unsubscribe(quick);
    assert!(!backlog.may_read(false));
    assert_eq!(drain(&mut backlog, slow), (vec![0, 1, 2], BacklogRead::Empty));
}

#[test]
fn a_turn_that_was_polled_before_it_began_waits() {
    let mut backlog = limited(2, 100);
    let stream = backlog.subscribe();
    let turn = backlog.subscribe_turn();
    assert_eq!(drain(&mut backlog, turn), (vec![], BacklogRead::Empty));
    // What others get does not still its hunger.
    push(&mut backlog, 0..5);
    assert!(backlog.may_read(false));
    backlog.begin(turn);
    assert!(backlog.may_read(false));
    push(&mut backlog, 5..6);
    assert!(!backlog.may_read(false));
    assert_eq!(drain(&mut backlog, turn), (vec![5], BacklogRead::Empty));
    assert!(backlog.may_read(false));
    // A turn that is over does not wait.
    backlog.finish(turn);
    assert!(!backlog.may_read(false));
    assert_eq!(drain(&mut backlog, stream).0, vec![0, 1, 2, 3, 4, 5]);
}

#[test]
fn reading_pauses_at_the_hard_limit_without_waiters() {
    let mut backlog = limited(2, 4);
    let slow = backlog.subscribe();
    push(&mut backlog, 0..4);
    assert!(!backlog.enforce(false));
    assert!(!backlog.may_read(false));
    assert_eq!(drain(&mut backlog, slow), (vec![0, 1, 2, 3], BacklogRead::Empty));
}

#[test]
fn hard_limit_ends_the_largest_holders_if_there_are_waiters() {
    let mut backlog = limited(2, 4);
    let (slow, nearly) = (backlog.subscribe(), backlog.subscribe());
    push(&mut backlog, 0..3);
    let mut items = VecDeque::new();
    assert_eq!(backlog.take(nearly, 20, &mut items), BacklogRead::Items);
    push(&mut backlog, 3..4);
    assert!(backlog.enforce(true));
    assert_eq!(backlog.bytes(), 2 * Numbers::cost(10));
    assert_eq!(drain(&mut backlog, slow), (vec![], BacklogRead::Lagged { bytes: 40 }));
    assert_eq!(drain(&mut backlog, slow), (vec![], BacklogRead::Ended));
    // There is room again, and nobody else has to give way.
    assert!(!backlog.enforce(true));
    assert_eq!(drain(&mut backlog, nearly), (vec![2, 3], BacklogRead::Empty));
    // What comes is not held for the one that lagged.
    backlog.unsubscribe(nearly);
    push(&mut backlog, 4..9);
    assert_eq!(backlog.bytes(), 0);
}

#[test]
fn equal_holders_lag_together() {
    let mut backlog = limited(2, 4);
    let (one, other) = (backlog.subscribe(), backlog.subscribe());
    let hungry = backlog.subscribe_turn();
    push(&mut backlog, 0..4);
    assert_eq!(drain(&mut backlog, hungry), (vec![], BacklogRead::Empty));
    // The hungry turn waits, nobody else has to say so.
    assert!(backlog.enforce(false));
    assert_eq!(backlog.bytes(), 0);
    for subscriber in [one, other] {
        assert_eq!(drain(&mut backlog, subscriber).1, BacklogRead::Lagged { bytes: 40 });
    }
    backlog.begin(hungry);
    push(&mut backlog, 4..5);
    assert_eq!(drain(&mut backlog, hungry), (vec![4], BacklogRead::Empty));
}

#[test]
fn first_subscription_reports_discarded_items() {
    let mut backlog = limited(2, 4);
    push(&mut backlog, 0..4);
    // Nobody has to be woken.
    assert!(!backlog.enforce(true));
    assert_eq!(backlog.bytes(), 0);
    push(&mut backlog, 4..9);
    assert_eq!(backlog.bytes(), 0);
    let first = backlog.subscribe();
    assert_eq!(drain(&mut backlog, first), (vec![], BacklogRead::Lagged { bytes: 40 }));
    let second = backlog.subscribe();
    push(&mut backlog, 9..10);
    assert_eq!(drain(&mut backlog, second), (vec![9], BacklogRead::Empty));
}

#[test]
fn extreme_limits_do_not_stop_reading() {
    for (soft, hard) in [(0, 0), (10, 0), (0, 10), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        let mut backlog = Backlog::new(BacklogLimits::new(soft, hard));
        assert!(backlog.may_read(false), "{soft} {hard}");
        let first = backlog.subscribe();
        push(&mut backlog, 0..1);
        assert_eq!(drain(&mut backlog, first), (vec![0], BacklogRead::Empty));
        assert!(backlog.may_read(false), "{soft} {hard}");
    }
}

#[test]
fn unread_range_does_not_accumulate_freed_entries() {
    let mut backlog = unlimited();
    let turn = backlog.subscribe_turn();
    let stream = backlog.subscribe();
    backlog.begin(turn);
    push(&mut backlog, 0..1);
    backlog.finish(turn);
    for number in 1..100_000 {
        push(&mut backlog, [number]);
        assert!(matches!(drain(&mut backlog, stream), (_, BacklogRead::Empty)));
    }
    // An item is named once in the text of a backlog, and an entry without one once, too.
    let entries = format!("{backlog:?}").matches("Entry").count();
    assert!(entries < 1000, "{entries}");
    assert_eq!(backlog.bytes(), Numbers::cost(10));
    assert_eq!(drain(&mut backlog, turn), (vec![0], BacklogRead::Ended));
}
