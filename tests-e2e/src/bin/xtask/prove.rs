//! Repeats the experiments of `docs/proofs.md` and counts the results.

use std::error::Error;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use claude_agent_testkit::mock_api::Script;
use claude_agent_testkit::recording::today;
use tests_e2e::harness::Harness;
#[cfg(unix)]
use tests_e2e::prove::lost_sessions;
#[cfg(target_os = "linux")]
use tests_e2e::prove::server_faults::{self, Played, ServerKind};
use tests_e2e::prove::{
    AREAS, Area, Load, approval_seeds, approvals, continuations, deferred, killed_hosts, stores,
    two_hosts,
};
use tests_e2e::real_cli;
#[cfg(target_os = "linux")]
use tests_servers::postgres::Server;

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
            "stores" => prove_seeds(area, stores::play, stores::Played::add),
            "approval-seeds" => {
                prove_seeds(area, approval_seeds::play, approval_seeds::Played::add)
            }
            #[cfg(target_os = "linux")]
            "postgres" => prove_server(area, ServerKind::Postgres)?,
            #[cfg(target_os = "linux")]
            "records" => prove_server(area, ServerKind::PostgresRecords)?,
            #[cfg(target_os = "linux")]
            "s3" => prove_server(area, ServerKind::S3)?,
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
fn prove_seeds<P: Default + Display>(
    area: &Area,
    play: fn(u64) -> Result<P, String>,
    add: fn(&mut P, &P),
) -> (bool, String) {
    let (mut total, mut violations) = (P::default(), 0);
    for seed in 0..area.repetitions as u64 {
        match play(seed) {
            Ok(played) => add(&mut total, &played),
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

/// Plays seeded runs on one server.
#[cfg(target_os = "linux")]
fn prove_server(area: &Area, kind: ServerKind) -> Result<(bool, String), Box<dyn Error>> {
    let report = |runs: usize, played: &Played| {
        if runs.is_multiple_of(10) {
            println!("{runs} of {}: {played}", area.repetitions);
        }
    };
    Ok(match server_faults::play(kind, &host()?, area.repetitions, report) {
        Ok(played) => (true, format!("0 violations; {played}")),
        Err(violation) => (false, violation),
    })
}

/// Returns the program that is killed.
fn host() -> Result<PathBuf, Box<dyn Error>> {
    let host = std::env::current_exe()?.with_file_name("host");
    if !host.exists() {
        return Err("the host is missing; help: run `cargo build -p tests-e2e --bins`".into());
    }
    Ok(host)
}

async fn prove_killed_hosts(
    area: &Area,
    harness: &Harness,
    url: &str,
) -> Result<(bool, String), Box<dyn Error>> {
    let count = killed_hosts::count(harness, &host()?, url, area.repetitions, 1).await?;
    let figures = format!(
        "{} killed, {} turns acknowledged and none lost, {} commands executed and none twice",
        count.killed, count.acknowledged, count.executed
    );
    Ok((true, figures))
}

/// Plays the losses in turn, on each of the pinned CLIs.
async fn prove_two_hosts(area: &Area) -> Result<(bool, String), Box<dyn Error>> {
    let (mut figures, mut violations) = (Vec::new(), 0);
    for version in real_cli::pinned_versions() {
        let cli = real_cli::install_version(&version)?;
        let play = async |seed: u64| {
            let harness = Harness::real(Script::new(), &cli).await?;
            two_hosts::count(&harness, two_hosts::loss(seed), seed).await
        };
        let mut total = two_hosts::Count::default();
        for seed in (0..area.repetitions as u64).step_by(4) {
            // At once: most of the time is spent waiting.
            let counts = tokio::join!(play(seed), play(seed + 1), play(seed + 2), play(seed + 3));
            for count in [counts.0, counts.1, counts.2, counts.3] {
                match count {
                    Ok(count) => total.add(&count),
                    Err(violation) => {
                        println!("{version}, from seed {seed}: {violation}");
                        violations += 1;
                    }
                }
            }
            println!("{version}, up to seed {}: {total}", seed + 3);
        }
        figures.push(format!("{version}: {total}"));
    }
    Ok((violations == 0, format!("{violations} violations; {}", figures.join("; "))))
}

/// Continues conversations on the oldest CLI with approvals, a later and the newest one.
async fn prove_continuations(area: &Area) -> Result<(bool, String), Box<dyn Error>> {
    let (mut figures, mut holds) = (Vec::new(), true);
    for version in real_cli::approval_versions().into_iter().chain([real_cli::pinned_version()]) {
        let cli = real_cli::install_version(&version)?;
        for kind in continuations::KINDS {
            let play =
                async || continuations::play(Harness::real(Script::new(), &cli).await?, kind).await;
            let mut held = 0;
            for _ in (0..area.repetitions).step_by(4) {
                // At once: most of the time is spent waiting.
                let played = tokio::join!(play(), play(), play(), play());
                for outcome in [played.0, played.1, played.2, played.3] {
                    match outcome {
                        Ok(()) => held += 1,
                        Err(violation) => println!("{version}, {kind:?}: {violation}"),
                    }
                }
            }
            holds &= held == area.repetitions;
            println!("{version}, {kind:?}: {held} of {}", area.repetitions);
            figures.push(format!("{version}, {kind:?}: {held} of {}", area.repetitions));
        }
    }
    Ok((holds, figures.join("; ")))
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
            let url = killed_hosts::sqlite_url(&harness);
            prove_killed_hosts(area, &harness, &url).await
        }
        #[cfg(target_os = "linux")]
        "killed-hosts-postgres" => {
            let harness = Harness::real(Script::new(), &cli).await?;
            let server = Server::start()?;
            let url = server.url_with_password(server.port());
            prove_killed_hosts(area, &harness, &url).await
        }
        "approvals" => {
            let harness = Harness::real(Script::new(), &cli).await?;
            let host = host()?;
            let mut figures = Vec::new();
            for kind in approvals::KINDS {
                let count = approvals::count(&harness, &host, kind, area.repetitions, 1).await?;
                println!("{kind:?}: {count}");
                figures.push(format!("{kind:?}: {count}"));
            }
            Ok((true, figures.join("; ")))
        }
        #[cfg(unix)]
        "lost-sessions" => {
            let harness = Harness::real(Script::new(), &cli).await?;
            let (host, mut total) = (host()?, lost_sessions::Count::default());
            for done in 1..=area.repetitions {
                total.add(&lost_sessions::count(&harness, &host).await?);
                println!("{done} of {}: {total}", area.repetitions);
            }
            Ok((total.holds(), total.to_string()))
        }
        "two-hosts" => prove_two_hosts(area).await,
        "continuations" => prove_continuations(area).await,
        other => Err(format!("no experiment for area \"{other}\"").into()),
    }
}
