//! Reads small files whole, up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::Value;

/// The maximum size: larger than any settings file, than a command line, and than the files beside a transcript.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the contents of a file that the user supplies, who may use links.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    // Opening a pipe would block until a writer opens it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.read(true).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    contents_of(file)
}

/// Returns the contents of an open file.
pub(crate) fn contents_of(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is larger than 1 MiB"));
    }
    Ok(bytes)
}

/// Returns the JSON of a file.
pub(crate) fn read_json(path: &Path) -> io::Result<Value> {
    parse_json(&read(path)?)
}

/// Parses the contents of a file as JSON. The parser of `serde_json` is compiled for each type of
/// input, so every text is parsed as a string.
pub(crate) fn parse_json(bytes: &[u8]) -> io::Result<Value> {
    let text = str::from_utf8(bytes).map_err(io::Error::other)?;
    Ok(serde_json::from_str(text)?)
}
