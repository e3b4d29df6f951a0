//! The programs of `benches/`: how they are got, and one run of one of them.

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

pub use self::build::build;

/// What takes part, by the names that `--only` takes. The floor is what the others are compared with,
/// and the second is ours.
pub const NAMES: [&str; 6] =
    ["floor", "kit", "python", "typescript", "claude-agent-sdk-rs", "claude-code-client-sdk"];

/// No run takes so long, unless it hangs.
const LIMIT: Duration = Duration::from_secs(180);

/// A client that takes part.
#[derive(Debug)]
#[non_exhaustive]
pub struct Subject {
    /// One of [`NAMES`].
    pub name: &'static str,
    /// What the table calls it.
    pub title: String,
    /// How it is started, or why it is not there.
    pub program: Result<Program, String>,
}

/// How a subject is started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Program {
    /// The program and what stands before the task.
    pub command: Vec<PathBuf>,
    /// What its environment has besides.
    pub variables: Vec<(&'static str, PathBuf)>,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Measurement {
    /// It did the work.
    Figure(f64),
    /// It did not, for this reason.
    Failure(String),
}

/// Where subjects run: with nothing of this machine but the programs.
#[derive(Debug)]
pub struct SubjectRunner {
    folder: TempDir,
    cli: PathBuf,
}

impl SubjectRunner {
    /// One with this CLI, which is the program `bench-cli`.
    ///
    /// # Errors
    ///
    /// When the system's directory for temporary files cannot be written.
    pub fn new(cli: PathBuf) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("home"))?;
        Ok(Self { folder, cli })
    }

    /// Runs a subject once.
    pub fn run(&self, subject: &Subject, work: &str, count: usize, pinned: bool) -> Measurement {
        let answer = subject.program.as_ref().map_err(Clone::clone).and_then(|program| {
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
        match answer {
            Ok(said) => read_answer(&said, &self.complaints()),
            Err(failure) => Measurement::Failure(failure),
        }
    }

    /// A CLI for this task: told what to do by a file beside it, because not every client passes
    /// variables on.
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

    /// The last thing that a subject complained about.
    fn complaints(&self) -> String {
        let said = fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
    }
}

/// Everything that it prints, or that it does not end.
fn finish(mut child: Child) -> Result<String, String> {
    let mut output = child.stdout.take().ok_or("no stdout")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut said = String::new();
        // What is not text has no figure, and a receiver that is gone has given up.
        drop(output.read_to_string(&mut said));
        drop(sender.send(said));
    });
    let said = receiver.recv_timeout(LIMIT);
    if said.is_err() {
        child.kill().map_err(|error| format!("hangs, and cannot be ended: {error}"))?;
    }
    child.wait().map_err(|error| error.to_string())?;
    said.map_err(|_| "hangs".to_owned())
}

/// The last line of what it printed.
fn read_answer(said: &str, complaint: &str) -> Measurement {
    let line = said.lines().last().unwrap_or_default();
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    if let Some(figure) = value["figure"].as_f64() {
        return Measurement::Figure(figure);
    }
    Measurement::Failure(if let Some(reason) = value["cannot"].as_str() {
        format!("cannot: {reason}")
    } else if let Some(reason) = value["failed"].as_str() {
        format!("fails: {reason}")
    } else {
        format!("says nothing: {complaint}")
    })
}

#[cfg(test)]
mod tests {
    use super::{Measurement, read_answer};

    #[test]
    fn the_last_line_is_the_answer() {
        let failure = |text: &str| Measurement::Failure(text.to_owned());
        assert_eq!(read_answer("noise\n{\"figure\": 1.5}\n", ""), Measurement::Figure(1.5));
        assert_eq!(read_answer(r#"{"cannot":"no hooks"}"#, ""), failure("cannot: no hooks"));
        assert_eq!(read_answer(r#"{"failed":"1 of 2"}"#, ""), failure("fails: 1 of 2"));
        assert_eq!(read_answer("", "it broke"), failure("says nothing: it broke"));
        assert_eq!(read_answer(r#"{"figure":"1"}"#, ""), failure("says nothing: "));
    }
}
