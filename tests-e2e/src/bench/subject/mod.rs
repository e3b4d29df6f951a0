//! Builds and runs the programs of `benches/`.

mod build;
mod official;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

pub use self::build::{build, build_history, build_stores};

/// The subjects by the names that `--only` accepts. The first is the floor that the others are compared with, the
/// second is this SDK.
pub const NAMES: [&str; 6] =
    ["floor", "kit", "python", "typescript", "claude-agent-sdk-rs", "claude-code-client-sdk"];

/// Longer than any run takes that does not hang.
const LIMIT: Duration = Duration::from_secs(180);

/// A client that is measured.
#[derive(Debug)]
#[non_exhaustive]
pub struct Subject {
    /// One of [`NAMES`].
    pub name: &'static str,
    /// The title in the table.
    pub title: String,
    /// How it is started, or why it is not available.
    pub program: Result<Program, String>,
}

/// How a subject is started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Program {
    /// The program and the arguments before the task.
    pub command: Vec<PathBuf>,
    /// Additional environment variables.
    pub variables: Vec<(&'static str, PathBuf)>,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Measurement {
    /// The measured figure.
    Figure(f64),
    /// The reason why there is no figure.
    Failure(String),
}

/// Runs subjects in a temporary directory with a clean environment.
#[derive(Debug)]
pub struct SubjectRunner {
    folder: TempDir,
    cli: PathBuf,
}

impl SubjectRunner {
    /// Creates a runner with this build of `bench-cli`.
    ///
    /// # Errors
    ///
    /// Returns an error when the temporary directory cannot be created.
    pub fn new(cli: PathBuf) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("home"))?;
        Ok(Self { folder, cli })
    }

    /// Runs a subject once.
    pub fn run(&self, subject: &Subject, work: &str, count: usize, pinned: bool) -> Measurement {
        let measurement = subject.program.as_ref().map_err(Clone::clone).and_then(|program| {
            let cli = self.cli_for(work, count).map_err(|error| error.to_string())?;
            let task = [Path::new(work), Path::new(&count.to_string()), &cli].map(Path::to_owned);
            let pin = ["taskset", "-c", "0"].map(PathBuf::from);
            let words: Vec<PathBuf> = pin
                .into_iter()
                .filter(|_| pinned)
                .chain(program.command.iter().cloned())
                .chain(task)
                .collect();
            self.start(&words, program, &cli).map_err(|error| error.to_string()).and_then(finish)
        });
        match measurement {
            Ok(stdout) => parse_measurement(&stdout, &self.last_stderr_line()),
            Err(failure) => Measurement::Failure(failure),
        }
    }

    /// Returns a copy of the CLI for this task. A file beside the CLI selects the task, because not every client
    /// passes environment variables on.
    fn cli_for(&self, work: &str, count: usize) -> io::Result<PathBuf> {
        let folder = self.folder.path().join(format!("{work}-{count}"));
        let cli = folder.join("claude");
        if !cli.exists() {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("plan"), format!("{work} {count}\n"))?;
            fs::copy(&self.cli, &cli)?;
        }
        Ok(cli)
    }

    fn start(&self, words: &[PathBuf], program: &Program, cli: &Path) -> io::Result<Child> {
        let (first, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let beside = cli.parent().unwrap_or(cli).display();
        Command::new(first)
            .args(rest)
            .env_clear()
            .env("HOME", self.folder.path().join("home"))
            .env("PATH", format!("{beside}:/usr/local/bin:/usr/bin:/bin"))
            .env("TMPDIR", self.folder.path())
            .envs(program.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(self.folder.path().join("stderr"))?)
            .spawn()
    }

    /// Returns the last line that the subject wrote to stderr.
    fn last_stderr_line(&self) -> String {
        let stdout = fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }
}

/// Returns the stdout of the subject, or an error if it hangs.
fn finish(mut child: Child) -> Result<String, String> {
    let mut output = child.stdout.take().ok_or("no stdout")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut stdout = String::new();
        // Output that is not UTF-8 contains no figure, and a dropped receiver has timed out.
        drop(output.read_to_string(&mut stdout));
        drop(sender.send(stdout));
    });
    let stdout = receiver.recv_timeout(LIMIT);
    if stdout.is_err() {
        child.kill().map_err(|error| format!("hangs and cannot be killed: {error}"))?;
    }
    child.wait().map_err(|error| error.to_string())?;
    stdout.map_err(|_| "hangs".to_owned())
}

/// Parses the last line of stdout.
fn parse_measurement(stdout: &str, stderr: &str) -> Measurement {
    let line = stdout.lines().last().unwrap_or_default();
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    if let Some(figure) = value["figure"].as_f64() {
        return Measurement::Figure(figure);
    }
    Measurement::Failure(if let Some(reason) = value["unsupported"].as_str() {
        format!("unsupported: {reason}")
    } else if let Some(reason) = value["failed"].as_str() {
        format!("failed: {reason}")
    } else {
        format!("no result: {stderr}")
    })
}

#[cfg(test)]
mod tests {
    use super::{Measurement, parse_measurement};

    #[test]
    fn last_line_is_the_result() {
        let failure = |text: &str| Measurement::Failure(text.to_owned());
        assert_eq!(parse_measurement("noise\n{\"figure\": 1.5}\n", ""), Measurement::Figure(1.5));
        assert_eq!(
            parse_measurement(r#"{"unsupported":"no hooks"}"#, ""),
            failure("unsupported: no hooks")
        );
        assert_eq!(parse_measurement(r#"{"failed":"1 of 2"}"#, ""), failure("failed: 1 of 2"));
        assert_eq!(parse_measurement("", "it broke"), failure("no result: it broke"));
        assert_eq!(parse_measurement(r#"{"figure":"1"}"#, ""), failure("no result: "));
    }
}
