//! Files that somebody named: read whole, within bounds.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// More than any settings or configuration have, and than a command line holds.
const MOST: u64 = 1024 * 1024;

/// What stands in a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for somebody to write.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(bytes)
}
