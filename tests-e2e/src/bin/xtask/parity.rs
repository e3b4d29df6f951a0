//! Stores the public names of the official SDKs and updates the parity table.

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use tests_e2e::parity::rules::{self, Project};
use tests_e2e::parity::table::{self, Facts};
use tests_e2e::parity::{Source, official, stored};

use super::Outcome;

/// Stores the names that the pinned packages publish, prints the changes, and adds the rows that follow from new
/// names.
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

/// Adds missing rows to `docs/parity.md` that can be derived from a name.
pub(crate) fn add_rows() -> Result<(), Box<dyn Error>> {
    let path = table::path();
    let text = fs::read_to_string(&path)?;
    let derived = rules::derive(&text, &Facts::stored()?, &Project::read()?);
    for row in &derived.rows {
        println!("docs/parity.md: new row {row}");
    }
    for item in &derived.untested {
        println!("docs/parity.md: no row for `{item}` until a test uses it");
    }
    if !derived.rows.is_empty() {
        fs::write(path, derived.table)?;
    }
    Ok(())
}
