//! Compares the performance of the SDK with others and with its targets.

use std::env;
use std::process::ExitCode;

use tests_e2e::bench::compile::{self, Comparison, MAX_RATIO};
use tests_e2e::bench::linear::{self, GROWTHS, Growth};
use tests_e2e::bench::row::{ROWS, Row};
use tests_e2e::bench::spread::Spread;
use tests_e2e::bench::subject::{self, Measurement, NAMES, Subject, SubjectRunner};
use tests_e2e::bench::{measure, table};

use super::Outcome;

/// The number of rounds for the growth measurements.
const GROWING: usize = 7;

/// The arguments of the command.
struct BenchArgs {
    quick: bool,
    /// Overrides the number of rounds.
    rounds: Option<usize>,
    works: Vec<String>,
    only: Vec<&'static str>,
}

/// Measures, prints the tables and checks the targets.
pub(crate) fn run(words: &[String]) -> Outcome {
    if words == ["compile"] {
        return compile_times();
    }
    if words.first().is_some_and(|word| word == "history") {
        return super::bench_history::run(&words[1..]);
    }
    #[cfg(target_os = "linux")]
    if words.first().is_some_and(|word| word == "stores") {
        return super::bench_stores::run(&words[1..]);
    }
    let args = BenchArgs::read(words)?;
    raise_descriptor_limit()?;
    let (cli, subjects) = subject::build(&args.only)?;
    let missing = missing(&subjects);
    if missing && env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        println!("this is a failure in CI");
        return Ok(ExitCode::FAILURE);
    }
    let runner = SubjectRunner::new(cli)?;
    let mut good = compare(&args, &runner, &subjects);
    if args.has("linear") {
        good &= grow(&args, &runner, &subjects);
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the table of compile times, and checks the ratio to another crate.
fn compile_times() -> Outcome {
    let Comparison { table, ratio, .. } = compile::compare()?;
    print!("{table}");
    if ratio > MAX_RATIO {
        println!("the ratio of the release builds is {ratio:.2}, more than {MAX_RATIO:.1}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

impl BenchArgs {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut args = Self { quick: false, rounds: None, works: Vec::new(), only: Vec::new() };
        let mut naming = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => args.quick = true,
                "--only" => naming = true,
                "--rounds" => {
                    let rounds = words.next().and_then(|rounds| rounds.parse().ok());
                    args.rounds = Some(rounds.ok_or("`--rounds` needs a number")?);
                }
                name if naming => {
                    args.only.push(NAMES.into_iter().find(|known| *known == name).ok_or_else(
                        || format!("unknown subject: \"{name}\"; help: use one of {NAMES:?}"),
                    )?);
                }
                work if work == "linear" || ROWS.iter().any(|row| row.work == work) => {
                    args.works.push(work.to_owned());
                }
                other => return Err(format!("unknown workload: \"{other}\"")),
            }
        }
        if args.only.is_empty() {
            args.only.extend(NAMES);
        } else {
            // Comparisons need the floor, and targets apply to the SDK.
            args.only.extend(["floor", "kit"]);
        }
        Ok(args)
    }

    fn rounds(&self, published: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { published })
    }

    fn has(&self, work: &str) -> bool {
        self.works.is_empty() || self.works.iter().any(|args| args == work)
    }
}

/// Raises the limit of open files: a thousand sessions use three thousand pipes.
fn raise_descriptor_limit() -> Result<(), Box<dyn std::error::Error>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

fn missing(subjects: &[Subject]) -> bool {
    let mut missing = false;
    for subject in subjects {
        if let Err(reason) = &subject.program {
            println!("{}: {reason}", subject.title);
            missing = true;
        }
    }
    missing
}

/// Prints the comparison table. Returns whether the SDK completed every workload and met its targets.
fn compare(args: &BenchArgs, runner: &SubjectRunner, subjects: &[Subject]) -> bool {
    let titles: Vec<String> = subjects.iter().map(|one| one.title.clone()).collect();
    print!("{}", table::head(&titles));
    let mut verdicts = Vec::new();
    let mut good = true;
    for row in ROWS.iter().filter(|row| args.has(row.work)) {
        let count = if args.quick { row.quick_count } else { row.count };
        let rounds = args.rounds(row.rounds);
        eprintln!("{}: {rounds} rounds", row.title);
        let columns = measure::rounds(row, rounds, subjects.len(), |index| {
            turn(runner, subjects, row, count, index)
        });
        // The floor does not support every workload; any other failure of the two is an error.
        let failed = |failure: &String| !failure.starts_with("unsupported");
        good &= !columns.iter().take(2).any(|column| column.failure.as_ref().is_some_and(failed));
        print!("{}", table::line(row, count, &columns));
        verdicts.extend(table::verdict(row, &columns));
    }
    println!();
    if !args.quick {
        for (met, verdict) in verdicts {
            println!("{verdict}");
            good &= met;
        }
        println!();
    }
    good
}

fn turn(
    runner: &SubjectRunner,
    subjects: &[Subject],
    row: &Row,
    count: usize,
    index: usize,
) -> Measurement {
    let subject = &subjects[index];
    let measurement = runner.run(subject, row.work, count, row.pinned);
    eprintln!("  {}: {measurement:?}", subject.name);
    measurement
}

/// Prints the growth table. Returns whether the cost of the SDK is linear.
fn grow(args: &BenchArgs, runner: &SubjectRunner, subjects: &[Subject]) -> bool {
    let Some(kit) = subjects.iter().find(|one| one.name == "kit") else { return false };
    println!("{}", linear::HEAD.trim_end());
    let mut good = true;
    for growth in &GROWTHS {
        eprintln!("{}", growth.title);
        if let Some(costs) = costs(args, runner, kit, growth) {
            print!("{}", linear::line(growth, costs));
            good &= args.quick || linear::is_linear(costs);
        } else {
            println!("| {} | failed | | | | |", growth.title);
            good = false;
        }
    }
    good
}

/// Returns the cost per item at every size, measured in interleaved rounds, or `None` if a run failed.
fn costs(
    args: &BenchArgs,
    runner: &SubjectRunner,
    kit: &Subject,
    growth: &Growth,
) -> Option<[f64; 3]> {
    let shrink = if args.quick { 20 } else { 1 };
    let sizes = growth.sizes().map(|size| (size / shrink).max(1));
    let mut found: [Vec<f64>; 3] = Default::default();
    for _ in 0..args.rounds(GROWING) {
        for (size, found) in sizes.iter().zip(&mut found) {
            let measurement = runner.run(kit, growth.work, *size, false);
            eprintln!("  {size}: {measurement:?}");
            let Measurement::Figure(seconds) = measurement else { return None };
            found.push(growth.cost(seconds, *size));
        }
    }
    let [one, ten, hundred] = found.map(|costs| Spread::of(costs).map(|spread| spread.median));
    Some([one?, ten?, hundred?])
}
