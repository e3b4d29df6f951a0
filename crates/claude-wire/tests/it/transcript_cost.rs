//! What reading crafted transcripts costs: in proportion to their size, and not much more than an
//! ordinary transcript.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claude_wire::transcript::{Fork, ForkIds, MessageFilter, Tree};

use super::transcript_lines::{bytes_of, index};
use super::transcript_shapes::{CRAFTED, ORDINARY, Shape};

/// The size of the smallest transcripts: reading one takes milliseconds, so that noise is not decisive.
const BYTES: usize = 60_000;
/// Four times the size may cost this many times as much: linear is 4, quadratic is 16.
const MOST_GROWTH: u32 = 10;
/// How many times an ordinary transcript of the same size a crafted one may cost.
const MOST_FACTOR: u32 = 20;
/// The cheapest of this many repetitions counts. A machine that is busy with other work makes some of them slow, even by
/// the CPU time of a thread: processors share their caches.
const MOST_REPETITIONS: usize = 40;

/// What a caller does with a transcript.
type Operation = (&'static str, fn(&[u8]));

const OPERATIONS: [Operation; 5] = [
    ("messages", |bytes| {
        drop(index(bytes).tree().message_list(MessageFilter::default()));
    }),
    ("all messages", |bytes| {
        let filter = MessageFilter::default().include_system(true).include_compacted(true);
        drop(index(bytes).tree().message_list(filter));
    }),
    ("issues", |bytes| drop(index(bytes).tree().issues())),
    ("fork", |bytes| {
        let index = index(bytes);
        copy(bytes, &index.tree(), None);
    }),
    ("fork up to a message", |bytes| {
        let index = index(bytes);
        copy(bytes, &index.tree(), Some("end"));
    }),
];

/// Copies a session in memory.
fn copy(bytes: &[u8], tree: &Tree<'_>, up_to: Option<&str>) {
    let plan = tree.fork(up_to).unwrap();
    let mut fork = Fork::new(&plan, ForkIds::new("s", "n", "now"), || [0; 16]);
    for entry in plan.state_entries() {
        fork.carry(entry, bytes_of(bytes, entry));
    }
    for entry in plan.entries() {
        drop(fork.entry(entry, bytes_of(bytes, entry)).unwrap());
    }
    drop(fork.trailer("title").unwrap());
}

/// The CPU time of this thread: other programs do not count.
#[cfg(unix)]
fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[cfg(not(unix))]
fn now() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// The cheapest repetition so far, for each size.
struct Costs {
    crafted: [Duration; 3],
    ordinary: Duration,
}

impl Costs {
    fn is_right(&self) -> bool {
        let [small, _, large] = self.crafted;
        self.grows_slowly() && large <= small * MOST_GROWTH && large <= self.ordinary * MOST_FACTOR
    }

    fn grows_slowly(&self) -> bool {
        let [small, middle, _] = self.crafted;
        middle <= small * 7 / 2
    }
}

fn measure(cheapest: &mut Duration, run: fn(&[u8]), bytes: &[u8]) {
    let before = now();
    run(bytes);
    *cheapest = now().saturating_sub(before).min(*cheapest);
}

/// Returns what is wrong with the costs of a shape: with all repetitions, so that only what is always slow is wrong.
fn check(shape: Shape, operation: Operation) -> Option<String> {
    let (name, make) = shape;
    let (what, run) = operation;
    let sizes = [1, 2, 4].map(|factor| make(factor * BYTES));
    let usual = ORDINARY.1(4 * BYTES);
    let mut costs = Costs { crafted: [Duration::MAX; 3], ordinary: Duration::MAX };
    for _ in 0..MOST_REPETITIONS {
        for (cheapest, bytes) in costs.crafted.iter_mut().zip(&sizes).take(2) {
            measure(cheapest, run, bytes);
        }
        // Larger ones would take hours where the rest is wrong already.
        if costs.grows_slowly() {
            measure(&mut costs.crafted[2], run, &sizes[2]);
            measure(&mut costs.ordinary, run, &usual);
        }
        if costs.is_right() {
            return None;
        }
    }
    Some(format!("{name}, {what}: {:?}, ordinary: {:?}", costs.crafted, costs.ordinary))
}

fn check_all(operation: usize) {
    let wrong: Vec<String> =
        CRAFTED.iter().filter_map(|shape| check(*shape, OPERATIONS[operation])).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn messages_of_crafted_transcripts_cost_little() {
    check_all(0);
}

#[test]
fn messages_before_compactions_of_crafted_transcripts_cost_little() {
    check_all(1);
}

#[test]
fn issues_of_crafted_transcripts_cost_little() {
    check_all(2);
}

#[test]
fn forks_of_crafted_transcripts_cost_little() {
    check_all(3);
}

#[test]
fn forks_of_crafted_transcripts_up_to_a_message_cost_little() {
    check_all(4);
}

#[test]
fn crafted_transcripts_have_about_the_same_size() {
    for (name, make) in CRAFTED.into_iter().chain([ORDINARY]) {
        let length = make(BYTES).len();
        assert!((BYTES * 3 / 4..BYTES * 3 / 2).contains(&length), "{name}: {length}");
    }
}

/// What a caller that may be gone does with a tree.
type Choice = (&'static str, fn(&Tree<'_>));

const CHOICES: [Choice; 5] = [
    ("messages", |tree| drop(tree.message_list(MessageFilter::default()))),
    ("all messages", |tree| {
        drop(tree.message_list(MessageFilter::default().include_compacted(true)));
    }),
    ("issues", |tree| drop(tree.issues())),
    ("fork", |tree| drop(tree.fork(None))),
    ("fork up to a message", |tree| drop(tree.fork(Some("end")))),
];

#[test]
fn choosing_a_conversation_ends_soon_after_its_caller_is_gone() {
    for (name, make) in CRAFTED.into_iter().chain([ORDINARY]) {
        let bytes = make(20_000);
        let index = index(&bytes);
        for (what, choose) in CHOICES {
            // Returns how often the tree asks whether the caller is gone, who is after this many times.
            let asked = |limit: usize| {
                let count = AtomicUsize::new(0);
                let is_cancelled = || count.fetch_add(1, Ordering::Relaxed) >= limit;
                choose(&index.cancellable_tree(&is_cancelled));
                count.into_inner()
            };
            let all = asked(usize::MAX);
            assert!(all > index.len(), "{name}, {what}: {all} of {} entries", index.len());
            for part in 0..16 {
                let limit = all * part / 16;
                let more = asked(limit) - limit;
                // Some passes over a list ask for each of its entries, and do nothing else.
                assert!(
                    more <= 100 + 2 * index.len(),
                    "{name}, {what}: asked {more} times after {limit} of {all}"
                );
            }
        }
    }
}

#[test]
fn a_tree_that_nobody_waits_for_costs_next_to_nothing() {
    for (name, make) in CRAFTED.into_iter().chain([ORDINARY]) {
        let bytes = make(4 * BYTES);
        let index = index(&bytes);
        if index.len() < 1000 {
            continue;
        }
        for (what, choose) in CHOICES {
            let once = |is_gone: bool| {
                let before = now();
                choose(&index.cancellable_tree(&|| is_gone));
                now().saturating_sub(before)
            };
            let (mut gone, mut waiting) = (Duration::MAX, Duration::MAX);
            for _ in 0..MOST_REPETITIONS {
                (gone, waiting) = (gone.min(once(true)), waiting.min(once(false)));
                if gone.saturating_mul(4) <= waiting {
                    break;
                }
            }
            assert!(gone.saturating_mul(4) <= waiting, "{name}, {what}: {gone:?} of {waiting:?}");
        }
    }
}
