//! Folders and files that only the user of the service can read.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Creates a folder, or takes the rights of others to an existing one away.
pub(crate) fn private_folder(path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

/// Replaces a file by one with this text.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    // Not a file or a link that somebody else created meanwhile.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
