//! Keeps `docs/parity.md` honest: against the official packages, the public API and the tests.

#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the way to fail")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::{env, fs, io};

use tests_e2e::parity::table::{Facts, complaints};
use tests_e2e::parity::{Names, Source, official, stored};
use tests_e2e::real_cli::InstallError;
use tests_e2e::{places, public_api};

/// The names that a package publishes; none if it cannot be had here, which CI does not accept.
fn published(source: Source) -> Option<Names> {
    match official::names(source) {
        Ok(names) => Some(names),
        Err(error @ InstallError::Unusable(_)) => panic!("{error}"),
        Err(error) => {
            let in_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!in_ci, "{error}");
            // Past the harness, which shows nothing of a test that passes.
            let told = format!("SKIPPED: {} is not compared: {error}\n", source.column());
            io::stderr().write_all(told.as_bytes()).unwrap();
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
         `cargo xtask parity` stores them; then docs/parity.md has to tell of them",
        source.column(),
        official::version(source),
        drift.join("\n")
    );
}

#[test]
fn the_sdk_for_typescript_publishes_what_is_stored() {
    assert_no_drift(Source::TypeScript);
}

#[test]
fn the_sdk_for_python_publishes_what_is_stored() {
    assert_no_drift(Source::Python);
}

#[test]
fn the_cli_has_the_flags_that_are_stored() {
    assert_no_drift(Source::Cli);
}

/// What the table has to agree with. The names are those of the packages, as the tests above see
/// to.
fn facts() -> Facts {
    let official = Source::ALL.map(|source| (source, stored::load(source).unwrap()));
    let mut facts = Facts::default();
    facts.official = BTreeMap::from(official);
    facts.api = public_api::stored_names().unwrap();
    facts
}

fn table() -> String {
    fs::read_to_string(places::root().join("docs/parity.md")).unwrap()
}

#[test]
fn every_published_name_is_here_or_left_out_for_a_reason() {
    let complaints = complaints(&table(), &facts(), &places::exists);
    assert!(complaints.is_empty(), "docs/parity.md:\n{}", complaints.join("\n"));
}

#[test]
fn no_row_can_be_taken_away_unnoticed() {
    let (table, facts) = (table(), facts());
    // The table of what is left out has no names of its own.
    let (_, rows) = table.split_once("\n## Options\n").unwrap();
    let rows: Vec<&str> =
        rows.lines().filter(|line| line.starts_with("| `") || line.starts_with("| |")).collect();
    assert!(rows.len() > 400, "{}", rows.len());
    for row in rows {
        let without = table.replacen(&format!("{row}\n"), "", 1);
        assert!(without.len() < table.len(), "{row}");
        let complaints = complaints(&without, &facts, &|_| true);
        assert!(complaints.iter().any(|line| line.starts_with("no row tells of")), "{row}");
    }
}
