//! Compares session stores with the official SDKs.

use std::process::ExitCode;

use claude_agent_testkit::mock_api::{Reply, Script};
use tests_e2e::bench::history::row::{Sample, Samples, ratio, time};
use tests_e2e::bench::stores::{OPERATIONS, StoreData, StoreSizes, turn};
use tests_e2e::bench::subject::{self, Program, Subject};
use tests_e2e::harness::Harness;
use tests_e2e::real_cli;

use super::Outcome;

/// The number of rounds of the published figures.
const ROUNDS: usize = 5;

/// The subjects of a row: this SDK with a store, and the official SDKs with theirs.
const COLUMNS: [(usize, &str); 4] = [(0, "memory"), (0, "sqlite"), (1, "memory"), (2, "memory")];

/// Measures and prints the tables. Without targets: the figures depend on the disk and the machine.
pub(crate) fn run(words: &[String]) -> Outcome {
    let (sizes, rounds) = match words {
        [] => (StoreSizes::PUBLISHED, ROUNDS),
        [word] if word == "--quick" => (StoreSizes::QUICK, 1),
        [word, rounds] if word == "--rounds" => {
            let rounds = rounds.parse().map_err(|_| "`--rounds` needs a number")?;
            (StoreSizes::PUBLISHED, rounds)
        }
        other => return Err(format!("unknown arguments: {other:?}").into()),
    };
    let subjects = subject::build_stores()?;
    for subject in &subjects {
        if let Err(reason) = &subject.program {
            println!("{}: {reason}", subject.title);
        }
    }
    operations(&subjects, &sizes, rounds)?;
    turns(&subjects, &sizes, rounds)?;
    Ok(ExitCode::SUCCESS)
}

fn program(subjects: &[Subject; 3], index: usize) -> Option<&Program> {
    subjects[index].program.as_ref().ok()
}

/// Measures one column, and reports a failure.
fn add(samples: &mut Samples, name: &str, sample: Result<Sample, String>) {
    match sample {
        Ok(sample) => samples.0.push(sample),
        Err(reason) => eprintln!("  {name}: {reason}"),
    }
}

fn operations(subjects: &[Subject; 3], sizes: &StoreSizes, rounds: usize) -> Result<(), String> {
    let data = StoreData::new(sizes.bytes).map_err(|error| error.to_string())?;
    let [kit, python, typescript] = subjects.each_ref().map(|subject| &subject.title);
    println!(
        "| operation | {kit}, memory | {kit}, SQLite | {python}, memory | {typescript}, memory | \
         times Python | times TypeScript |\n|---|---|---|---|---|---|---|"
    );
    for (operation, title) in OPERATIONS {
        eprintln!("{title}: {rounds} rounds");
        let mut columns: [Samples; 4] = Default::default();
        for _ in 0..rounds {
            for (samples, (index, store)) in columns.iter_mut().zip(COLUMNS) {
                let Some(program) = program(subjects, index) else { continue };
                if operation == "read" && store == "sqlite" {
                    // In a process of its own, so that its memory does not count.
                    data.run(program, "import", store, sizes.appends)?;
                }
                let sample = data.run(program, operation, store, sizes.appends);
                add(samples, subjects[index].name, sample);
            }
        }
        let shown = columns.each_ref().map(|samples| match operation {
            "append" | "append32" => rate(samples),
            _ => samples.to_string(),
        });
        println!(
            "| {title} | {} | {} | {} |",
            shown.join(" | "),
            ratio(columns[0].ratio(&columns[2]), None),
            ratio(columns[0].ratio(&columns[3]), None),
        );
    }
    println!();
    Ok(())
}

/// Formats the number of appends per second.
fn rate(samples: &Samples) -> String {
    let per_second =
        |sample: &Sample| f64::from(u32::try_from(sample.count).unwrap_or(u32::MAX)) / sample.wall;
    samples.median(per_second).map_or_else(|| "failed".to_owned(), |rate| format!("{rate:.0}/s"))
}

/// Measures turns with and without a store, with the real CLI and the mock API.
fn turns(subjects: &[Subject; 3], sizes: &StoreSizes, rounds: usize) -> Result<(), String> {
    let cli = real_cli::install().map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let mut columns: [Samples; 4] = Default::default();
    for round in 0..rounds {
        eprintln!("turns: round {}", round + 1);
        for (samples, (index, store)) in columns.iter_mut().zip(COLUMNS) {
            let Some(program) = program(subjects, index) else { continue };
            let script = Script::new().otherwise([Reply::text("Hello.")]);
            let harness = runtime.block_on(Harness::real(script, &cli));
            let harness = harness.map_err(|error| error.to_string())?;
            add(samples, subjects[index].name, turn(&harness, program, store, sizes.turns));
        }
    }
    println!("| a turn | without a store | with it | difference | ratio |\n|---|---|---|---|---|");
    for (samples, (index, store)) in columns.iter().zip(COLUMNS) {
        // In the samples of turns, `cpu` is the time without a store.
        let median = |figure: fn(&Sample) -> f64| samples.median(figure).unwrap_or(f64::NAN);
        let more = median(|sample| sample.wall - sample.cpu);
        println!(
            "| {}, {store} | {} | {} | {:.2} ms | {:.2} |",
            subjects[index].title,
            time(median(|sample| sample.cpu)),
            time(median(|sample| sample.wall)),
            more * 1e3,
            median(|sample| sample.wall / sample.cpu),
        );
    }
    Ok(())
}
