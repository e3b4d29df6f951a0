//! Counts phrases that `docs/glossary.md` replaces, so that they do not return.

use std::path::Path;
use std::{fs, io};

use crate::workspace::root;

/// The maximum number of listed phrases per 1,000 lines.
const MAX_PER_THOUSAND_LINES: usize = 3;

/// Phrases that do not occur in the documentation of comparable crates, as sequences of words.
const PHRASES: &[&str] = &[
    "is no",
    "are no",
    "was no",
    "were no",
    "is none",
    "are none",
    "was none",
    "none of a",
    "none of an",
    "told",
    "tells",
    "stands",
    "stand in",
    "says",
    "said",
    "goes on",
    "go on",
    "went on",
    "nobody",
    "somebody",
    "whoever",
    "whom",
    "for ever",
    "anew",
    "besides",
    "made out",
    "beats",
    "obeyed",
    "obeys",
    "as if all",
    "the like",
    "so many",
    "left behind",
    "let go",
    "heard",
    "hears",
    "shakes hands",
    "shaking hands",
    "complains",
    "complaint",
    "put back",
    "puts back",
    "what is new",
    "people",
    "troubled",
    "mended",
    "fate",
    "puppet",
    "bait",
    "bereft",
    "mortal",
    "patience",
    "household",
    "keeper",
    "of every day",
    "called like",
];

/// Ordinary English that begins like a listed phrase.
const ORDINARY: &[&str] = &["is no longer", "are no longer", "was no longer", "were no longer"];

/// Files that quote the phrases on purpose.
const QUOTING: &[&str] = &["docs/glossary.md", "tests-e2e/src/language.rs"];

/// A listed phrase in a file.
#[derive(Debug)]
struct Occurrence {
    /// The file, relative to the workspace, and the line number.
    place: String,
    /// The phrase as listed.
    phrase: &'static str,
}

/// The number of lines read, and every listed phrase in them.
#[derive(Debug, Default)]
struct PhraseCount {
    /// The number of lines read.
    lines: usize,
    /// Every occurrence of a listed phrase.
    occurrences: Vec<Occurrence>,
}

/// Counts the listed phrases in the sources, tests and documents of the workspace.
///
/// # Errors
/// Fails if a directory or file cannot be read.
fn count_phrases() -> io::Result<PhraseCount> {
    let mut count = PhraseCount::default();
    for directory in
        ["crates", "docs", "examples", "tests-e2e/src", "tests-e2e/tests", "tests-servers"]
    {
        count.add_directory(&root().join(directory))?;
    }
    for file in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"] {
        count.add_file(&root().join(file))?;
    }
    Ok(count)
}

impl PhraseCount {
    fn add_directory(&mut self, directory: &Path) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            // Recorded conversations and code against other versions are data.
            let is_data =
                ["corpus", "ergonomics", "target"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !is_data {
                self.add_directory(&path)?;
            } else if path
                .extension()
                .is_some_and(|extension| extension == "rs" || extension == "md")
            {
                self.add_file(&path)?;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> io::Result<()> {
        let root = root();
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        if QUOTING.contains(&name.as_str()) {
            return Ok(());
        }
        for (number, line) in fs::read_to_string(path)?.lines().enumerate() {
            self.lines += 1;
            let place = || format!("{name}:{}", number + 1);
            let found = phrases_in(line).map(|phrase| Occurrence { place: place(), phrase });
            self.occurrences.extend(found);
        }
        Ok(())
    }
}

/// Returns the listed phrases in a line of prose or code; identifiers are split into words.
fn phrases_in(line: &str) -> impl Iterator<Item = &'static str> {
    // The method of `Option` is not prose.
    let line = line.replace("is_none", "");
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let text = words.fold(String::from(" "), |text, word| text + &word.to_lowercase() + " ");
    let count = move |phrase: &str| text.matches(&format!(" {phrase} ")).count();
    PHRASES.iter().copied().flat_map(move |phrase| {
        let longer = ORDINARY.iter().filter(|ordinary| ordinary.starts_with(phrase));
        let ordinary: usize = longer.map(|ordinary| count(ordinary)).sum();
        std::iter::repeat_n(phrase, count(phrase).saturating_sub(ordinary))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::print_stdout, reason = "in a test a panic is the way to fail")]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_prose_and_identifiers() {
        let found = |line| phrases_in(line).collect::<Vec<_>>();
        assert_eq!(
            found("/// There is no such file; nobody was told."),
            ["is no", "told", "nobody"]
        );
        assert_eq!(found("fn what_is_told_is_no_longer_kept() {"), ["told"]);
        assert!(found("if value.is_none() {").is_empty());
        assert!(found("/// Returns the untold number of retold stories.").is_empty());
    }

    #[test]
    fn documents_and_sources_keep_to_the_glossary() {
        let count = count_phrases().unwrap();
        assert!(count.lines > 50_000, "only {} lines were read", count.lines);
        let allowed = count.lines * MAX_PER_THOUSAND_LINES / 1000;
        for occurrence in &count.occurrences {
            println!("{}: {:?}", occurrence.place, occurrence.phrase);
        }
        let found = count.occurrences.len();
        assert!(found <= allowed, "{found} listed phrases in {} lines", count.lines);
    }
}
