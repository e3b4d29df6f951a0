//! The stored names.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{Names, Source};

fn path(source: Source) -> PathBuf {
    let file = match source {
        Source::TypeScript => "typescript.txt",
        Source::Python => "python.txt",
        Source::Cli => "cli_flags.txt",
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("parity").join(file)
}

/// Reads the stored names.
///
/// # Errors
///
/// Returns an error when the file cannot be read.
pub fn load(source: Source) -> io::Result<Names> {
    Ok(fs::read_to_string(path(source))?.lines().map(str::to_owned).collect())
}

/// Stores names.
///
/// # Errors
///
/// Returns an error when the file cannot be written.
pub fn store(source: Source, names: &Names) -> io::Result<()> {
    fs::write(path(source), text_of(names))
}

/// Formats one name per line.
pub fn text_of(names: &Names) -> String {
    names.iter().flat_map(|name| [name.as_str(), "\n"]).collect()
}

/// Returns added (`+`) and removed (`-`) names, one per line.
pub fn drift(stored: &Names, found: &Names) -> Vec<String> {
    let came = found.difference(stored).map(|name| format!("+ {name}"));
    came.chain(stored.difference(found).map(|name| format!("- {name}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_names_are_listed() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Names>();
        let (old, new) = (names(&["option a", "option b"]), names(&["option b", "option c"]));
        assert_eq!(drift(&old, &new), ["+ option c", "- option a"]);
        assert!(drift(&old, &old).is_empty());
    }
}
