//! The machine in random orders of events, against a model of what may never happen.
//!
//! A failure names its seed; `SESSION_SEED=<seed>` plays that case alone.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::session_world::{Choices, Logged, World};

const CASES: u64 = 6_000;

#[test]
fn in_any_order_of_events_the_machine_keeps_its_promises() {
    let one = std::env::var("SESSION_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(0..CASES, |seed| seed..seed + 1);
    let (mut events, mut ends) = (0, BTreeSet::new());
    for seed in seeds {
        let mut world = World::new(Choices::seeded(seed));
        let played = catch_unwind(AssertUnwindSafe(|| world.play()));
        if let Err(cause) = played {
            let text = cause.downcast_ref::<String>().cloned();
            let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let log: Vec<String> = world.log.iter().map(Logged::shown).collect();
            panic!("SESSION_SEED={seed}: {}\n{}", text.unwrap_or_default(), log.join("\n"));
        }
        events += world.events;
        ends.extend(world.end.map(|end| end.split(['(', ' ']).take(3).collect::<String>()));
    }
    if one.is_none() {
        assert!(events > 300_000, "{events}");
        // The cases are worth something only if they go everywhere.
        for end in [
            "endFinished",
            "endStopped",
            "endCompleted",
            "endFailedProcess",
            "endFailedLineTooLong",
        ] {
            assert!(ends.contains(end), "{end} is missing in {ends:?}");
        }
    }
}

/// As the fuzz target gives them: the same thing again and again, then anything.
#[test]
fn the_machine_keeps_its_promises_where_choices_are_given() {
    for byte in 0..=u8::MAX {
        World::new(Choices::given(&[byte, 0].repeat(60))).play();
    }
}
