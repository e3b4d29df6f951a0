//! Compares the results of this SDK with those of both official ones on the same folders.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{env, io, thread};

use serde_json::Value;
use tests_e2e::transcripts;

use crate::compare::{differences, normalized};
use crate::deviations::Deviation;
use crate::feature::Profile;
use crate::folder::Folder;
use crate::jobs::{self, Job};
use crate::subjects::{Subject, missing_sdk};

/// How many folders are generated.
const FOLDERS: u64 = 80;

/// The jobs of all folders, and their results by every SDK.
struct Run {
    start: SystemTime,
    folders: Vec<Folder>,
    /// The folder of each job.
    places: Vec<usize>,
    jobs: BTreeMap<Subject, Vec<Job>>,
    results: BTreeMap<Subject, Vec<Value>>,
}

impl Run {
    /// Generates folders and runs all jobs on them, the SDKs at the same time.
    fn generated(count: u64, root: &Path) -> Self {
        let profiles = [Profile::Plain, Profile::Full, Profile::Full, Profile::Damaged];
        let (mut folders, mut places, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..count {
            let profile = profiles[usize::try_from(seed % 4).unwrap()];
            let configs = Subject::ALL.map(|subject| config(root, subject, folders.len()));
            let mut folder = Folder::generate(seed, profile, &root.join("work"), &configs);
            for job in jobs::of(&mut folder, seed) {
                places.push(folders.len());
                all.push(job);
            }
            folders.push(folder);
        }
        Self::new(root, folders, places, &all)
    }

    /// Runs all jobs on the transcripts that the real CLI wrote.
    fn recorded(root: &Path) -> Self {
        let (mut folders, mut places, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let scenarios = transcripts::SCENARIOS.iter();
        for (scenario, seed) in
            scenarios.flat_map(|scenario| (0..4).map(move |seed| (scenario, seed)))
        {
            let configs = Subject::ALL.map(|subject| config(root, subject, folders.len()));
            let mut folder = Folder::recorded(scenario.name, &configs);
            for job in jobs::of(&mut folder, seed) {
                places.push(folders.len());
                all.push(job);
            }
            folders.push(folder);
        }
        Self::new(root, folders, places, &all)
    }

    fn new(root: &Path, folders: Vec<Folder>, places: Vec<usize>, all: &[Job]) -> Self {
        let start = SystemTime::now();
        let jobs = Subject::ALL.map(|subject| {
            let own = all
                .iter()
                .zip(&places)
                .map(|(job, place)| Job { config: config(root, subject, *place), ..job.clone() });
            (subject, own.collect::<Vec<_>>())
        });
        let results = thread::scope(|scope| {
            let running = jobs
                .each_ref()
                .map(|(subject, jobs)| (*subject, scope.spawn(|| subject.run(jobs, root))));
            running.map(|(subject, thread)| (subject, thread.join().unwrap()))
        });
        Self { start, folders, places, jobs: jobs.into(), results: results.into() }
    }

    /// Compares all results; a difference that the table does not list fails.
    fn compare(&self, table: &[Deviation]) -> Comparison {
        let mut comparison = Comparison::default();
        for subject in [Subject::TypeScript, Subject::Python] {
            for at in 0..self.places.len() {
                let job = &self.jobs[&Subject::Ours][at];
                if subject == Subject::TypeScript || job.is_for_python() {
                    comparison.compared += 1;
                    self.compare_one(subject, at, table, &mut comparison);
                }
            }
        }
        comparison
    }

    fn compare_one(
        &self,
        subject: Subject,
        at: usize,
        table: &[Deviation],
        comparison: &mut Comparison,
    ) {
        let result = |one: Subject| {
            normalized(&self.jobs[&one][at], &self.results[&one], at, subject, self.start)
        };
        let job = &self.jobs[&Subject::Ours][at];
        let folder = &self.folders[self.places[at]];
        let features = folder.features_of(&job.session);
        let found = differences(&result(Subject::Ours), &result(subject));
        comparison.different += usize::from(!found.is_empty());
        for difference in found {
            let covering: Vec<&Deviation> = table
                .iter()
                .filter(|row| row.covers(subject, job, &features, &difference))
                .collect();
            comparison.seen.extend(covering.iter().map(|row| (row.id.clone(), subject)));
            if covering.is_empty() {
                let cut = |value: &Value| value.to_string().chars().take(300).collect::<String>();
                comparison.unlisted.push(format!(
                    "{} {}: {}{}\n  ours:   {}\n  theirs: {}\n  {features:?}\n  {}",
                    folder.name,
                    subject.name(),
                    job.call,
                    difference.path,
                    cut(&difference.ours),
                    cut(&difference.theirs),
                    serde_json::to_string(job).unwrap(),
                ));
                return;
            }
        }
    }
}

/// What a comparison found.
#[derive(Debug, Default)]
struct Comparison {
    compared: usize,
    different: usize,
    /// The deviations that occurred.
    seen: BTreeSet<(String, Subject)>,
    unlisted: Vec<String>,
}

fn config(root: &Path, subject: Subject, place: usize) -> PathBuf {
    root.join(subject.name()).join(place.to_string())
}

/// Returns whether the official SDKs are there. CI requires them.
fn has_sdks() -> bool {
    let Some(missing) = missing_sdk() else { return true };
    let in_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!in_ci, "{missing}");
    // Written directly to stderr, because the test harness captures the output of a passing test.
    let notice = format!("SKIPPED: the history is not compared: {missing}\n");
    io::stderr().write_all(notice.as_bytes()).unwrap();
    false
}

/// Compares everything, and returns the deviations that occurred.
fn compare(run: impl FnOnce(&Path) -> Run) -> Option<BTreeSet<(String, Subject)>> {
    if !has_sdks() {
        return None;
    }
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let comparison = run(&root).compare(&Deviation::table());
    assert!(comparison.compared > 1000, "{comparison:?}");
    assert!(comparison.different < comparison.compared / 3, "{} differ", comparison.different);
    assert!(
        comparison.unlisted.is_empty(),
        "{} differences are not in docs/history-deviations.md:\n{}",
        comparison.unlisted.len(),
        comparison.unlisted[..comparison.unlisted.len().min(20)].join("\n")
    );
    Some(comparison.seen)
}

#[test]
fn generated_folders_give_the_results_of_the_official_sdks() {
    let Some(seen) = compare(|root| Run::generated(FOLDERS, root)) else { return };
    let unseen: Vec<String> = Deviation::table()
        .iter()
        .flat_map(Deviation::keys)
        .filter(|key| !seen.contains(key))
        .map(|(id, subject)| format!("{id} ({})", subject.name()))
        .collect();
    assert!(unseen.is_empty(), "docs/history-deviations.md lists what does not occur: {unseen:?}");
}

#[test]
fn recorded_transcripts_give_the_results_of_the_official_sdks() {
    compare(Run::recorded);
}
