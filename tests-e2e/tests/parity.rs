//! Checks `docs/parity.md` against the official packages, the public API and the tests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::io::Write as _;
use std::{env, fs, io};

use tests_e2e::parity::rules::{self, Project};
use tests_e2e::parity::table::{self, Facts, problems};
use tests_e2e::parity::{Names, Source, official, stored};
use tests_e2e::real_cli::InstallError;
use tests_e2e::{tables, workspace};

/// Returns the names that a package publishes, or `None` if it is not available, which CI does not
/// accept.
fn published(source: Source) -> Option<Names> {
    match official::names(source) {
        Ok(names) => Some(names),
        Err(error @ InstallError::Unusable(_)) => panic!("{error}"),
        Err(error) => {
            let in_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!in_ci, "{error}");
            // Written directly to stderr, because the test harness captures the output of a passing
            // test.
            let notice = format!("SKIPPED: {} is not compared: {error}\n", source.column());
            io::stderr().write_all(notice.as_bytes()).unwrap();
            None
        }
    }
}

#[track_caller]
fn assert_no_drift(source: Source) {
    let Some(found) = published(source) else { return };
    let drift = stored::drift(&stored::load(source).unwrap(), &found);
    assert!(
        drift.is_empty(),
        "{} {} publishes other names than those that are stored:\n{}\n\
         `cargo xtask parity` stores them; then docs/parity.md must list them",
        source.column(),
        official::version(source),
        drift.join("\n")
    );
}

#[test]
fn typescript_sdk_names_match_the_stored_ones() {
    assert_no_drift(Source::TypeScript);
}

#[test]
fn python_sdk_names_match_the_stored_ones() {
    assert_no_drift(Source::Python);
}

#[test]
fn cli_flags_match_the_stored_ones() {
    assert_no_drift(Source::Cli);
}

/// Returns what the table must agree with. The tests above ensure that the stored names are those
/// of the packages.
fn facts() -> Facts {
    Facts::stored().unwrap()
}

fn table() -> String {
    fs::read_to_string(table::path()).unwrap()
}

#[test]
fn every_published_name_is_covered_or_excluded_with_a_reason() {
    let problems = problems(&table(), &facts(), &workspace::has_test);
    assert!(
        problems.is_empty(),
        "docs/parity.md:\n{}\nhelp: run `{}`, which adds the rows that follow from the names",
        problems.join("\n"),
        tables::COMMAND
    );
}

#[test]
fn removing_any_row_is_detected() {
    let (table, facts) = (table(), facts());
    // The table of omissions has no rows for names.
    let (_, rows) = table.split_once("\n## Options\n").unwrap();
    let rows: Vec<&str> =
        rows.lines().filter(|line| line.starts_with("| `") || line.starts_with("| |")).collect();
    assert!(rows.len() > 400, "{}", rows.len());
    for row in rows {
        let without = table.replacen(&format!("{row}\n"), "", 1);
        assert!(without.len() < table.len(), "{row}");
        let problems = problems(&without, &facts, &|_| true);
        assert!(problems.iter().any(|line| line.starts_with("no row names")), "{row}");
    }
}

/// Returns the table without the row that starts with these cells.
fn without(table: &str, row: &str) -> String {
    let start = format!("| {row} |");
    let line = table.split_inclusive('\n').find(|line| line.starts_with(&start));
    table.replacen(line.unwrap_or_else(|| panic!("no row begins with {start}")), "", 1)
}

#[test]
fn removed_derivable_rows_are_derived_again() {
    let (table, facts, project) = (table(), facts(), Project::read().unwrap());
    for row in [
        "`maxTurns`",
        "`verbatimPrompts`",
        "| `client_app`",
        "`stopTask`",
        "`setPermissionMode`",
        "`PostToolUse`",
        "`CwdChanged`",
        "`stop_task`",
        "`PreToolUseHookInput`",
        "`SetupHookSpecificOutput`",
        "`--effort`",
        "`--fork-session`",
    ] {
        let without = without(&table, row);
        assert!(!problems(&without, &facts, &workspace::has_test).is_empty(), "{row}");
        let derived = rules::derive(&without, &facts, &project);
        let problems = problems(&derived.table, &facts, &workspace::has_test);
        assert_eq!(problems, Vec::<String>::new(), "{:?}", derived.rows);
    }
    // The names of tests in derived rows must exist too.
    for row in ["`CwdChanged`", "`--fork-session`", "`stop_task`"] {
        let rows = rules::derive(&without(&table, row), &facts, &project).rows;
        assert!(rows.len() == 1 && table.contains(&rows[0]), "{rows:?}");
    }
    let same = rules::derive(&table, &facts, &project);
    assert!(same.table == table && same.rows.is_empty(), "{:?}", same.rows);
}

#[test]
fn unused_item_gets_no_row() {
    let (table, facts, project) = (table(), facts(), Project::read().unwrap());
    // No method sends it, so no test uses it.
    let without = without(&table, "`mcp_message`");
    let derived = rules::derive(&without, &facts, &project);
    assert_eq!(derived.table, without);
    assert_eq!(derived.untested, ["HostRequest::McpMessage", "CliRequest::McpMessage"]);
}

#[test]
fn name_without_a_rule_gets_no_row() {
    let (table, facts, project) = (table(), facts(), Project::read().unwrap());
    for row in ["`abortController`", "`streamInput`", "`system/init`", "`--tmux`"] {
        let without = without(&table, row);
        let derived = rules::derive(&without, &facts, &project);
        assert!(derived.table == without && derived.untested.is_empty(), "{:?}", derived.rows);
    }
}
