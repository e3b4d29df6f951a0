//! Compares released CLIs.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::{Command, ExitCode, Stdio};

use tests_e2e::real_cli;
use tests_e2e::versions::{self, Facts};

use super::Outcome;

/// The name of the row for the test suite.
const SUITE: &str = "compact suite";

/// Prints a table with a column for each version and a row for each fact that differs.
pub(crate) fn run(versions: &[String]) -> Outcome {
    if versions.is_empty() {
        return Err("no version given; help: pass at least one, such as 2.1.325".into());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let mut columns: Vec<(String, Facts)> = Vec::new();
    for version in versions {
        eprintln!("claude {version}");
        let cli = real_cli::install_version(version)?;
        let mut facts = runtime.block_on(versions::facts_of(&cli))?;
        facts.insert(SUITE.to_owned(), suite(version)?);
        columns.push((version.clone(), facts));
    }
    print!("{}", table(&columns));
    let failed = |facts: &Facts| facts.get(SUITE).is_some_and(|row| row.contains("FAILED"));
    let any_failed = columns.iter().any(|(_, facts)| failed(facts));
    Ok(if any_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs the suite on one version and prints its failures.
fn suite(version: &str) -> Result<String, Box<dyn Error>> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "tests-e2e", "--test", "versions", "--"])
        .args(["--skip", "approvals::", "--skip", "missing_features::", "--skip", "simulated::"])
        .env("CLAUDE_E2E_VERSIONS", version)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        eprint!("{stdout}");
    }
    let count = |word: &str| {
        let counts = stdout.lines().find(|line| line.starts_with("test result:"))?;
        counts
            .split(['.', ';'])
            .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
    };
    match (count("passed"), count("failed")) {
        (Some(passed), Some(0_u32)) => Ok(format!("{passed} passed")),
        (Some(passed), Some(failed)) => Ok(format!("{passed} passed, {failed} FAILED")),
        _ => Err(format!("the suite did not run on {version}").into()),
    }
}

fn table(columns: &[(String, Facts)]) -> String {
    let row = |first: &str, cells: Vec<&str>| format!("| {first} | {} |\n", cells.join(" | "));
    let versions: Vec<&str> = columns.iter().map(|(version, _)| version.as_str()).collect();
    let mut table = row("", versions) + "|---|" + &"---|".repeat(columns.len()) + "\n";
    let names: BTreeSet<&String> = columns.iter().flat_map(|(_, facts)| facts.keys()).collect();
    for name in names {
        let cells: Vec<&str> =
            columns.iter().map(|(_, facts)| facts.get(name).map_or("no", String::as_str)).collect();
        // With a single version, all facts are shown.
        let differs = columns.len() == 1 || cells.iter().any(|cell| *cell != cells[0]);
        if differs || name == SUITE {
            table += &row(name, cells);
        }
    }
    table
}
