//! Compares the recordings of all backends with the stored recordings of the real CLI.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use claude_agent_testkit::recording::Recording;
use tests_e2e::compare::{self, Allowed, Baseline};
use tests_e2e::scenario::SCENARIOS;
use tests_e2e::{corpus, real_cli};

const ALLOWED: &str = include_str!("../../allowed_differences.md");

/// The outcome of each comparison, by scenario and backend.
static TABLE: Mutex<BTreeMap<&'static str, BTreeMap<&'static str, Outcome>>> =
    Mutex::new(BTreeMap::new());

/// Failed attempts, including those followed by a successful one.
static FAILED_ATTEMPTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Outcome {
    allowed: usize,
    refused: usize,
}

/// Compares a recording with the stored one and records the outcome for the table.
///
/// # Errors
/// Names every difference that is not allowed.
pub(crate) fn check(
    backend: &'static str,
    scenario: &'static str,
    recording: &Recording,
) -> Result<(), String> {
    let stored = corpus::load(&corpus::directory(&real_cli::pinned_version()), scenario)
        .map_err(|error| error.to_string())?;
    let allowed = Allowed::parse(ALLOWED).map_err(|error| error.to_string())?;
    let mut differences = compare::sequences(&stored, recording);
    differences.extend(compare::figures(&stored, recording));
    // New fields in the real CLI's lines are reported by `cargo xtask drift`.
    if backend != crate::REAL {
        differences.extend(baseline().differences(recording));
    }
    let (covered, refused): (Vec<_>, Vec<_>) =
        differences.into_iter().partition(|difference| allowed.covers(scenario, difference));
    let outcome = Outcome { allowed: covered.len(), refused: refused.len() };
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.entry(scenario).or_default().insert(backend, outcome);
    if refused.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    Err(format!("differs from the recording of the real CLI:\n{}", lines.join("\n")))
}

/// Records a failed attempt, so that a later successful one does not hide it.
pub(crate) fn record_failed_attempt(backend: &str, scenario: &str, fault: &str) {
    let beginning: Vec<&str> = fault.lines().take(6).collect();
    let mut tries = FAILED_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner);
    tries.push(format!("{backend}::{scenario}: {}", beginning.join(" | ")));
}

/// Returns the fields of each kind of line in the whole corpus.
fn baseline() -> &'static Baseline {
    static BASELINE: OnceLock<Baseline> = OnceLock::new();
    BASELINE.get_or_init(|| {
        let directory = corpus::directory(&real_cli::pinned_version());
        let mut baseline = Baseline::default();
        for scenario in SCENARIOS {
            // A missing recording fails the comparison of its own scenario.
            if let Ok(recording) = corpus::load(&directory, scenario.name) {
                baseline.add(&recording);
            }
        }
        baseline
    })
}

/// Prints the table of all comparisons.
#[expect(clippy::print_stdout, reason = "printing the table is the purpose of the run")]
pub(crate) fn print(backends: &[&str]) {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if table.is_empty() {
        return;
    }
    println!("agreement with the recorded CLI {}:", real_cli::pinned_version());
    let heading: Vec<String> = backends.iter().map(|name| format!("{name:>14}")).collect();
    println!("{:44}{}", "scenario", heading.concat());
    for (scenario, row) in table.iter() {
        let cells = backends.iter().map(|backend| match row.get(backend) {
            None => format!("{:>14}", "-"),
            Some(Outcome { allowed: 0, refused: 0 }) => format!("{:>14}", "agrees"),
            Some(Outcome { allowed, refused: 0 }) => {
                format!("{:>14}", format!("{allowed} allowed"))
            }
            Some(Outcome { refused, .. }) => format!("{:>14}", format!("{refused} DIFFER")),
        });
        println!("{scenario:44}{}", cells.collect::<String>());
    }
    let tries = FAILED_ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{} failed attempts", tries.len());
    tries.iter().for_each(|failed| println!("  {failed}"));
}
