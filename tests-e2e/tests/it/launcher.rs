//! The isolation of the launcher: nothing of the machine reaches the CLI, and no process survives.

use std::collections::BTreeSet;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use tests_e2e::harness::processes;
use tests_e2e::real_cli::{InstallError, InstalledCli, SandboxDir};
use tests_e2e::scenario::{Backend, RealCli, probe};

/// Set in a copy of this process that starts the CLI and prints the environment of a tool.
const PROBE: &str = "CLAUDE_E2E_PROBE";
const SECRET: &str = "must-not-be-seen";

/// Variables that the CLI, the shell and the launcher set themselves.
const EXPECTED: &[&str] =
    &["PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "SHELL", "_", "TMPDIR", "TEMP", "TMP", "USER"];

pub(crate) fn is_probe() -> bool {
    env::var_os(PROBE).is_some()
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the parent process reads both streams"
)]
pub(crate) fn run_probe(cli: Result<InstalledCli, InstallError>) -> ExitCode {
    let environment = cli.map_err(|error| error.to_string()).and_then(|cli| {
        let backend = Arc::new(RealCli::new(cli));
        let played = super::block_on(probe::environment_of_a_tool(backend));
        played.map_err(|error| error.to_string())?.map_err(|failure| failure.to_string())
    });
    match environment {
        Ok(environment) => {
            println!("{environment}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn trials(backend: &Arc<dyn Backend>) -> Vec<Trial> {
    let backend = Arc::clone(backend);
    vec![
        Trial::test("launcher::nothing_of_the_machine_reaches_a_tool", nothing_leaks),
        Trial::test("launcher::nothing_outlives_a_panicking_test", move || {
            no_process_survives(backend)
        }),
    ]
}

fn nothing_leaks() -> Result<(), Failed> {
    // A copy of this process, because setting variables of the current process is unsafe.
    let output = Command::new(env::current_exe()?)
        .env(PROBE, SECRET)
        .env("ANTHROPIC_AUTH_TOKEN", SECRET)
        .env("CLAUDE_CODE_OAUTH_TOKEN", SECRET)
        .output()?;
    let seen = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || !seen.contains("HOME=") {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    check(!seen.contains(SECRET), "a variable of the machine reached the tool", &seen)?;
    if let Ok(home) = env::var("HOME") {
        check(!seen.contains(&format!("HOME={home}\n")), "the machine's home was used", &seen)?;
    }
    let name = |line: &str| line.split_once('=').map(|(name, _)| name.to_owned());
    let seen_names: BTreeSet<String> = seen.lines().filter_map(name).collect();
    let leaked: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| seen_names.contains(name) && !EXPECTED.contains(&name.as_str()))
        .filter(|name| !name.starts_with("CLAUDE") && !name.starts_with("GIT_"))
        .collect();
    check(leaked.is_empty(), &format!("variables of the machine: {leaked:?}"), &seen)
}

fn no_process_survives(backend: Arc<dyn Backend>) -> Result<(), Failed> {
    let mut sandbox = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        super::block_on(async {
            let (cli, its_sandbox) = probe::busy_with_a_tool(backend).await?;
            let running = probe::alive_in(&its_sandbox);
            sandbox = Some((its_sandbox, running));
            let _cli = cli;
            // Unwinds like a failed assertion, without the panic message.
            resume_unwind(Box::new(()));
            #[expect(unreachable_code, reason = "gives the block its type")]
            Ok::<(), Failed>(())
        })
    }));
    let Some((sandbox, running)): Option<(Arc<SandboxDir>, Vec<String>)> = sandbox else {
        return Err(format!("the CLI did not run a tool: {panicked:?}").into());
    };
    check(running.len() > 1, "the CLI and its tool were alive before", &format!("{running:?}"))?;
    // Killed processes need some time to exit.
    processes::wait_until(Duration::from_secs(120), || probe::alive_in(&sandbox).is_empty());
    let left = probe::alive_in(&sandbox);
    check(left.is_empty(), "processes survived", &format!("{left:?}"))
}

fn check(fact: bool, otherwise: &str, seen: &str) -> Result<(), Failed> {
    if fact { Ok(()) } else { Err(format!("{otherwise}\n{seen}").into()) }
}
