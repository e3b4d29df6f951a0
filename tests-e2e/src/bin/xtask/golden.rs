//! Compares golden traces of what is written and delivered.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;

use tests_e2e::golden::{self, Golden, List};
use tests_e2e::simulation;

use super::Outcome;

/// The number of seeds.
const SEEDS: u64 = 5_000;

/// How often a trace is generated for an update: parts that differ by chance are not stored.
const KEPT_RUNS: usize = 4;

/// The maximum number of differences to print.
const SHOWN: usize = 40;

/// The parts, and the functions that trace them.
const PARTS: [(&str, Trace); 3] = [("corpus", corpus), ("seeds", seeds), ("faults", faults)];

/// Generates the traces of a part in this many rounds.
type Trace = fn(usize) -> Rounds;

/// The traces of each round.
type Rounds = Result<Vec<Traces>, Box<dyn Error>>;

/// The traces of one round, by name.
type Traces = BTreeMap<String, Golden>;

/// Compares the given parts, or all. `--update` stores the new hashes; `--dump DIR` also writes the traces themselves.
pub(crate) fn run(words: &[String]) -> Outcome {
    let (mut update, mut dump, mut names) = (false, None, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--update" => update = true,
            "--dump" => {
                dump = Some(PathBuf::from(words.next().ok_or("`--dump` needs a directory")?));
            }
            name if PARTS.iter().any(|(part, _)| *part == name) => names.push(name),
            other => return Err(format!("unknown part: \"{other}\"").into()),
        }
    }
    let mut same = true;
    for (part, trace) in PARTS {
        if names.is_empty() || names.contains(&part) {
            let rounds = trace(if update { KEPT_RUNS } else { 1 })?;
            if let Some(directory) = &dump {
                write_all(&directory.join(part), &rounds)?;
            }
            same &= compare(part, &rounds, update)?;
        }
    }
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare(part: &str, rounds: &[Traces], update: bool) -> Result<bool, std::io::Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{part}.txt"));
    let mut now = List::new();
    for round in rounds {
        for (name, trace) in round {
            let hashes = trace.hashes();
            now.entry(name.clone())
                .and_modify(|known| *known = known.common(hashes))
                .or_insert(hashes);
        }
    }
    let kept = golden::parse(&fs::read_to_string(&path).unwrap_or_default());
    let differences = golden::differences(&kept, &now);
    println!("{part}: {} of {} differ", differences.len(), now.len());
    for difference in differences.iter().take(SHOWN) {
        println!("  {difference}");
    }
    if update {
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, golden::format(&now))?;
    }
    Ok(differences.is_empty() || update)
}

fn write_all(directory: &Path, rounds: &[Traces]) -> Result<(), std::io::Error> {
    fs::create_dir_all(directory)?;
    for (number, round) in rounds.iter().enumerate() {
        for (name, trace) in round {
            let mut text = trace.written.join("\n");
            text.push_str("\n---\n");
            text.push_str(&trace.delivered.join("\n"));
            let suffix = if number == 0 { String::new() } else { format!(".{number}") };
            fs::write(directory.join(format!("{name}{suffix}")), text)?;
        }
    }
    Ok(())
}

fn seeds(rounds: usize) -> Rounds {
    let all = || (0..SEEDS).map(|seed| (format!("{seed:04}"), seed)).collect();
    let trace = |seed| Ok(simulation::run_traced(seed).golden);
    (0..rounds).map(|_| in_parallel(all(), 2, trace)).collect()
}

fn faults(rounds: usize) -> Rounds {
    use tests_e2e::faults::{Fault, State, expected, golden, quiet_panics};
    quiet_panics();
    let sim = env::current_exe()?.with_file_name("sim");
    let sim = sim.to_str().ok_or("the path of the simulated CLI is not valid UTF-8")?;
    let cells = || {
        let all = Fault::all().flat_map(|fault| State::ALL.map(|state| (state, fault)));
        all.filter(|(state, fault)| {
            expected(*state, *fault).is_ok()
                && !matches!(fault, Fault::HostKilled | Fault::ShutdownAll)
        })
        .map(|(state, fault)| (format!("{}::{}", state.name(), fault.name()), (state, fault)))
        .collect()
    };
    (0..rounds)
        .map(|_| in_parallel(cells(), 8, |(state, fault)| golden(state, fault, sim)))
        .collect()
}

/// Traces the session machine on every recording, with one of its tests.
fn corpus(_rounds: usize) -> Rounds {
    let file = tempfile::NamedTempFile::new()?;
    let test = "session_recorded::the_trace_of_every_recording_can_be_written";
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "-p", "claude-agent-core", "--test", "it", "--", "--exact", test])
        .env("CLAUDE_WIRE_TRACES", file.path())
        .status()?;
    if !status.success() {
        return Err("the recordings could not be traced".into());
    }
    let mut traces = Traces::new();
    for entry in fs::read_to_string(file.path())?.lines() {
        let mut words = entry.splitn(3, ' ');
        let (Some(name), Some(kind), Some(line)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let trace = traces.entry(name.to_owned()).or_default();
        let part = if kind == "written" { &mut trace.written } else { &mut trace.delivered };
        part.push(line.to_owned());
    }
    Ok(vec![traces])
}

/// Traces everything in several threads, until the first error.
fn in_parallel<T: Send>(
    all: Vec<(String, T)>,
    threads: usize,
    run: impl Fn(T) -> Result<Golden, String> + Sync,
) -> Result<Traces, Box<dyn Error>> {
    let left = Mutex::new(all);
    let work = || -> Result<Traces, String> {
        let mut traces = Traces::new();
        loop {
            let next = left.lock().map_err(|error| error.to_string())?.pop();
            let Some((name, what)) = next else { return Ok(traces) };
            let trace = run(what).map_err(|reason| format!("{name}: {reason}"))?;
            traces.insert(name, trace);
        }
    };
    let mut traces = Traces::new();
    thread::scope(|scope| -> Result<(), String> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            traces.extend(worker.join().map_err(|_| "a trace panicked".to_owned())??);
        }
        Ok(())
    })?;
    Ok(traces)
}
