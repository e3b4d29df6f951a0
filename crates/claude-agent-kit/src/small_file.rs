//! Reads user-supplied files whole, up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The maximum size: larger than any settings file, and than a command line.
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the contents of a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would block until a writer opens it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("the file is larger than 1 MiB"));
    }
    Ok(bytes)
}
