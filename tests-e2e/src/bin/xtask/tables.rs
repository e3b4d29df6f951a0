//! Writes the tables that are derived from the code.

use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

use tests_e2e::{tables, workspace};

use super::{Outcome, parity};

/// Writes all derived tables that are stale.
pub(crate) fn store() -> Outcome {
    for chapter in tables::chapters()? {
        if chapter.difference().is_some() {
            fs::write(&chapter.path, &chapter.derived)?;
            println!("updated {}", chapter.path.display());
        }
    }
    sources_of_options()?;
    parity::add_rows()?;
    Ok(ExitCode::SUCCESS)
}

/// Updates the table of option sources with a unit test of the kit, because it needs private items.
fn sources_of_options() -> Result<(), Box<dyn Error>> {
    let test = "options::layers::tests::guide_contains_the_layer_table";
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "-p", "claude-agent-kit", "--lib", "--", "--exact", test])
        .env("UPDATE_TABLES", "1")
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("the test `{test}` failed").into()) }
}
