//! Repeats the experiments of `docs/proofs.md` and counts the results.

use std::error::Error;
use std::process::ExitCode;

use claude_agent_testkit::mock_api::Script;
use claude_agent_testkit::recording::today;
use tests_e2e::harness::Harness;
use tests_e2e::prove::{AREAS, Area, Load, deferred, killed_hosts, postgres, stores};

use super::{Outcome, install};

/// Proves the given areas, or all, and prints a row for each in the format of `docs/proofs.md`.
pub(crate) fn run(names: &[String]) -> Outcome {
    let known = |name: &str| AREAS.iter().any(|area| area.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        return Err(format!("unknown area: \"{unknown}\"").into());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let mut outcome = ExitCode::SUCCESS;
    for area in
        AREAS.iter().filter(|area| names.is_empty() || names.iter().any(|name| name == area.name))
    {
        let (holds, figures) = match area.name {
            "stores" => prove_stores(area),
            "postgres" => match postgres::play(area.repetitions) {
                Ok(figures) => (true, figures),
                Err(violation) => (false, violation),
            },
            _ => runtime.block_on(prove(area))?,
        };
        println!(
            "| `{}` | {} | {} | {figures} | {} |",
            area.name,
            area.claim,
            area.repetitions,
            today()
        );
        if !holds {
            println!("{} does not hold", area.name);
            outcome = ExitCode::FAILURE;
        }
    }
    Ok(outcome)
}

/// Plays seeded runs, each on runtimes of its own.
fn prove_stores(area: &Area) -> (bool, String) {
    let (mut total, mut violations) = (stores::Played::default(), 0);
    for seed in 0..area.repetitions as u64 {
        match stores::play(seed) {
            Ok(played) => total.add(&played),
            Err(violation) => {
                println!("{violation}");
                violations += 1;
            }
        }
        if (seed + 1) % 100 == 0 {
            println!("{} of {}: {total}", seed + 1, area.repetitions);
        }
    }
    (violations == 0, format!("{violations} violations; {total}"))
}

async fn prove(area: &Area) -> Result<(bool, String), Box<dyn Error>> {
    let cli = install()?;
    match area.name {
        "deferred" => {
            let harness = Harness::real(Script::new(), &cli).await?;
            let _load = Load::start();
            let (mut asked, mut executed) = (0, 0);
            for done in 1..=area.repetitions {
                let count = deferred::count(&harness, 1).await?;
                asked += count.asked;
                executed += count.executed;
                println!("{done} of {}: {asked} asked, {executed} executed", area.repetitions);
            }
            let holds = asked == area.repetitions && executed == 0;
            Ok((holds, format!("{asked} asked, {executed} executed")))
        }
        "killed-hosts" => {
            let harness = Harness::real(Script::new(), &cli).await?;
            let host = std::env::current_exe()?.with_file_name("host");
            if !host.exists() {
                return Err(
                    "the host is missing; help: run `cargo build -p tests-e2e --bins`".into()
                );
            }
            let count = killed_hosts::count(&harness, &host, area.repetitions, 1).await?;
            let figures = format!(
                "{} killed, {} turns acknowledged and none lost, {} commands executed and none twice",
                count.killed, count.acknowledged, count.executed
            );
            Ok((true, figures))
        }
        other => Err(format!("no experiment for area \"{other}\"").into()),
    }
}
