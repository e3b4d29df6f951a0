//! Compares reading and changing stored conversations with the official SDKs.

use std::process::ExitCode;

use tests_e2e::bench::history::generate::TranscriptPlan;
use tests_e2e::bench::history::row::{ROWS, Samples, ratio, time};
use tests_e2e::bench::history::{Dataset, Sizes, sessions};
use tests_e2e::bench::linear::TOLERANCE;
use tests_e2e::bench::subject::{self, Program, Subject};

use super::Outcome;

/// The number of rounds of the published figures.
const ROUNDS: usize = 5;

/// The arguments of the command.
struct HistoryArgs {
    rounds: usize,
    sizes: Sizes,
    is_quick: bool,
}

/// Measures, prints the tables and checks the targets.
pub(crate) fn run(words: &[String]) -> Outcome {
    let args = HistoryArgs::read(words)?;
    let subjects = subject::build_history()?;
    for subject in &subjects {
        if let Err(reason) = &subject.program {
            println!("{}: {reason}", subject.title);
        }
    }
    let kit = subjects[0].program.as_ref().map_err(Clone::clone)?;
    let mut missed = compare(&args, &subjects)?;
    missed.extend(repeat(&args, kit)?);
    missed.extend(pages(&args, kit)?);
    missed.extend(long_line(&args, kit)?);
    if args.is_quick {
        return Ok(ExitCode::SUCCESS);
    }
    for miss in &missed {
        println!("MISSED: {miss}");
    }
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl HistoryArgs {
    fn read(words: &[String]) -> Result<Self, String> {
        let mut args = Self { rounds: ROUNDS, sizes: Sizes::PUBLISHED, is_quick: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => {
                    args = Self { rounds: 1, sizes: Sizes::QUICK, is_quick: true };
                }
                "--rounds" => {
                    let rounds = words.next().and_then(|rounds| rounds.parse().ok());
                    args.rounds = rounds.ok_or("`--rounds` needs a number")?;
                }
                other => return Err(format!("unknown argument: \"{other}\"")),
            }
        }
        Ok(args)
    }
}

/// Prints the comparison with the official SDKs and returns the targets that were missed.
fn compare(args: &HistoryArgs, subjects: &[Subject; 3]) -> Result<Vec<String>, String> {
    eprintln!("generating {} sessions", args.sizes.sessions + 1);
    let data = Dataset::ordinary(&args.sizes).map_err(|error| error.to_string())?;
    let [kit, python, typescript] = subjects.each_ref().map(|subject| &subject.title);
    println!("| operation | {kit} | {python} | {typescript} | times Python | times TypeScript |");
    println!("|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for row in &ROWS {
        eprintln!("{}: {} rounds", row.title, args.rounds);
        let mut columns: [Samples; 3] = Default::default();
        for round in 0..args.rounds {
            for turn in 0..subjects.len() {
                let index = (round + turn) % subjects.len();
                let Ok(program) = &subjects[index].program else { continue };
                match data.run(program, row.operation, 1) {
                    Ok(sample) => columns[index].0.push(sample),
                    Err(reason) => eprintln!("  {}: {reason}", subjects[index].name),
                }
            }
        }
        missed.extend(disagreement(row.title, &columns));
        let [kit, python, typescript] = &columns;
        println!(
            "| {} | {kit} | {python} | {typescript} | {} | {} |",
            row.title,
            ratio(kit.ratio(python), row.python),
            ratio(kit.ratio(typescript), row.typescript),
        );
        missed.extend(row.missed(&columns));
    }
    println!();
    Ok(missed)
}

/// Returns a complaint if the SDKs returned different numbers of sessions or messages.
fn disagreement(title: &str, columns: &[Samples; 3]) -> Option<String> {
    let mut counts: Vec<u64> =
        columns.iter().flat_map(|column| &column.0).map(|sample| sample.count).collect();
    counts.sort_unstable();
    counts.dedup();
    (counts.len() > 1).then(|| format!("{title}: the SDKs returned {counts:?} items"))
}

/// Prints the peak memory of several reads in one process.
fn repeat(args: &HistoryArgs, kit: &Program) -> Result<Vec<String>, String> {
    const TIMES: usize = 10;
    let long = TranscriptPlan::new(1, args.sizes.long_bytes);
    let data = Dataset::new([long]).map_err(|error| error.to_string())?;
    let sample = data.run(kit, "read", TIMES)?;
    println!("Read {TIMES} times in one process: {:.0} MiB at most.", sample.peak);
    let is_missed = sample.peak >= tests_e2e::bench::history::row::MAX_PEAK;
    Ok(is_missed
        .then(|| format!("memory of {TIMES} reads: {:.0} MiB", sample.peak))
        .into_iter()
        .collect())
}

/// Prints the cost of a page with more and more, and with larger and larger transcripts.
fn pages(args: &HistoryArgs, kit: &Program) -> Result<Vec<String>, String> {
    let most = args.sizes.most_sessions;
    let mut missed = Vec::new();
    println!("\n| a page of 50 of | 1x | 10x or 5x | 100x or 25x |\n|---|---|---|---|");
    let counts = [most / 100, most / 10, most].map(|count| (count.max(1), 20_000));
    page_row("100, 1,000, 10,000 sessions of 20 KB", args, kit, counts)?;
    let bytes = args.sizes.session_bytes;
    let sizes = [bytes, bytes * 5, bytes * 25].map(|bytes| (60, bytes));
    let [small, _, large] = page_row("60 sessions of 0.2, 1, 5 MB", args, kit, sizes)?;
    if large > TOLERANCE * small {
        missed.push(format!("a page of large transcripts: {} and {}", time(small), time(large)));
    }
    println!();
    Ok(missed)
}

fn page_row(
    title: &str,
    args: &HistoryArgs,
    kit: &Program,
    plans: [(u64, u64); 3],
) -> Result<[f64; 3], String> {
    let mut walls = [0.0; 3];
    for (wall, (count, bytes)) in walls.iter_mut().zip(plans) {
        let data = Dataset::new(sessions(count, bytes)).map_err(|error| error.to_string())?;
        let mut samples = Samples::default();
        for _ in 0..args.rounds.max(3) {
            samples.0.push(data.run(kit, "page", 1)?);
        }
        *wall = samples.median(|sample| sample.wall).unwrap_or(f64::NAN);
    }
    println!("| {title} | {} |", walls.map(time).join(" | "));
    Ok(walls)
}

/// Prints the memory for a transcript with one very long line.
fn long_line(args: &HistoryArgs, kit: &Program) -> Result<Vec<String>, String> {
    let Sizes { huge_bytes, long_line, .. } = args.sizes;
    let data = Dataset::new([TranscriptPlan::new(2, huge_bytes).long_line(long_line)])
        .map_err(|error| error.to_string())?;
    let lines = data.transcripts[0].lines;
    let sample = data.run(kit, "read", 1)?;
    // The index, the line, and fixed buffers.
    let limit = mib(long_line + 64 * lines) + 16.0;
    println!(
        "A transcript of {huge_bytes} bytes and {lines} lines, one of them with {long_line} bytes: read in {}, \
         {:.0} MiB at most, limit {limit:.0} MiB.",
        time(sample.wall),
        sample.peak,
    );
    let is_missed = sample.peak > limit;
    Ok(is_missed
        .then(|| format!("memory of a long line: {:.0} MiB", sample.peak))
        .into_iter()
        .collect())
}

fn mib(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0
}
