//! Compares stored conversations with the official SDKs: `cargo xtask bench history`.
//!
//! - [`generate`]: transcripts from a seed.
//! - [`row`]: the operations and their targets.

pub mod generate;
pub mod row;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use self::generate::{Generated, TranscriptPlan, project};
use self::row::Sample;
use super::subject::Program;

/// The sizes of the generated history.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sizes {
    /// The number of ordinary sessions.
    pub sessions: u64,
    /// The size of an ordinary transcript in bytes.
    pub session_bytes: u64,
    /// The size of the long transcript in bytes.
    pub long_bytes: u64,
    /// The size of the transcript with a long line in bytes.
    pub huge_bytes: u64,
    /// The size of the long line in bytes.
    pub long_line: usize,
    /// The largest number of sessions for the cost of a page.
    pub most_sessions: u64,
}

impl Sizes {
    /// The sizes of the published figures.
    pub const PUBLISHED: Self = Self {
        sessions: 2_000,
        session_bytes: 200_000,
        long_bytes: 200 << 20,
        huge_bytes: 1_000_000_000,
        long_line: 200_000_000,
        most_sessions: 10_000,
    };

    /// Small sizes, to check that the benchmark works.
    pub const QUICK: Self = Self {
        sessions: 60,
        session_bytes: 200_000,
        long_bytes: 4 << 20,
        huge_bytes: 10_000_000,
        long_line: 2_000_000,
        most_sessions: 200,
    };
}

/// A generated history in a temporary directory, which is deleted when this is dropped.
#[derive(Debug)]
pub struct Dataset {
    folder: TempDir,
    /// The transcripts, the oldest first.
    pub transcripts: Vec<Generated>,
}

impl Dataset {
    /// Generates the history of one project.
    ///
    /// # Errors
    ///
    /// Returns an error when a file cannot be written.
    pub fn new(plans: impl IntoIterator<Item = TranscriptPlan>) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("project"))?;
        fs::create_dir(folder.path().join("home"))?;
        let config = folder.path().join("config");
        let transcripts = project(&config, &folder.path().join("project"), plans)?;
        Ok(Self { folder, transcripts })
    }

    /// Generates ordinary sessions, and a long one that is the newest.
    ///
    /// # Errors
    ///
    /// Returns an error when a file cannot be written.
    pub fn ordinary(sizes: &Sizes) -> io::Result<Self> {
        let ordinary = sessions(sizes.sessions, sizes.session_bytes);
        let long = TranscriptPlan::new(1, sizes.long_bytes);
        Self::new(ordinary.chain([long]))
    }

    /// Runs a subject in a process of its own. Forks that it creates are deleted.
    ///
    /// # Errors
    ///
    /// Returns why there is no result.
    pub fn run(&self, program: &Program, operation: &str, times: usize) -> Result<Sample, String> {
        let output = self.command(program, operation, times).map_err(|error| error.to_string())?;
        let cleaned = self.delete_forks();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        cleaned.map_err(|error| error.to_string())?;
        Sample::parse(&stdout)
            .map_err(|error| format!("{error} {}", stderr.lines().last().unwrap_or_default()))
    }

    fn command(
        &self,
        program: &Program,
        operation: &str,
        times: usize,
    ) -> io::Result<std::process::Output> {
        let (first, rest) = program.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let session = self.transcripts.last().ok_or(io::ErrorKind::InvalidInput)?;
        Command::new(first)
            .args(rest)
            .arg(operation)
            .arg(self.folder.path().join("config"))
            .arg(self.folder.path().join("project"))
            .arg(&session.session)
            .arg(times.to_string())
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(program.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
    }

    /// Deletes every transcript that was not generated.
    fn delete_forks(&self) -> io::Result<()> {
        for folder in entries(&self.folder.path().join("config/projects"))? {
            for file in entries(&folder)? {
                let stem = file.file_stem().unwrap_or_default();
                if !self.transcripts.iter().any(|known| *known.session == *stem) {
                    fs::remove_file(&file)?;
                }
            }
        }
        Ok(())
    }
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Plans this many ordinary sessions of this size.
pub fn sessions(count: u64, bytes: u64) -> impl Iterator<Item = TranscriptPlan> {
    (0..count).map(move |index| TranscriptPlan::new(1000 + index, bytes))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Dataset, Program, sessions};

    #[test]
    fn subjects_get_the_history_and_their_forks_are_deleted() {
        let data = Dataset::new(sessions(2, 20_000)).expect("the history is written");
        let script = r#"for folder in "$1"/projects/*/; do
                test -f "$folder/$3.jsonl" && touch "$folder/fork.jsonl"
            done
            echo '{"count":2,"wall":1.5,"cpu":1.0,"peak":3.0}'"#;
        let command = ["sh", "-c", script].map(PathBuf::from).to_vec();
        let sample = data.run(&Program { command, variables: Vec::new() }, "list", 1);
        assert_eq!(sample.map(|sample| sample.count), Ok(2));
        let project = super::entries(&data.folder.path().join("config/projects"));
        let files = super::entries(&project.expect("a projects folder")[0]);
        assert_eq!(files.map(|files| files.len()).ok(), Some(2));
    }
}
