//! Transcripts of the real CLI, recorded for the tests of the history.

mod scenarios;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use scenarios::{SCENARIOS, TranscriptScenario};

use crate::harness::Harness;
use crate::real_cli::InstalledCli;
use crate::{corpus, scrub};

/// The working directory that recorded transcripts name.
pub const PROJECT: &str = "/srv/project";

/// Returns the directory of the recorded transcripts, with one directory per scenario. Each has what
/// was in the project folder of the CLI.
pub fn directory() -> PathBuf {
    corpus::directory("transcripts")
}

/// Returns the files below a directory with their contents, by their relative paths.
///
/// # Errors
/// Returns an error when a file cannot be read.
pub fn files(directory: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(directory).map_err(io::Error::other)?.to_owned();
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// Runs a scenario on the real CLI, and returns the files of its project folder without what is
/// specific to this machine.
///
/// # Errors
/// Returns an error when the scenario fails, or a file names something of this machine.
pub async fn record(
    scenario: &TranscriptScenario,
    cli: &InstalledCli,
) -> Result<BTreeMap<PathBuf, String>, Box<dyn Error>> {
    let harness = Harness::real(scenario.script(), cli).await?;
    scenario.play(&harness).await?;
    let mut scrubbed = BTreeMap::new();
    for project in fs::read_dir(harness.sandbox().config().join("projects"))? {
        for (path, bytes) in files(&project?.path())? {
            let text = scrub::transcript(&String::from_utf8(bytes)?, harness.sandbox());
            let leftovers = scrub::machine_texts(&text);
            if !leftovers.is_empty() {
                return Err(format!("{}: not scrubbed: {leftovers:?}", path.display()).into());
            }
            scrubbed.insert(path, text);
        }
    }
    Ok(scrubbed)
}

/// Replaces the stored transcripts of a scenario.
///
/// # Errors
/// Returns an error when a file cannot be written.
pub fn store(scenario: &str, files: &BTreeMap<PathBuf, String>) -> io::Result<()> {
    let directory = directory().join(scenario);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    for (path, text) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&directory))?;
        fs::write(path, text)?;
    }
    Ok(())
}
