//! Records the transcripts that the real CLI writes.

use std::process::ExitCode;

use tests_e2e::transcripts::{self, SCENARIOS};

use super::{Outcome, install};

/// Records the scenarios with these names, or all.
pub(super) fn record(names: &[String]) -> Outcome {
    let cli = install()?;
    let runtime = tokio::runtime::Runtime::new()?;
    for name in names {
        if !SCENARIOS.iter().any(|scenario| scenario.name == name) {
            return Err(format!("unknown scenario: \"{name}\"").into());
        }
    }
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    for scenario in SCENARIOS.iter().filter(|scenario| is_chosen(scenario.name)) {
        let files = runtime.block_on(transcripts::record(scenario, &cli))?;
        transcripts::store(scenario.name, &files)?;
        println!("{}: {} files", scenario.name, files.len());
    }
    Ok(ExitCode::SUCCESS)
}
