//! Runs jobs with the official SDKs, one process each, and with this one.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tests_e2e::parity::official;
use tests_e2e::real_cli::InstallError;
use tests_e2e::workspace;

use crate::jobs::Job;
use crate::{ours, support};

/// An implementation of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Ours,
    TypeScript,
    Python,
}

impl Subject {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::TypeScript, Self::Python];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::TypeScript => "TypeScript",
            Self::Python => "Python",
        }
    }

    /// Runs the jobs one after another; each one sees the changes of those before it.
    pub(crate) fn run(self, jobs: &[Job], scratch: &Path) -> Vec<Value> {
        match self.command() {
            None => support::run(async {
                let mut results = Vec::with_capacity(jobs.len());
                for job in jobs {
                    results.push(ours::answer(job, &results).await);
                }
                results
            }),
            Some(command) => self.run_process(command, jobs, scratch).unwrap(),
        }
    }

    fn command(self) -> Option<Command> {
        let folder = workspace::root().join("tests-e2e/tests/history");
        let available =
            |sdk: Result<PathBuf, InstallError>| sdk.unwrap_or_else(|error| panic!("{error}"));
        let (program, script, sdk) = match self {
            Self::Ours => return None,
            Self::TypeScript => {
                let sdk = available(official::typescript_package()).join("sdk.mjs");
                (interpreter("node", &["-p", "process.execPath"]), "official.mjs", sdk)
            }
            Self::Python => {
                let sdk = available(official::python_sources()).join("src");
                let print = "import sys; print(sys.executable)";
                (interpreter("python3", &["-c", print]), "official.py", sdk)
            }
        };
        let mut command = Command::new(program);
        command.arg(folder.join(script)).env_clear().env("HISTORY_SDK", sdk);
        Some(command)
    }

    /// Jobs and results go through files, so that neither side waits for the other.
    fn run_process(
        self,
        mut command: Command,
        jobs: &[Job],
        scratch: &Path,
    ) -> io::Result<Vec<Value>> {
        let place = |kind: &str| scratch.join(format!("{}.{kind}", self.name()));
        let mut input = File::create(place("jobs"))?;
        for job in jobs {
            writeln!(input, "{}", serde_json::to_string(job)?)?;
        }
        let status = command
            .env("HOME", scratch)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(scratch)
            .stdin(File::open(place("jobs"))?)
            .stdout(File::create(place("results"))?)
            .status()?;
        assert!(status.success(), "{}: {status}", self.name());
        let lines = BufReader::new(File::open(place("results"))?).lines();
        let results: Vec<Value> =
            lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect::<io::Result<_>>()?;
        assert_eq!(results.len(), jobs.len(), "{}", self.name());
        Ok(results)
    }
}

/// Returns the path of an interpreter, which may be a wrapper in the `PATH` of this machine.
fn interpreter(tool: &str, arguments: &[&str]) -> PathBuf {
    let output = Command::new(tool).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Returns why the official SDKs cannot be compared with. CI does not accept that.
pub(crate) fn missing_sdk() -> Option<String> {
    for (tool, sdk) in
        [("node", official::typescript_package()), ("python3", official::python_sources())]
    {
        match sdk {
            Err(error @ InstallError::Unusable(_)) => panic!("{error}"),
            Err(error) => return Some(error.to_string()),
            Ok(_) => {}
        }
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).status();
        if let Err(error) = found {
            return Some(format!("{tool}: {error}"));
        }
    }
    None
}
