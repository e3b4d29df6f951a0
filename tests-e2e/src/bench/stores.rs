//! Compares session stores with the official SDKs: `cargo xtask bench stores`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tests_servers::{postgres, s3};

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
    /// The number of sessions in the list.
    pub sessions: u64,
    /// The number of turns.
    pub turns: usize,
}

impl StoreSizes {
    /// The sizes of the published figures.
    pub const PUBLISHED: Self =
        Self { appends: 6_400, bytes: 100_000_000, sessions: 10_000, turns: 30 };

    /// Small sizes, to check that the benchmark works.
    pub const QUICK: Self = Self { appends: 64, bytes: 2_000_000, sessions: 50, turns: 2 };
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// In the memory of the subject.
    Memory,
    /// A file.
    Sqlite,
    /// A server that this program starts.
    Postgres,
    /// A server that this program starts.
    S3,
}

impl StoreKind {
    /// Returns the name that subjects know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::S3 => "s3",
        }
    }

    /// Returns the title in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::S3 => "S3",
        }
    }
}

/// An operation on a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operation {
    /// The name that subjects know.
    pub name: &'static str,
    /// The title in the table.
    pub title: &'static str,
    /// The operation that fills the store, if this one only reads.
    pub after: Option<&'static str>,
}

const fn operation(name: &'static str, title: &'static str) -> Operation {
    Operation { name, title, after: None }
}

const APPEND: Operation = operation("append", "appends, 1 writer");
const APPEND_32: Operation = operation("append32", "appends, 32 writers");
const IMPORT: Operation = operation("import", "copy 100 MB from disk into the store");
const READ: Operation = Operation {
    after: Some("import"),
    ..operation("read", "read all messages of 100 MB from the store")
};
const RESUME: Operation =
    Operation { after: Some("import"), ..operation("resume", "resume a session of 100 MB") };
const LIST: Operation =
    Operation { after: Some("fill"), ..operation("list", "list 10,000 sessions") };

/// A table of operations.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StoreTable {
    /// The name of the table, by which it can be chosen.
    pub name: &'static str,
    /// The subjects, by their position, with their stores. The first is compared with the others.
    pub columns: &'static [(usize, StoreKind)],
    /// The positions of the columns that the first is compared with, with titles.
    pub ratios: &'static [(usize, &'static str)],
    /// The operations.
    pub operations: &'static [Operation],
}

/// All tables. The subjects are this SDK, Python and TypeScript.
pub const TABLES: [StoreTable; 3] = [
    StoreTable {
        name: "embedded",
        columns: &[
            (0, StoreKind::Memory),
            (0, StoreKind::Sqlite),
            (1, StoreKind::Memory),
            (2, StoreKind::Memory),
        ],
        ratios: &[(2, "times Python"), (3, "times TypeScript")],
        operations: &[APPEND, APPEND_32, IMPORT, READ],
    },
    StoreTable {
        name: "postgres",
        columns: &[(0, StoreKind::Postgres), (1, StoreKind::Postgres)],
        ratios: &[(1, "times Python")],
        operations: &[APPEND, APPEND_32, IMPORT, READ, RESUME, LIST],
    },
    StoreTable {
        name: "s3",
        columns: &[(0, StoreKind::S3), (1, StoreKind::S3)],
        ratios: &[(1, "times Python")],
        operations: &[APPEND, APPEND_32, IMPORT, READ, RESUME, LIST],
    },
];

/// Generated sessions in a temporary directory, which is deleted when this is dropped, and the servers.
#[derive(Debug)]
pub struct StoreData {
    folder: TempDir,
    session: String,
    postgres: Option<postgres::Server>,
    s3: Option<s3::Server>,
    /// How many parts of stores were used.
    names: u32,
}

