//! Many seeded runs. `cargo xtask simulate --seed N` repeats a failing one.

use tests_e2e::prove::{approval_seeds, stores};
use tests_e2e::simulation::{KINDS, Total, run_traced, seeds};

/// The number of seeds in every test run; `cargo xtask simulate` plays more. Together with those of the other
/// tests there are fewer than 5,000.
const RUNS: u64 = 1_500;

/// How many of them run twice.
const TWICE: u64 = 100;

/// Events that are too rare for so few seeds; `cargo xtask simulate 60` counts them.
const RARE: [&str; 2] = ["dropped after polls: close", "runtime dropped under a query"];

#[test]
fn many_seeds_pass_and_cover_every_event() {
    let total: Total = seeds(0, |played| played < RUNS);
    println!("{total}");
    assert_eq!(total.violations, Vec::<String>::new());
    let happened = |kind: &&&str| {
        RARE.contains(*kind) || total.counts.keys().any(|what| what.starts_with(**kind))
    };
    let (_, missing): (Vec<&&str>, Vec<&&str>) = KINDS.iter().partition(happened);
    assert!(missing.is_empty(), "these never happened: {missing:?}");
}

#[test]
fn same_seed_gives_the_same_run() {
    for seed in 0..TWICE {
        let (first, second) = (run_traced(seed).trace, run_traced(seed).trace);
        let different = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!(different, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// Killed hosts on a store that fails. `cargo xtask prove stores` plays ten times as many.
#[test]
fn nothing_acknowledged_is_lost_or_stored_twice() {
    let mut total = stores::Played::default();
    let mut violations = Vec::new();
    for seed in 0..stores::AREA.repetitions as u64 / 10 {
        match stores::play(seed) {
            Ok(played) => total.add(&played),
            Err(violation) => violations.push(violation),
        }
    }
    println!("{total}");
    assert_eq!(violations, Vec::<String>::new());
    let counts =
        [total.killed, total.acknowledged, total.unacknowledged, total.recovered, total.orphaned];
    assert!(counts.iter().all(|count| *count > 5), "{total}");
}

/// Approvals with killed and competing hosts. `cargo xtask prove approval-seeds` plays twenty times as many.
#[test]
fn approved_calls_run_at_most_once() {
    let mut total = approval_seeds::Played::default();
    let mut violations = Vec::new();
    for seed in 0..approval_seeds::AREA.repetitions as u64 / 20 {
        match approval_seeds::play(seed) {
            Ok(played) => total.add(&played),
            Err(violation) => violations.push(violation),
        }
    }
    println!("{total}");
    assert_eq!(violations, Vec::<String>::new());
    let counts = [total.killed, total.competing, total.faults, total.executed, total.denied];
    assert!(counts.iter().all(|count| *count > 5), "{total}");
    assert!(total.unknown > 5 && total.expired > 5, "{total}");
}
