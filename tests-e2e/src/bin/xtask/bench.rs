//! How fast the SDK is, beside others: two tables, and whether what is aimed at is reached.

use std::env;
use std::process::ExitCode;

use tests_e2e::bench::linear::{self, GROWTHS, Growth};
use tests_e2e::bench::row::{ROWS, Row};
use tests_e2e::bench::spread::Spread;
use tests_e2e::bench::subject::{self, Measurement, NAMES, Subject, SubjectRunner};
use tests_e2e::bench::{measure, table};

use super::Outcome;

/// Rounds of what grows.
const GROWING: usize = 7;

/// What is args.
struct BenchArgs {
    quick: bool,
    /// Fewer than are published.
    rounds: Option<usize>,
    works: Vec<String>,
    only: Vec<&'static str>,
}

/// Measures, prints and judges.
pub(crate) fn run(words: &[String]) -> Outcome {
    let args = BenchArgs::read(words)?;
    raise_descriptor_limit()?;
    let (cli, subjects) = subject::build(&args.only)?;
    let missing = missing(&subjects);
    if missing && env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        println!("in CI that is a failure");
        return Ok(ExitCode::FAILURE);
    }
    let runner = SubjectRunner::new(cli)?;
    let mut good = compare(&args, &runner, &subjects);
    if args.has("linear") {
        good &= grow(&args, &runner, &subjects);
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
                    args.rounds = Some(rounds.ok_or("--rounds takes a number")?);
                }
                name if naming => args.only.push(
                    NAMES
                        .into_iter()
                        .find(|known| *known == name)
                        .ok_or_else(|| format!("there is no `{name}`; there are {NAMES:?}"))?,
                ),
                work if work == "linear" || ROWS.iter().any(|row| row.work == work) => {
                    args.works.push(work.to_owned());
                }
                other => return Err(format!("there is no work `{other}`")),
            }
        }
        if args.only.is_empty() {
            args.only.extend(NAMES);
        } else {
            // Nothing can be said without the floor, and nothing is judged without the SDK.
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

/// A thousand sessions hold three thousand pipes, which is more than is usual.
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

/// The table of everybody, and whether the SDK did all of it and is as fast as it should be.
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
        // The floor cannot hold sessions; whatever else stops one of the two is a fault.
        let failed = |failure: &String| !failure.starts_with("cannot");
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
    let answer = runner.run(subject, row.work, count, row.pinned);
    eprintln!("  {}: {answer:?}", subject.name);
    answer
}

/// The table of what the SDK costs for more and more, and whether that is linear.
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

/// What one costs at every size, the sizes measured by turns; nothing if a run failed.
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
            let answer = runner.run(kit, growth.work, *size, false);
            eprintln!("  {size}: {answer:?}");
            let Measurement::Figure(seconds) = answer else { return None };
            found.push(growth.cost(seconds, *size));
        }
    }
    let [one, ten, hundred] = found.map(|costs| Spread::of(costs).map(|spread| spread.median));
    Some([one?, ten?, hundred?])
}
