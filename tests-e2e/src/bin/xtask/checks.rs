//! All checks of a change, ordered so that failures show up early.

use std::env;
use std::error::Error;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Instant;

use tests_e2e::parity::{Source, official};
use tests_e2e::real_cli::{self, InstallError};
use tests_e2e::workspace::root;

use super::programs::Programs;
use super::timing::{Part, Timing};
use super::{Outcome, api, bare, examples, outside, packages, platforms, programs, setup, timing};

/// A step: its name, and what it does.
type Step = (&'static str, Action);

enum Action {
    /// Runs cargo with these arguments.
    Cargo(&'static [&'static str]),
    /// Calls a function.
    Call(fn(&mut Run) -> StepResult),
}

pub(crate) type StepResult = Result<StepOutcome, Box<dyn Error>>;

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Passed,
    /// It could not run, or not all of it, for this reason. In CI this is a failure.
    Skipped(String),
    /// It failed and printed the reason.
    Failed,
}

impl From<bool> for StepOutcome {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

/// What steps share.
pub(crate) struct Run {
    /// The path of this program, determined before the steps rebuild it: a replaced executable has no path.
    pub(crate) program: PathBuf,
    /// The test programs and examples, once they are built.
    programs: Option<Programs>,
    /// The parts of the current step.
    pub(crate) parts: Vec<Part>,
}

impl Run {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { program: env::current_exe()?, programs: None, parts: Vec::new() })
    }

    /// Returns the test programs and examples. Builds them if no step did.
    pub(crate) fn programs(&mut self) -> Result<&Programs, Box<dyn Error>> {
        let built = match self.programs.take() {
            Some(built) => built,
            None => programs::build()?,
        };
        Ok(self.programs.insert(built))
    }
}

const STEPS: &[Step] = &[
    ("tools", Action::Call(|_| setup::run())),
    ("CLIs and official SDKs", Action::Call(|_| Ok(installed()))),
    ("format", Action::Cargo(&["fmt", "--all", "--check"])),
    // These workspaces are not built here, but a changed dependency must not break their lock files.
    (
        "lock file of the benchmarks",
        Action::Cargo(&["tree", "--locked", "--depth=0", "--manifest-path=benches/Cargo.toml"]),
    ),
    (
        "lock file of the fuzz targets",
        Action::Cargo(&["tree", "--locked", "--depth=0", "--manifest-path=fuzz/Cargo.toml"]),
    ),
    (
        "lints",
        Action::Cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ]),
    ),
    ("build of the tests", Action::Call(|run| run.programs().map(|_| StepOutcome::Passed))),
    ("tests", Action::Call(tests)),
    ("documentation", Action::Call(|_| documentation())),
    ("examples", Action::Call(examples::run)),
    ("sessions that move", Action::Call(examples::sessions_move)),
    ("unit tests in a bare environment", Action::Call(|run| bare::run(run.programs()?))),
    ("project outside the workspace", Action::Call(|_| outside::passes().map(Into::into))),
    ("macOS", Action::Call(|_| platforms::check("aarch64-apple-darwin"))),
    ("Windows", Action::Call(|_| platforms::check("x86_64-pc-windows-gnu"))),
    ("oldest supported Rust", Action::Call(|_| platforms::check_minimum_rust())),
    ("packages", Action::Call(|_| packages::check().map(Into::into))),
    ("public API", Action::Call(|run| api::is_as_listed(&run.program).map(Into::into))),
];

/// Runs the steps with these names, or all, until one fails. Prints how long each took, also after a failure.
pub(crate) fn run(names: &[String]) -> Outcome {
    if let Some(name) = names.iter().find(|name| STEPS.iter().all(|step| step.0 != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.0).collect();
        return Err(format!("unknown step: \"{name}\"; help: use {}", known.join(", ")).into());
    }
    let mut run = Run::new()?;
    let mut timings: Vec<Timing> = Vec::new();
    for (name, action) in STEPS {
        if !names.is_empty() && !names.iter().any(|given| given == name) {
            continue;
        }
        println!("== {name}");
        let began = Instant::now();
        let outcome = perform(action, &mut run).unwrap_or_else(|error| {
            println!("error: {error}");
            StepOutcome::Failed
        });
        let (took, parts) = (began.elapsed(), std::mem::take(&mut run.parts));
        timings.push(Timing { name, took, parts, outcome: in_ci(outcome) });
        if timings.last().is_some_and(|last| last.outcome == StepOutcome::Failed) {
            break;
        }
    }
    print!("{}", timing::table(&timings));
    let failed = timings.iter().any(|timing| timing.outcome == StepOutcome::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn perform(action: &Action, run: &mut Run) -> StepResult {
    match action {
        Action::Cargo(arguments) => {
            println!("cargo {}", arguments.join(" "));
            Ok(cargo(arguments).status()?.success().into())
        }
        Action::Call(function) => function(run),
    }
}

/// Returns cargo with these arguments, in the workspace and without input: steps must not wait for it.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(root()).stdin(Stdio::null());
    cargo
}

/// Makes a skipped step a failure in CI.
fn in_ci(outcome: StepOutcome) -> StepOutcome {
    match outcome {
        StepOutcome::Skipped(reason) => {
            println!("skipped: {reason}");
            if env::var_os("CI").is_none_or(|value| value.is_empty()) {
                return StepOutcome::Skipped(reason);
            }
            println!("this is a failure in CI");
            StepOutcome::Failed
        }
        other => other,
    }
}

/// Installs everything that the tests compare the project with.
fn installed() -> StepOutcome {
    let install = || -> Result<(), InstallError> {
        for version in real_cli::pinned_versions().into_iter().chain(real_cli::approval_versions())
        {
            println!("claude {}", real_cli::install_version(&version)?.version);
        }
        for source in Source::ALL {
            official::names(source)?;
        }
        Ok(())
    };
    match install() {
        Ok(()) => StepOutcome::Passed,
        Err(error) => StepOutcome::Skipped(format!(
            "some tests on the real CLI and the official SDKs cannot run: {error}"
        )),
    }
}

fn tests(run: &mut Run) -> StepResult {
    let programs = run.programs()?;
    let mut command = cargo(&programs::TESTS);
    if env::var_os("RUST_TEST_THREADS").is_none() {
        // Many tests wait: for servers, for the ends of processes, for timeouts.
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        command.env("RUST_TEST_THREADS", (2 * cores).to_string());
    }
    let (passed, parts) = timing::timed_tests(command.arg("--no-fail-fast"), programs)?;
    run.parts = parts;
    Ok(passed.into())
}

fn documentation() -> StepResult {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    Ok(command.env("RUSTDOCFLAGS", "-D warnings").status()?.success().into())
}

/// Runs only the unit tests, in a bare environment.
pub(crate) fn bare() -> Outcome {
    let outcome = bare::run(Run::new()?.programs()?)?;
    Ok(if outcome == StepOutcome::Passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
