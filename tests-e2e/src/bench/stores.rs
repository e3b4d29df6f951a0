//! Compares session stores with the official SDKs: `cargo xtask bench stores`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::history::generate::{TranscriptPlan, project};
use super::history::row::Sample;
use super::subject::Program;
use crate::harness::Harness;

/// The sizes of the workloads.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StoreSizes {
    /// The number of appends.
    pub appends: usize,
    /// The size of the transcript in bytes.
    pub bytes: u64,
    /// The number of turns.
    pub turns: usize,
}

impl StoreSizes {
    /// The sizes of the published figures.
    pub const PUBLISHED: Self = Self { appends: 6_400, bytes: 100_000_000, turns: 30 };

    /// Small sizes, to check that the benchmark works.
    pub const QUICK: Self = Self { appends: 64, bytes: 2_000_000, turns: 2 };
}

/// The operations and their titles.
pub const OPERATIONS: [(&str, &str); 4] = [
    ("append", "appends, 1 writer"),
    ("append32", "appends, 32 writers"),
    ("import", "copy 100 MB from disk into the store"),
    ("read", "read all messages of 100 MB from the store"),
];

/// A generated session in a temporary directory, which is deleted when this is dropped.
#[derive(Debug)]
pub struct StoreData {
    folder: TempDir,
    session: String,
}

impl StoreData {
    /// Generates the session.
    ///
    /// # Errors
    ///
    /// Returns an error when a file cannot be written.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().to_owned();
        fs::create_dir(path.join("project"))?;
        let plan = [TranscriptPlan::new(1, bytes)];
        let written = project(&path.join("config"), &path.join("project"), plan)?;
        let session = written.into_iter().next().ok_or(io::ErrorKind::NotFound)?.session;
        Ok(Self { folder, session })
    }

    /// Runs an operation in a process of its own.
    ///
    /// # Errors
    ///
    /// Returns why there is no result.
    pub fn run(
        &self,
        program: &Program,
        operation: &str,
        store: &str,
        appends: usize,
    ) -> Result<Sample, String> {
        let path = self.folder.path();
        if operation != "read" {
            for file in ["sessions.db", "sessions.db-wal", "sessions.db-shm"] {
                // The first run has no such file.
                drop(fs::remove_file(path.join("config").join(file)));
            }
        }
        let mut variables = BTreeMap::new();
        variables.insert("HOME".to_owned(), path.to_string_lossy().into_owned());
        variables.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let task = Task { operation, store, session: &self.session, count: appends };
        run(program, &task, &path.join("config"), &path.join("project"), &variables)
    }
}

/// Runs turns of a session with the real CLI, in a process of its own.
///
/// # Errors
///
/// Returns why there is no result.
pub fn turn(
    harness: &Harness,
    program: &Program,
    store: &str,
    turns: usize,
) -> Result<Sample, String> {
    let mut variables = harness.variables();
    let cli = harness.program().unwrap_or(Path::new(""));
    variables.insert("BENCH_CLI".to_owned(), cli.to_string_lossy().into_owned());
    let config: PathBuf = harness.sandbox().config();
    let task = Task { operation: "turn", store, session: "-", count: turns };
    run(program, &task, &config, &harness.project(), &variables)
}

/// The task of a subject.
struct Task<'a> {
    operation: &'a str,
    store: &'a str,
    session: &'a str,
    count: usize,
}

fn run(
    program: &Program,
    task: &Task<'_>,
    config: &Path,
    directory: &Path,
    variables: &BTreeMap<String, String>,
) -> Result<Sample, String> {
    let (first, rest) = program.command.split_first().ok_or("no program")?;
    let output = Command::new(first)
        .args(rest)
        .args([task.operation, task.store])
        .args([config, directory])
        .args([task.session, &task.count.to_string()])
        .env_clear()
        .envs(variables)
        .envs(program.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Sample::parse(&String::from_utf8_lossy(&output.stdout))
        .map_err(|error| format!("{error} {}", stderr.lines().last().unwrap_or_default()))
}
