//! Writes down what the official packages publish and what the crates here do.

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use tests_e2e::parity::rules::{self, Project};
use tests_e2e::parity::table::{self, Facts};
use tests_e2e::parity::{Source, official, stored};

use super::Outcome;

/// Stores the names that the pinned packages publish, says what came and went, and adds the rows
/// that follow from the new names.
pub(crate) fn store() -> Outcome {
    for source in Source::ALL {
        let found = official::names(source)?;
        let drift = stored::drift(&stored::load(source).unwrap_or_default(), &found);
        println!("{} {}: {} names", source.column(), official::version(source), found.len());
        for line in drift {
            println!("{line}");
        }
        stored::store(source, &found)?;
    }
    add_rows()?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the rows of `docs/parity.md` that are missing and follow from a name by a rule.
pub(crate) fn add_rows() -> Result<(), Box<dyn Error>> {
    let path = table::path();
    let text = fs::read_to_string(&path)?;
    let derived = rules::derive(&text, &Facts::stored()?, &Project::read()?);
    for row in &derived.rows {
        println!("docs/parity.md has a new row: {row}");
    }
    for item in &derived.untested {
        println!("docs/parity.md gets no row for `{item}` until a test uses it");
    }
    if !derived.rows.is_empty() {
        fs::write(path, derived.table)?;
    }
    Ok(())
}
