//! How fast the SDK is, beside others: two tables, and whether what is aimed at is reached.

use std::{env, process::ExitCode};

use tests_e2e::bench::{
    compile::{self, PROGRAMS},
    contestant::{self, Answer, Arena, Contestant, NAMES},
    linear::{self, GROWTHS, Growth},
    measure,
    row::{ROWS, Row},
    spread::Spread,
    table,
};

use super::Outcome;

/// Rounds of what grows.
const GROWING: usize = 7;

/// What is wanted.
struct Wanted {
    quick: bool,
    /// Fewer than are published.
    rounds: Option<usize>,
    works: Vec<String>,
    only: Vec<&'static str>,
}

/// Measures, prints and judges.
pub(crate) fn run(words: &[String]) -> Outcome {
    if words == ["compile"] {
        return compile_times();
    }
    let wanted = Wanted::read(words)?;
    raise_descriptor_limit()?;
    let (cli, contestants) = contestant::build(&wanted.only)?;
    let missing = missing(&contestants);
    if missing && env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        println!("in CI that is a failure");
        return Ok(ExitCode::FAILURE);
    }
    let arena = Arena::new(cli)?;
    let mut good = compare(&wanted, &arena, &contestants);
    if wanted.has("linear") {
        good &= grow(&wanted, &arena, &contestants);
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the table of compile times. There is no target: the figures depend on the machine.
fn compile_times() -> Outcome {
    print!("{}", compile::HEAD);
    for program in &PROGRAMS {
        print!("{}", program.measure()?);
    }
    Ok(ExitCode::SUCCESS)
}

impl Wanted {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut wanted = Self { quick: false, rounds: None, works: Vec::new(), only: Vec::new() };
        let mut naming = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => wanted.quick = true,
                "--only" => naming = true,
                "--rounds" => {
                    let rounds = words.next().and_then(|rounds| rounds.parse().ok());
                    wanted.rounds = Some(rounds.ok_or("--rounds takes a number")?);
                }
                name if naming => wanted.only.push(
                    NAMES
                        .into_iter()
                        .find(|known| *known == name)
                        .ok_or_else(|| format!("there is no `{name}`; there are {NAMES:?}"))?,
                ),
                work if work == "linear" || ROWS.iter().any(|row| row.work == work) => {
                    wanted.works.push(work.to_owned());
                }
                other => return Err(format!("there is no work `{other}`")),
            }
        }
        if wanted.only.is_empty() {
            wanted.only.extend(NAMES);
        } else {
            // Nothing can be said without the floor, and nothing is judged without the SDK.
            wanted.only.extend(["floor", "kit"]);
        }
        Ok(wanted)
    }

    fn rounds(&self, published: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { published })
    }

    fn has(&self, work: &str) -> bool {
        self.works.is_empty() || self.works.iter().any(|wanted| wanted == work)
    }
}

/// A thousand sessions hold three thousand pipes, which is more than is usual.
fn raise_descriptor_limit() -> Result<(), Box<dyn std::error::Error>> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

fn missing(contestants: &[Contestant]) -> bool {
    let mut missing = false;
    for contestant in contestants {
        if let Err(reason) = &contestant.program {
            println!("{}: {reason}", contestant.title);
            missing = true;
        }
    }
    missing
}

/// The table of everybody, and whether the SDK did all of it and is as fast as it should be.
fn compare(wanted: &Wanted, arena: &Arena, contestants: &[Contestant]) -> bool {
    let titles: Vec<String> = contestants.iter().map(|one| one.title.clone()).collect();
    print!("{}", table::head(&titles));
    let mut verdicts = Vec::new();
    let mut good = true;
    for row in ROWS.iter().filter(|row| wanted.has(row.work)) {
        let count = if wanted.quick { row.quick_count } else { row.count };
        let rounds = wanted.rounds(row.rounds);
        eprintln!("{}: {rounds} rounds", row.title);
        let columns = measure::rounds(row, rounds, contestants.len(), |index| {
            turn(arena, contestants, row, count, index)
        });
        // The floor cannot hold sessions; whatever else stops one of the two is a fault.
        let failed = |trouble: &String| !trouble.starts_with("cannot");
        good &= !columns.iter().take(2).any(|column| column.trouble.as_ref().is_some_and(failed));
        print!("{}", table::line(row, count, &columns));
        verdicts.extend(table::verdict(row, &columns));
    }
    println!();
    if !wanted.quick {
        for (met, verdict) in verdicts {
            println!("{verdict}");
            good &= met;
        }
        println!();
    }
    good
}

fn turn(
    arena: &Arena,
    contestants: &[Contestant],
    row: &Row,
    count: usize,
    index: usize,
) -> Answer {
    let contestant = &contestants[index];
    let answer = arena.run(contestant, row.work, count, row.pinned);
    eprintln!("  {}: {answer:?}", contestant.name);
    answer
}

/// The table of what the SDK costs for more and more, and whether that is linear.
fn grow(wanted: &Wanted, arena: &Arena, contestants: &[Contestant]) -> bool {
    let Some(kit) = contestants.iter().find(|one| one.name == "kit") else { return false };
    println!("{}", linear::HEAD.trim_end());
    let mut good = true;
    for growth in &GROWTHS {
        eprintln!("{}", growth.title);
        if let Some(costs) = costs(wanted, arena, kit, growth) {
            print!("{}", linear::line(growth, costs));
            good &= wanted.quick || linear::is_linear(costs);
        } else {
            println!("| {} | failed | | | | |", growth.title);
            good = false;
        }
    }
    good
}

/// What one costs at every size, the sizes measured by turns; nothing if a run failed.
fn costs(wanted: &Wanted, arena: &Arena, kit: &Contestant, growth: &Growth) -> Option<[f64; 3]> {
    let shrink = if wanted.quick { 20 } else { 1 };
    let sizes = growth.sizes().map(|size| (size / shrink).max(1));
    let mut found: [Vec<f64>; 3] = Default::default();
    for _ in 0..wanted.rounds(GROWING) {
        for (size, found) in sizes.iter().zip(&mut found) {
            let answer = arena.run(kit, growth.work, *size, false);
            eprintln!("  {size}: {answer:?}");
            let Answer::Figure(seconds) = answer else { return None };
            found.push(growth.cost(seconds, *size));
        }
    }
    let [one, ten, hundred] = found.map(|costs| Spread::of(costs).map(|spread| spread.median));
    Some([one?, ten?, hundred?])
}
