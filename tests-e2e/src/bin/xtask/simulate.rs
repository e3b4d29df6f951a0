//! Runs that follow from a seed, for as long as one says, or one of them with all that happens.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tests_e2e::simulation::{run_traced, seeds};

use super::Outcome;

/// Plays one seed and prints everything that happened.
pub(crate) fn one(seed: &str) -> Outcome {
    let report = run_traced(seed.parse()?);
    for line in &report.trace {
        println!("{line}");
    }
    for violation in &report.violations {
        println!("{violation}");
    }
    Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays seeds for so many seconds, from the given one on or from any.
pub(crate) fn long(seconds: &str, first: Option<&str>) -> Outcome {
    let until = Instant::now() + Duration::from_secs(seconds.parse()?);
    let first = match first {
        Some(first) => first.parse()?,
        None => RandomState::new().hash_one(()) >> 16,
    };
    println!("== from seed {first} on");
    let total = seeds(first, |_| Instant::now() < until);
    println!("{total}");
    for violation in &total.violations {
        println!("{violation}");
    }
    Ok(if total.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
