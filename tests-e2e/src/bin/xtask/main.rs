//! The commands of the project that are no tests: `cargo xtask <command>`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its caller")]

mod api;
mod bare;
#[cfg(unix)]
mod bench;
mod checks;
#[cfg(unix)]
mod golden;
mod long;
mod outside;
mod parity;
mod platforms;
mod prove;
mod simulate;
mod tables;
mod versions;

use std::{env, error::Error, path::Path, process::ExitCode, sync::Arc};

use claude_agent_testkit::recording::today;
use tests_e2e::{
    corpus,
    drift::Shapes,
    real_cli::{self, InstalledCli},
    scenario::{RealCli, SCENARIOS, Scenario},
    scrub,
};

const USAGE: &str = "\
cargo xtask test              everything: format, lints, tests, documentation, the first run
cargo xtask bare              unit tests without CLI, network, home and variables
cargo xtask cli               install the pinned CLI and say its version
cargo xtask record [names…]   play scenarios on the real CLI and store what was said
cargo xtask drift [names…]    play scenarios and print how they differ from what is stored
cargo xtask faults            print the fault matrix, as in docs/faults.md
cargo xtask api               list what the crates publish, in docs/api
cargo xtask tables            write the tables of the guide and rows of docs/parity.md that follow from the code
cargo xtask outside           compile every snippet, example and application in a project outside the workspace
cargo xtask fuzz SECONDS      run every fuzz target for so long
cargo xtask soak SECONDS      run sessions with real processes for so long, and count
cargo xtask simulate SECONDS [FIRST]
                              play whole runs that follow from seeds, for so long
cargo xtask simulate --seed N play one of them and print all that happens
cargo xtask bench [works…]    how fast it is, beside others (--quick: whether that works; --only NAME…; --rounds N)
cargo xtask bench compile     how long programs that use it take to build, beside other crates
cargo xtask prove [areas…]    repeat what docs/proofs.md claims on the real CLI, and count
cargo xtask cli-versions VERSIONS…
                              try released CLIs, and print the table of docs/cli-versions.md
cargo xtask golden [parts…]   compare what is written and delivered with what was kept: corpus, seeds, faults
                              (--update keeps it; --dump DIR writes the traces themselves)
cargo xtask parity            store the names that the pinned official SDKs publish, and add rows that follow from them
cargo xtask scenarios         list the scenarios";

type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        _ if api::is_rustdoc() => api::rustdoc(),
        Some((command, [])) if command == "test" => checks::run(),
        Some((command, [])) if command == "bare" => checks::bare(),
        Some((command, [])) if command == "cli" => install().map(|_| ExitCode::SUCCESS),
        Some((command, names)) if command == "record" => record(names),
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
    play(cli, &choose(names)?, &directory)
}

fn drift(names: &[String]) -> Outcome {
    let cli = install()?;
    let scenarios = choose(names)?;
    let stored = corpus::directory(&cli.version);
    let fresh = tempfile::tempdir()?;
    let failed = play(cli, &scenarios, fresh.path())?;
    let differences = shapes(&stored, &scenarios).differences(&shapes(fresh.path(), &scenarios));
    for difference in &differences {
        println!("{difference}");
    }
    println!("{} differences of shape", differences.len());
    Ok(if differences.is_empty() { failed } else { ExitCode::FAILURE })
}

/// The scenarios of these names, or all.
fn choose(names: &[String]) -> Result<Vec<&'static Scenario>, Box<dyn Error>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        Scenario::named(name).ok_or_else(|| format!("there is no scenario `{name}`").into())
    };
    names.iter().map(find).collect()
}

/// Plays scenarios one after the other and stores each that went as it should.
fn play(cli: InstalledCli, scenarios: &[&Scenario], directory: &Path) -> Outcome {
    let runtime = tokio::runtime::Runtime::new()?;
    let backend = Arc::new(RealCli::new(cli));
    let date = today();
    let mut outcome = ExitCode::SUCCESS;
    for scenario in scenarios {
        match runtime.block_on(scenario.play(Arc::clone(&backend) as _, &date)) {
            Ok(recording) => {
                let leftovers = scrub::leftovers(&recording);
                if !leftovers.is_empty() {
                    return Err(format!("{} still holds {leftovers:?}", scenario.name).into());
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
        // What is not stored yet, or failed just now, shows as a difference.
        if let Ok(recording) = corpus::load(directory, scenario.name) {
            shapes.add(&recording);
        }
    }
    shapes
}