impl StoreData {
    /// Generates the sessions, and prepares a CLI that reads none of them.
    ///
    /// # Errors
    ///
    /// Returns an error when a file cannot be written.
    pub fn new(sizes: &StoreSizes, cli: &Path) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        let long = generate(&path.join("long"), [TranscriptPlan::new(1, sizes.bytes)])?;
        let plans = (0..sizes.sessions).map(|seed| TranscriptPlan::new(seed + 2, 1_000));
        generate(&path.join("many"), plans)?;
        fs::create_dir(path.join("cli"))?;
        fs::copy(cli, path.join("cli/claude"))?;
        fs::write(path.join("cli/plan"), "first 1\n")?;
        Ok(Self { folder, session: long, postgres: None, s3: None, names: 0 })
    }

    /// Starts the servers of these stores, with the settings that servers have by default.
    ///
    /// # Errors
    ///
    /// Returns why a server cannot be started.
    pub fn start_servers(
        &mut self,
        kinds: impl IntoIterator<Item = StoreKind>,
    ) -> Result<(), String> {
        for kind in kinds {
            match kind {
                StoreKind::Postgres if self.postgres.is_none() => {
                    let defaults = &["fsync=on", "synchronous_commit=on", "wal_writer_delay=200ms"];
                    self.postgres = Some(postgres::Server::start_with(defaults)?);
                }
                StoreKind::S3 if self.s3.is_none() => self.s3 = Some(s3::Server::start()?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a part of a store that nothing was written to.
    pub fn new_part(&mut self, kind: StoreKind) -> StorePart {
        self.names += 1;
        let url = match (kind, &self.postgres, &self.s3) {
            (StoreKind::Postgres, Some(server), _) => server.url_with_password(server.port()),
            (StoreKind::S3, _, Some(server)) => s3::url(server.port(), ""),
            _ => String::new(),
        };
        StorePart { kind, url, name: format!("bench_{}", self.names) }
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
        part: &StorePart,
        appends: usize,
    ) -> Result<Sample, String> {
        let path = self.folder.path();
        let sessions =
            path.join(if matches!(operation, "fill" | "list") { "many" } else { "long" });
        let mut variables = BTreeMap::new();
        for (name, value) in [("HOME", path.to_owned()), ("BENCH_CLI", path.join("cli/claude"))] {
            variables.insert(name.to_owned(), value.to_string_lossy().into_owned());
        }
        variables.insert("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let task = Task { operation, part, session: &self.session, count: appends };
        run(program, &task, &sessions.join("config"), &sessions.join("project"), variables)
    }
}

/// Writes transcripts below a directory, and returns the ID of the first session.
fn generate(path: &Path, plans: impl IntoIterator<Item = TranscriptPlan>) -> io::Result<String> {
    fs::create_dir_all(path.join("project"))?;
    let written = project(&path.join("config"), &path.join("project"), plans)?;
    Ok(written.into_iter().next().ok_or(io::ErrorKind::NotFound)?.session)
}

/// A part of a store: a file, or a schema or a prefix on a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StorePart {
    /// The kind of the store.
    pub kind: StoreKind,
    url: String,
    name: String,
}

/// Runs turns of a session with the real CLI, in a process of its own.
///
/// # Errors
///
/// Returns why there is no result.
pub fn turn(
    harness: &Harness,
    program: &Program,
    part: &StorePart,
    turns: usize,
) -> Result<Sample, String> {
    let mut variables = harness.variables();
    let cli = harness.program().unwrap_or(Path::new(""));
    variables.insert("BENCH_CLI".to_owned(), cli.to_string_lossy().into_owned());
    let config: PathBuf = harness.sandbox().config();
    let task = Task { operation: "turn", part, session: "-", count: turns };
    run(program, &task, &config, &harness.project(), variables)
}

/// The task of a subject.
struct Task<'a> {
    operation: &'a str,
    part: &'a StorePart,
    session: &'a str,
    count: usize,
}

fn run(
    program: &Program,
    task: &Task<'_>,
    config: &Path,
    directory: &Path,
    variables: BTreeMap<String, String>,
) -> Result<Sample, String> {
    let (first, rest) = program.command.split_first().ok_or("no program")?;
    let output = Command::new(first)
        .args(rest)
        .args([task.operation, task.part.kind.name()])
        .args([config, directory])
        .args([task.session, &task.count.to_string()])
        .env_clear()
        .envs(variables)
        .env("BENCH_STORE_URL", &task.part.url)
        .env("BENCH_STORE_NAME", &task.part.name)
        .env("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", s3::SECRET_KEY)
        .envs(program.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Sample::parse(&String::from_utf8_lossy(&output.stdout))
        .map_err(|error| format!("{error} {}", stderr.lines().last().unwrap_or_default()))
}
