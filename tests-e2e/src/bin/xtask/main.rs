//! The commands of the project other than tests: `cargo xtask <command>`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "commands print their results")]

mod api;
mod bare;
#[cfg(unix)]
mod bench;
mod bench_history;
#[cfg(target_os = "linux")]
mod bench_stores;
mod checks;
mod examples;
#[cfg(unix)]
mod golden;
mod long;
mod outside;
mod packages;
mod parity;
mod platforms;
mod programs;
mod prove;
mod setup;
mod simulate;
mod tables;
mod timing;
mod transcripts;
mod update_cli;
mod versions;

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use claude_agent_testkit::recording::today;
use tests_e2e::drift::Shapes;
use tests_e2e::real_cli::{self, InstalledCli};
use tests_e2e::scenario::{RealCli, SCENARIOS, Scenario};
use tests_e2e::{corpus, scrub};

const USAGE: &str = "\
cargo xtask test [steps…]     everything: installs what is needed, then format, lints, tests, documentation,
                              examples, platforms, packages; prints the seconds of each step
cargo xtask bare              run the unit tests without CLI, network, home directory and environment variables
cargo xtask cli               install the pinned CLI and print its version
cargo xtask record [names…]   run scenarios on the real CLI and store the recordings
cargo xtask record-transcripts [names…]
                              run scenarios on the real CLI and store the transcripts that it writes
cargo xtask drift [names…]    run scenarios and print how they differ from the stored recordings
cargo xtask faults            print the fault matrix, as in docs/faults.md
cargo xtask api               update the listings of the public API in docs/api
cargo xtask tables            update the tables of the guide, and rows of docs/parity.md, that are derived from the code
cargo xtask outside           compile every snippet, example and application in a project outside the workspace
cargo xtask fuzz SECONDS      run each fuzz target for SECONDS
cargo xtask soak SECONDS      run sessions with real processes for SECONDS and print statistics
cargo xtask simulate SECONDS [FIRST]
                              run seeds of the simulation for SECONDS, starting with FIRST
cargo xtask simulate --seed N run one seed and print its trace
cargo xtask bench [workloads…]
                              compare the SDK with others (--quick: check that it works; --only NAME…; --rounds N)
cargo xtask bench history     compare reading and changing stored conversations with the official SDKs
cargo xtask bench stores [tables…]
                              compare session stores with those of the official SDKs: embedded, postgres, s3, turns
                              (--quick; --rounds N)
cargo xtask bench compile     measure the compile time of programs that use the SDK and other crates
cargo xtask prove [areas…]    repeat the experiments of docs/proofs.md on the real CLI and count the results
cargo xtask cli-versions VERSIONS…
                              run released CLIs and print the table of docs/cli-versions.md
cargo xtask update-cli VERSION
                              pin a newer CLI, compare it with the pinned one, and print what is left to do
cargo xtask golden [parts…]   compare golden traces with the stored hashes: corpus, seeds, faults
                              (--update stores new hashes; --dump DIR writes the traces)
cargo xtask parity            store the names that the pinned official SDKs publish, and add derived rows
cargo xtask scenarios         list the scenarios";

type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        _ if api::is_rustdoc() => api::rustdoc(),
        Some((command, steps)) if command == "test" => checks::run(steps),
        Some((command, [])) if command == "bare" => checks::bare(),
        Some((command, [])) if command == "cli" => install().map(|_| ExitCode::SUCCESS),
        Some((command, names)) if command == "record" => record(names),
        Some((command, names)) if command == "record-transcripts" => transcripts::record(names),
        Some((command, names)) if command == "drift" => drift(names),
        #[cfg(unix)]
        Some((command, [])) if command == "faults" => {
            print!("{}", tests_e2e::faults::document());
            Ok(ExitCode::SUCCESS)
        }
        Some((command, [])) if command == "api" => api::store(),
        Some((command, [])) if command == "tables" => tables::store(),
        Some((command, [])) if command == "outside" => outside::run(),
        Some((command, [seconds])) if command == "fuzz" => long::fuzz(seconds),
        Some((command, [seconds])) if command == "soak" => long::soak(seconds),
        Some((command, [flag, seed])) if command == "simulate" && flag == "--seed" => {
            simulate::one(seed)
        }
        Some((command, [seconds])) if command == "simulate" => simulate::long(seconds, None),
        Some((command, [seconds, first])) if command == "simulate" => {
            simulate::long(seconds, Some(first))
        }
        #[cfg(unix)]
        Some((command, words)) if command == "bench" => bench::run(words),
        #[cfg(unix)]
        Some((command, words)) if command == "golden" => golden::run(words),
        Some((command, areas)) if command == "prove" => prove::run(areas),
        Some((command, [])) if command == "parity" => parity::store(),
        Some((command, versions)) if command == "cli-versions" => versions::run(versions),
        Some((command, [version])) if command == "update-cli" => update_cli::run(version),
        Some((command, [])) if command == "scenarios" => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            println!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    };
    outcome.unwrap_or_else(|error| {
        println!("error: {error}");
        ExitCode::FAILURE
    })
}

