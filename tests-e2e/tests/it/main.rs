//! Runs every scenario on the real CLI and on the simulated CLI, and checks the isolation of the
//! launcher.

mod agreement;
mod launcher;
mod stored;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tests_e2e::scenario::{Backend, RealCli, SCENARIOS, Scenario, SimInMemory, SimProcessBackend};
use tests_e2e::{real_cli, scrub};

/// The backends, by the names of their trials. The real CLI is the reference.
const REAL: &str = "real_cli";
const IN_MEMORY: &str = "sim";
const AS_A_PROCESS: &str = "sim_process";

fn main() -> ExitCode {
    let installed = real_cli::install();
    if launcher::is_probe() {
        return launcher::run_probe(installed);
    }
    let mut arguments = Arguments::from_args();
    // Each trial runs its own CLI; more of them at once only slow each other down.
    arguments.test_threads.get_or_insert(4);
    let mut trials = match installed {
        Ok(cli) => {
            let backend: Arc<dyn Backend> = Arc::new(RealCli::new(cli));
            scenarios(REAL, &backend).chain(launcher::trials(&backend)).collect()
        }
        Err(error) => unavailable(&error.to_string()),
    };
    let in_memory: Arc<dyn Backend> = Arc::new(SimInMemory::new());
    let as_a_process: Arc<dyn Backend> =
        Arc::new(SimProcessBackend::new(env!("CARGO_BIN_EXE_sim")));
    trials.extend(scenarios(IN_MEMORY, &in_memory));
    trials.extend(scenarios(AS_A_PROCESS, &as_a_process));
    trials.extend(stored::trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    agreement::print(&[REAL, IN_MEMORY, AS_A_PROCESS]);
    conclusion.exit_code()
}

/// Returns a trial per scenario.
fn scenarios(
    name: &'static str,
    backend: &Arc<dyn Backend>,
) -> impl Iterator<Item = Trial> + use<> {
    let backend = Arc::clone(backend);
    SCENARIOS.iter().map(move |scenario| {
        let backend = Arc::clone(&backend);
        Trial::test(trial_name(name, scenario), move || play(name, scenario, &backend))
    })
}

fn trial_name(backend: &str, scenario: &Scenario) -> String {
    format!("{backend}::{}", scenario.name)
}

/// How often a scenario is attempted on the real CLI. The real CLI has races of its own, so only a
/// scenario that always fails is an error. The simulated CLI has one attempt.
const REAL_CLI_ATTEMPTS: usize = 3;

fn play(
    name: &'static str,
    scenario: &'static Scenario,
    backend: &Arc<dyn Backend>,
) -> Result<(), Failed> {
    let attempts = if name == REAL { REAL_CLI_ATTEMPTS } else { 1 };
    let mut fault = String::new();
    for _ in 0..attempts {
        match play_once(name, scenario, backend) {
            Ok(()) => return Ok(()),
            Err(failure) => fault = failure,
        }
        agreement::record_failed_attempt(name, scenario.name, &fault);
    }
    Err(fault.into())
}

fn play_once(
    name: &'static str,
    scenario: &'static Scenario,
    backend: &Arc<dyn Backend>,
) -> Result<(), String> {
    let played = block_on(scenario.record(Arc::clone(backend), "today"));
    let recording =
        played.map_err(|error| error.to_string())?.map_err(|failure| failure.to_string())?;
    let leftovers = scrub::leftovers(&recording);
    // Only stored recordings must be clean.
    if name == REAL && !leftovers.is_empty() {
        return Err(format!("still holds {leftovers:?}"));
    }
    agreement::check(name, scenario.name, &recording)
}

fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// Reports that the real CLI is missing, and returns trials that fail in CI and are ignored
/// elsewhere.
#[expect(clippy::print_stderr, reason = "an ignored trial has no other way to give a reason")]
fn unavailable(reason: &str) -> Vec<Trial> {
    eprintln!("the real CLI is not available: {reason}");
    let is_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    let names = SCENARIOS.iter().map(|scenario| trial_name(REAL, scenario));
    names
        .map(|name| {
            let reason = reason.to_owned();
            Trial::test(name, move || Err(reason.into())).with_ignored_flag(!is_ci)
        })
        .collect()
}
