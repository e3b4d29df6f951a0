//! Writes down what the official packages publish and what the crates here do.

use std::process::ExitCode;

use tests_e2e::parity::{Source, official, stored};

use super::Outcome;

/// Stores the names that the pinned packages publish, and says what came and went.
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
    Ok(ExitCode::SUCCESS)
}
