//! The project against the real CLI: one trial per scenario, and what the launcher promises.

mod agreement;
mod launcher;
mod stored;

use std::{env, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Failed, Trial};
use tests_e2e::{
    real_cli,
    scenario::{Backend, RealCli, SCENARIOS, Scenario},
    scrub,
};

fn main() -> ExitCode {
    let installed = real_cli::install();
    if launcher::is_probe() {
        return launcher::run_probe(installed);
    }
    let mut arguments = Arguments::from_args();
    // Each trial runs a CLI of its own; more of them at once only slow each other down.
    arguments.test_threads.get_or_insert(4);
    let mut trials = match installed {
        Ok(cli) => trials(&(Arc::new(RealCli::new(cli)) as Arc<dyn Backend>)),
        Err(error) => unavailable(&error.to_string()),
    };
    trials.extend(stored::trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    agreement::print(&["real_cli"]);
    conclusion.exit_code()
}

fn trials(backend: &Arc<dyn Backend>) -> Vec<Trial> {
    let scenarios = SCENARIOS.iter().map(|scenario| {
        let backend = Arc::clone(backend);
        Trial::test(trial_name(scenario), move || play(scenario, &backend))
    });
    scenarios.chain(launcher::trials(backend)).collect()
}

fn trial_name(scenario: &Scenario) -> String {
    format!("real_cli::{}", scenario.name)
}

/// How often the real CLI may say something in another order: it has races of its own, and only
/// what never agrees is a difference.
const TRIES_ON_THE_REAL_CLI: usize = 3;

fn play(scenario: &'static Scenario, backend: &Arc<dyn Backend>) -> Result<(), Failed> {
    let mut difference = None;
    for _ in 0..TRIES_ON_THE_REAL_CLI {
        let recording = block_on(scenario.play(Arc::clone(backend), "today"))??;
        let leftovers = scrub::leftovers(&recording);
        if !leftovers.is_empty() {
            return Err(format!("still holds {leftovers:?}").into());
        }
        match agreement::check("real_cli", scenario.name, &recording) {
            Ok(()) => return Ok(()),
            Err(told) => difference = Some(told),
        }
    }
    Err(difference.unwrap_or_default().into())
}

fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// Without the CLI nothing can be tried. That is said, and in CI it is a failure.
#[expect(clippy::print_stderr, reason = "an ignored trial has no other way to say why")]
fn unavailable(reason: &str) -> Vec<Trial> {
    eprintln!("the real CLI is not available: {reason}");
    let is_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    let names = SCENARIOS.iter().map(trial_name);
    names
        .map(|name| {
            let reason = reason.to_owned();
            Trial::test(name, move || Err(reason.into())).with_ignored_flag(!is_ci)
        })
        .collect()
}
