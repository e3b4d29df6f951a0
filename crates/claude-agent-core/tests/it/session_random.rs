//! The machine in random orders of events, against a model of what may never happen.
//!
//! A failure names its seed; `SESSION_SEED=<seed>` plays that case alone.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::seeds::times;
use crate::session_model::{Choices, LogEntry, Model};

/// The number of cases in every test run; see [`times`].
const CASES: u64 = 1_000;

#[test]
fn machine_keeps_its_invariants_in_any_order_of_events() {
    let one = std::env::var("SESSION_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(0..times(CASES), |seed| seed..seed + 1);
    let (mut events, mut ends) = (0, BTreeSet::new());
    for seed in seeds {
        let mut model = Model::new(Choices::seeded(seed));
        let played = catch_unwind(AssertUnwindSafe(|| model.play()));
        if let Err(cause) = played {
            let text = cause.downcast_ref::<String>().cloned();
            let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let log: Vec<String> = model.log.iter().map(LogEntry::shown).collect();
            panic!("SESSION_SEED={seed}: {}\n{}", text.unwrap_or_default(), log.join("\n"));
        }
        events += model.events;
        ends.extend(model.end.map(|end| end.split(['(', ' ']).take(3).collect::<String>()));
    }
    if one.is_none() {
        assert!(events > 50 * CASES, "{events}");
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
fn machine_keeps_its_invariants_for_given_choices() {
    for byte in 0..=u8::MAX {
        Model::new(Choices::given(&[byte, 0].repeat(60))).play();
    }
}
