//! Checks of the stored corpus, which need no CLI.

use libtest_mimic::{Failed, Trial};
use tests_e2e::scenario::SCENARIOS;
use tests_e2e::{corpus, real_cli, scrub};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test(
        "corpus::contains_every_scenario_and_no_machine_details",
        is_complete_and_clean,
    )]
}

fn is_complete_and_clean() -> Result<(), Failed> {
    let version = real_cli::pinned_version();
    for scenario in SCENARIOS {
        let recording = corpus::load(&corpus::directory(&version), scenario.name)?;
        let header = &recording.header;
        let named = header.cli_version == version
            && header.scenario == scenario.name
            && !header.date.is_empty();
        if !named || recording.exit().is_none() {
            return Err(format!("{}: the recording is incomplete", scenario.name).into());
        }
        let leftovers = scrub::leftovers(&recording);
        if !leftovers.is_empty() {
            return Err(format!("{} holds {leftovers:?}", scenario.name).into());
        }
    }
    Ok(())
}
