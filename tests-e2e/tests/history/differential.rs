//! Compares the results of this SDK with those of both official ones on the same folders.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::compare::{difference, normalized};
use crate::conversation::Profile;
use crate::folder::Folder;
use crate::jobs::{self, Job};
use crate::subjects::{Subject, missing_sdk};

#[test]
fn generated_folders_give_the_results_of_the_official_sdks() {
    if let Some(missing) = missing_sdk() {
        panic!("{missing}");
    }
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let start = SystemTime::now();
    let count: u64 = std::env::var("COUNT").map_or(30, |n| n.parse().unwrap());
    let mut folders = Vec::new();
    let mut all: Vec<(usize, Job)> = Vec::new();
    for seed in 0..count {
        let profile = [Profile::Plain, Profile::Full, Profile::Full, Profile::Damaged][seed as usize % 4];
        let configs: Vec<PathBuf> =
            Subject::ALL.map(|s| root.join(s.name()).join(seed.to_string())).into();
        let folder = Folder::generate(seed, profile, &root.join("work"), &configs);
        for job in jobs::of(&folder, seed) {
            all.push((folders.len(), job));
        }
        folders.push(folder);
    }
    let with_config = |subject: Subject| -> Vec<Job> {
        all.iter()
            .map(|(at, job)| Job {
                config: root.join(subject.name()).join(at.to_string()),
                ..job.clone()
            })
            .collect()
    };
    let jobs = Subject::ALL.map(with_config);
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = Subject::ALL
            .iter()
            .zip(&jobs)
            .map(|(subject, jobs)| scope.spawn(|| subject.run(jobs, &root)))
            .collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    eprintln!("{} jobs, {:?}", all.len(), start.elapsed());
    let mut compared = 0;
    for (at, (folder, job)) in all.iter().enumerate() {
        let folder: &Folder = &folders[*folder];
        for other in [1, 2] {
            let subject = Subject::ALL[other];
            if subject == Subject::Python && !job.is_for_python() {
                continue;
            }
            compared += 1;
            let mine = normalized(&jobs[0][at], &results[0][at], subject, start);
            let theirs = normalized(&jobs[other][at], &results[other][at], subject, start);
            if let Some((path, mine, theirs)) = difference(&mine, &theirs) {
                let features = folder.sessions.iter().find(|s| s.id == job.session).map(|s| s.transcript.features.clone());
                let cut = |v: &serde_json::Value| v.to_string().chars().take(600).collect::<String>();
                eprintln!("DIFF {} {} {} {path} {features:?}\n   ours   {}\n   theirs {}\n   job {}", subject.name(), folder.name, job.call, cut(&mine), cut(&theirs), serde_json::to_string(&jobs[0][at]).unwrap());
            }
        }
    }
    eprintln!("compared {compared}, {:?}", start.elapsed());
    if std::env::var_os("KEEP").is_some() { std::mem::forget(scratch); eprintln!("{root:?}"); }
    let _ = Path::new("");
}
