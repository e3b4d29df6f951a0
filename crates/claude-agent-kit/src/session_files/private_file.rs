//! Files that only the user can read, and that appear complete or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;

use super::open;

/// Creates a file that only the user can read; an existing one is an error.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a folder that only the user can read, with its parents, unless it exists.
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    dir_builder().recursive(true).create(path)
}

/// Creates a folder that only the user can read, unless it exists. A link to a folder is an error, because
/// it may lead anywhere.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    match dir_builder().create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if path.symlink_metadata()?.is_dir() {
                return Ok(());
            }
            Err(io::Error::other("not a folder"))
        }
        result => result,
    }
}

#[cfg(unix)]
fn dir_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(not(unix))]
fn dir_builder() -> DirBuilder {
    DirBuilder::new()
}

/// Gives a complete file its name, which must not be taken. The temporary name may be kept too.
pub(crate) fn publish(temporary: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, target) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // Not every file system has links.
            match target.symlink_metadata() {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => fs::rename(temporary, target),
            }
        }
        result => result,
    }
}

/// Replaces a file as a whole. A reader sees the old or the new contents.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", crate::random::uuid()));
    let write = || {
        create(&temporary)?.write_all(contents)?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Returns whether a path names a regular file with the same contents as another file. Links are not
/// followed.
pub(crate) fn has_contents_of(path: &Path, other: &Path) -> io::Result<bool> {
    let (one, two) = (path.symlink_metadata()?, other.metadata()?);
    if !one.is_file() || one.len() != two.len() {
        return Ok(false);
    }
    let mut one = BufReader::with_capacity(64 * 1024, open::open(path)?.0);
    let mut two = BufReader::with_capacity(64 * 1024, File::open(other)?);
    loop {
        let (left, right) = (one.fill_buf()?, two.fill_buf()?);
        let length = left.len().min(right.len());
        if length == 0 || left[..length] != right[..length] {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(length);
        two.consume(length);
    }
}
