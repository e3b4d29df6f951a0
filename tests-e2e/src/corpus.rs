//! The stored recordings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use claude_agent_testkit::recording::Recording;

/// Returns the directory of the recordings of one CLI version.
pub fn directory(cli_version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/claude-wire/tests/corpus")
        .join(cli_version)
}

/// Stores a recording under the name of its scenario.
///
/// # Errors
///
/// Returns an error when the file cannot be written.
pub fn store(directory: &Path, recording: &Recording) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let path = path(directory, &recording.header.scenario);
    fs::write(&path, recording.to_bytes())?;
    Ok(path)
}

/// Reads the recording of a scenario.
///
/// # Errors
///
/// Returns an error when the file cannot be read or is not a recording.
pub fn load(directory: &Path, scenario: &str) -> io::Result<Recording> {
    let path = path(directory, scenario);
    let in_file = |error: String| io::Error::other(format!("{}: {error}", path.display()));
    let bytes = fs::read(&path).map_err(|error| in_file(error.to_string()))?;
    Recording::parse(&bytes).map_err(|error| in_file(error.to_string()))
}

fn path(directory: &Path, scenario: &str) -> PathBuf {
    directory.join(scenario).with_extension("wire")
}
