//! Runs seeds of the simulation for a given time, or one seed with its whole trace.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tests_e2e::simulation::{run_traced, seeds};

use super::Outcome;

/// Runs one seed and prints its trace.
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

/// Runs seeds for this many seconds, from the given or a random seed on.
pub(crate) fn long(seconds: &str, first: Option<&str>) -> Outcome {
    let until = Instant::now() + Duration::from_secs(seconds.parse()?);
    let first = match first {
        Some(first) => first.parse()?,
        None => RandomState::new().hash_one(()) >> 16,
    };
    println!("== starting with seed {first}");
    let total = seeds(first, |_| Instant::now() < until);
    println!("{total}");
    for violation in &total.violations {
        println!("{violation}");
    }
    Ok(if total.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
