//! Opens and reads files without blocking on anything that is not a regular file.

use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use claude_wire::transcript::{Ends, WINDOW};
use serde_json::Value;

use crate::small_file;

/// Opens a regular file for reading. Symbolic links are not followed.
pub(crate) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens an existing regular file for appending and reading.
pub(crate) fn open_append(path: &Path) -> io::Result<(File, Metadata)> {
    open_with(OpenOptions::new().read(true).append(true), path)
}

fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<(File, Metadata)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        // A pipe without a writer would block, and a link may lead anywhere.
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    }
    #[cfg(not(unix))]
    if path.symlink_metadata()?.is_symlink() {
        return Err(not_regular());
    }
    let file = options.open(path).map_err(|error| {
        let is_link = !is_absent(&error)
            && path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        if is_link { not_regular() } else { error }
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_regular());
    }
    Ok((file, metadata))
}

pub(crate) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a regular file")
}

/// Returns whether the path does not name anything.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the entries of a folder; none if there is no folder.
pub(crate) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        entries => entries?.collect(),
    }
}

/// Reads at an offset until the buffer is full or the file ends. The position of the file does not
/// matter, so that several readers can share one handle.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        let at = offset + filled as u64;
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(file, &mut buffer[filled..], at);
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(file, &mut buffer[filled..], at);
        match read {
            Ok(0) => break,
            Ok(count) => {
                #[cfg(all(test, unix))]
                counted::add(file, count);
                filled += count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Returns the contents of a small file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    small_file::contents_of(open(path)?.0)
}

/// Returns the JSON of a file beside a transcript. Such files only add to what a list shows, so a
/// broken one counts as absent, as it does for the CLI.
pub(crate) fn read_json(path: &Path) -> Option<Value> {
    small_file::parse_json(&read(path).ok()?).ok()
}

/// The modification time in milliseconds since the Unix epoch, rounded as JavaScript does.
pub(crate) fn modified_millis(metadata: &Metadata) -> i64 {
    let Ok(modified) = metadata.modified() else { return 0 };
    let micros = |since: std::time::Duration| i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    match modified.duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since).saturating_add(500) / 1000,
        Err(before) => -micros(before.duration()) / 1000,
    }
}

/// Buffers for the two ends of a transcript, reused from file to file.
#[derive(Default)]
pub(crate) struct EndBuffers {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl EndBuffers {
    /// Opens a transcript and reads its ends.
    pub(crate) fn open(&mut self, path: &Path) -> io::Result<(Ends<'_>, Metadata)> {
        let (file, metadata) = open(path)?;
        Ok((self.read(&file, metadata.len())?, metadata))
    }

    /// Reads the first and the last bytes of a file of this length.
    pub(crate) fn read(&mut self, file: &File, length: u64) -> io::Result<Ends<'_>> {
        self.head.resize(WINDOW, 0);
        let head = read_at(file, &mut self.head, 0)?;
        if length <= WINDOW as u64 {
            return Ok(Ends::new(&self.head[..head], &self.head[..head]));
        }
        self.tail.resize(WINDOW, 0);
        let tail = read_at(file, &mut self.tail, length - WINDOW as u64)?;
        Ok(Ends::new(&self.head[..head], &self.tail[..tail]))
    }
}

/// How many bytes were read of each file, for tests.
#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "in a test a panic is the way to fail")]
pub(crate) mod counted {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::Mutex;

    /// By device and inode.
    static READ: Mutex<BTreeMap<(u64, u64), usize>> = Mutex::new(BTreeMap::new());

    pub(crate) fn add(file: &File, count: usize) {
        let metadata = file.metadata().unwrap();
        *READ.lock().unwrap().entry((metadata.dev(), metadata.ino())).or_default() += count;
    }

    /// Returns how many bytes were read of a file since the last call.
    pub(crate) fn take(path: &Path) -> usize {
        let metadata = path.metadata().unwrap();
        READ.lock().unwrap().remove(&(metadata.dev(), metadata.ino())).unwrap_or_default()
    }
}
