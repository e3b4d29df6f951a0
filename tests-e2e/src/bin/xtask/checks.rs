//! All checks of a change, ordered so that failures show up early.

use std::env;
use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use tests_e2e::parity::{Source, official};
use tests_e2e::real_cli::{self, InstallError};
#[cfg(target_os = "linux")]
use tests_servers::{postgres, s3};

use super::bare::{self, BareOutcome};
use super::packages::{self, PackagesOutcome};
use super::platforms::{self, PlatformsOutcome};
use super::{Outcome, api, outside};

/// A step: its name, the arguments of cargo, and an environment variable to set.
type Step = (&'static str, &'static [&'static str], Option<(&'static str, &'static str)>);

const STEPS: &[Step] = &[
    ("format", &["fmt", "--all", "--check"], None),
    // These workspaces are not built here, but a changed dependency must not break their lock files.
    ("lock file", &["tree", "--locked", "--depth=0", "--manifest-path=benches/Cargo.toml"], None),
    ("lock file", &["tree", "--locked", "--depth=0", "--manifest-path=fuzz/Cargo.toml"], None),
    (
        "lints",
        &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
        None,
    ),
    ("tests", &["test", "--workspace", "--all-features", "--no-fail-fast"], None),
    (
        "documentation",
        &["doc", "--workspace", "--no-deps", "--all-features"],
        Some(("RUSTDOCFLAGS", "-D warnings")),
    ),
    ("first run", &["run", "--quiet", "--example", "quickstart"], None),
    ("example", &["run", "--quiet", "--example", "stream_text"], None),
    ("example", &["run", "--quiet", "--example", "resume"], None),
    ("example", &["run", "--quiet", "--example", "history"], None),
    ("example", &["run", "--quiet", "--example", "chat"], None),
    ("example", &["run", "--quiet", "--example", "observe"], None),
    ("example", &["run", "--quiet", "--example", "guard"], None),
    ("example", &["run", "--quiet", "--example", "steer"], None),
    ("example", &["run", "--quiet", "--example", "calculator"], None),
    ("example", &["run", "--quiet", "-p", "tests-e2e", "--example", "rmcp_server"], None),
    ("example", &["run", "--quiet", "--example", "structured"], None),
    ("example", &["run", "--quiet", "--example", "doctor"], None),
    (
        "example",
        // With the features that the tests have built.
        &[
            "run",
            "--quiet",
            "-p",
            "claude-agent-store",
            "--all-features",
            "--example",
            "approve_later",
        ],
        None,
    ),
];

/// Installs what the tests need and runs all steps, until one fails.
pub(crate) fn run() -> Outcome {
    // Determined before the steps rebuild this program: a replaced executable has no path.
    let program = env::current_exe()?;
    // Installed first, so that a missing npm is reported before minutes of building.
    let cli = installed();
    if let Err(error) = &cli {
        println!("some tests on the real CLI and the official SDKs cannot run: {error}");
        if is_ci() {
            return Ok(ExitCode::FAILURE);
        }
    }
    for (name, arguments, variable) in STEPS {
        println!("== {name}: cargo {}", arguments.join(" "));
        let mut cargo = Command::new(env!("CARGO"));
        // Steps must not wait for input.
        cargo.args(*arguments).envs(variable.iter().copied()).stdin(Stdio::null());
        let began = Instant::now();
        if !cargo.status()?.success() {
            println!("== {name} failed");
            return Ok(ExitCode::FAILURE);
        }
        println!("== {name} took {} s", began.elapsed().as_secs());
    }
    if !sessions_move()? {
        println!("== example failed");
        return Ok(ExitCode::FAILURE);
    }
    if !unit_tests_need_nothing()? {
        return Ok(ExitCode::FAILURE);
    }
    println!("== a project outside the workspace: snippets, examples, applications");
    if !outside::passes()? {
        println!("== the project outside the workspace failed");
        return Ok(ExitCode::FAILURE);
    }
    let all_platforms = match platforms::check()? {
        PlatformsOutcome::Passed => true,
        PlatformsOutcome::Skipped if !is_ci() => false,
        PlatformsOutcome::Skipped | PlatformsOutcome::Failed => return Ok(ExitCode::FAILURE),
    };
    let all_packages = match packages::check()? {
        PackagesOutcome::Passed => true,
        // Nothing installs cargo-deny, also in CI; a test checks licences and sources without it.
        PackagesOutcome::Skipped => false,
        PackagesOutcome::Failed => return Ok(ExitCode::FAILURE),
    };
    println!("== public API: cargo xtask api, compared");
    if !api::is_as_listed(&program)? {
        println!("== public API failed");
        return Ok(ExitCode::FAILURE);
    }
    match cli {
        Ok(versions) if all_platforms && all_packages => {
            println!("== all passed, on claude {versions}");
        }
        _ => println!("== all checks that could run passed; the checks named above were SKIPPED"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the example `move_session` on every store, and returns whether the second machine knows what the first one
/// was told.
fn sessions_move() -> Result<bool, Box<dyn Error>> {
    if !session_moves(&[])? {
        return Ok(false);
    }
    #[cfg(target_os = "linux")]
    if !postgres::is_skipped() {
        let server = postgres::Server::start()?;
        let url = server.url_with_password(server.port());
        if !session_moves(&["--postgres", &url])? {
            return Ok(false);
        }
    }
    #[cfg(target_os = "linux")]
    if !s3::is_skipped() {
        let server = s3::Server::start()?;
        return session_moves(&["--s3", &s3::url(server.port(), "move-session")]);
    }
    Ok(true)
}

fn session_moves(arguments: &[&str]) -> Result<bool, Box<dyn Error>> {
    println!("== example: move_session {}", arguments.first().unwrap_or(&""));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "-p", "claude-agent-store", "--all-features"]);
    cargo.args(["--example", "move_session", "--"]).args(arguments).stdin(Stdio::null());
    #[cfg(target_os = "linux")]
    cargo.env("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", s3::SECRET_KEY);
    let output = cargo.stderr(Stdio::inherit()).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    print!("{stdout}");
    Ok(output.status.success() && stdout.contains("second machine: It was 42."))
}

/// Returns whether this is CI, where skipped checks are failures, and prints a note.
fn is_ci() -> bool {
    let is_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    if is_ci {
        println!("this is a failure in CI");
    }
    is_ci
}

/// Runs only the unit tests, in a bare environment.
pub(crate) fn bare() -> Outcome {
    Ok(if unit_tests_need_nothing()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns whether the unit tests pass without a CLI, network, home directory and environment variables.
fn unit_tests_need_nothing() -> Result<bool, Box<dyn Error>> {
    println!("== unit tests without CLI, network, home directory and environment variables");
    match bare::run()? {
        BareOutcome::Passed => Ok(true),
        BareOutcome::WithNetwork(reason) => {
            println!(
                "== all passed, but with network access, which could not be removed: {reason}"
            );
            Ok(true)
        }
        BareOutcome::Failed => {
            println!("== unit tests failed in the bare environment");
            Ok(false)
        }
    }
}

/// Installs everything that the tests compare the project with, and returns the versions of the CLI.
fn installed() -> Result<String, InstallError> {
    let versions = real_cli::pinned_versions();
    for version in &versions {
        real_cli::install_version(version)?;
    }
    for source in Source::ALL {
        official::names(source)?;
    }
    Ok(versions.join(" and "))
}