fn list() {
    for scenario in SCENARIOS {
        println!("{}: {}", scenario.name, scenario.about);
    }
}

fn install() -> Result<InstalledCli, Box<dyn Error>> {
    let cli = real_cli::install()?;
    println!("claude {}", cli.version);
    Ok(cli)
}

fn record(names: &[String]) -> Outcome {
    let cli = install()?;
    let directory = corpus::directory(&cli.version);
    record_all(cli, &choose(names)?, &directory)
}

fn drift(names: &[String]) -> Outcome {
    let cli = install()?;
    let scenarios = choose(names)?;
    let stored = stored_recordings(&cli.version)?;
    println!("compared with {}", stored.display());
    let fresh = tempfile::tempdir()?;
    let failed = record_all(cli, &scenarios, fresh.path())?;
    let differences = shapes(&stored, &scenarios).differences(&shapes(fresh.path(), &scenarios));
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} differences", differences.len());
    Ok(if differences.is_empty() { failed } else { ExitCode::FAILURE })
}

/// Returns the recordings of a version; those that are stored for another one if it was not recorded yet.
fn stored_recordings(version: &str) -> Result<PathBuf, Box<dyn Error>> {
    let directory = corpus::directory(version);
    if directory.is_dir() {
        return Ok(directory);
    }
    let all = directory.parent().ok_or("a version has a directory")?;
    let mut others = Vec::new();
    for entry in fs::read_dir(all)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name.starts_with(|first: char| first.is_ascii_digit()) {
            others.push(path);
        }
    }
    // Only one is kept.
    others.pop().ok_or_else(|| "there are no recordings".into())
}

/// Returns the scenarios with these names, or all.
fn choose(names: &[String]) -> Result<Vec<&'static Scenario>, Box<dyn Error>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        Scenario::named(name).ok_or_else(|| format!("unknown scenario: \"{name}\"").into())
    };
    names.iter().map(find).collect()
}

/// Runs scenarios one after the other and stores the recordings of those that succeed.
fn record_all(cli: InstalledCli, scenarios: &[&Scenario], directory: &Path) -> Outcome {
    let runtime = tokio::runtime::Runtime::new()?;
    let backend = Arc::new(RealCli::new(cli));
    let date = today();
    let mut outcome = ExitCode::SUCCESS;
    for scenario in scenarios {
        match runtime.block_on(scenario.record(Arc::clone(&backend) as _, &date)) {
            Ok(recording) => {
                let leftovers = scrub::leftovers(&recording);
                if !leftovers.is_empty() {
                    return Err(format!("{}: not scrubbed: {leftovers:?}", scenario.name).into());
                }
                corpus::store(directory, &recording)?;
                println!("{}", scenario.name);
            }
            Err(failure) => {
                println!("{} failed\n{failure}", scenario.name);
                outcome = ExitCode::FAILURE;
            }
        }
    }
    Ok(outcome)
}

fn shapes(directory: &Path, scenarios: &[&Scenario]) -> Shapes {
    let mut shapes = Shapes::default();
    for scenario in scenarios {
        // A missing recording shows up as a difference.
        if let Ok(recording) = corpus::load(directory, scenario.name) {
            shapes.add(&recording);
        }
    }
    shapes
}
