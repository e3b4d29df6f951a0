//! Tables of the guide and of `docs/` that are derived from the code.
//!
//! A line such as `<!-- table: options model.rs -->` marks a derived table: the rows below it, up to the first line that is
//! not a row. `cargo xtask tables` updates them, and the tests fail when they are stale.
//!
//! - [`docs`]: the doc comments of functions.
//! - [`options`]: the setters of `Options`, by file.
//! - [`operations`]: the control operations of a session, by file.
//! - [`hooks`]: the hook events.
//! - [`api_size`]: the number of public items of the kit.

pub mod api_size;
pub mod docs;
pub mod hooks;
pub mod operations;
pub mod options;

use std::fs;
use std::path::PathBuf;

use crate::workspace;

/// The command that updates all derived tables.
pub const COMMAND: &str = "cargo xtask tables";

const MARKER: &str = "<!-- table: ";

/// A chapter of the guide, or a document, with derived tables.
#[derive(Debug)]
#[non_exhaustive]
pub struct Chapter {
    /// The path of the chapter.
    pub path: PathBuf,
    /// The stored text.
    pub stored: String,
    /// The text with up-to-date tables.
    pub derived: String,
}

impl Chapter {
    fn read(name: &str, tables: &[(String, String)]) -> Result<Self, String> {
        let name = format!("crates/claude-agent-kit/src/guide/{name}");
        Self::read_document(&name, tables)
    }

    fn read_document(name: &str, tables: &[(String, String)]) -> Result<Self, String> {
        let path = workspace::root().join(name);
        let stored = read(&path)?;
        let derived = filled(&stored, tables).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { path, stored, derived })
    }

    /// Returns the first line that differs between the stored and the derived text, from both.
    pub fn difference(&self) -> Option<(&str, &str)> {
        let (mut stored, mut derived) = (self.stored.lines(), self.derived.lines());
        loop {
            match (stored.next(), derived.next()) {
                (None, None) => return None,
                (old, new) if old == new => {}
                (old, new) => return Some((old.unwrap_or_default(), new.unwrap_or_default())),
            }
        }
    }
}

/// Returns the chapters with derived tables.
///
/// # Errors
///
/// Returns an error when a source or a chapter cannot be read, or a chapter lacks the marker of a table.
pub fn chapters() -> Result<Vec<Chapter>, String> {
    Ok(vec![
        Chapter::read("options.md", &options::tables()?)?,
        Chapter::read("hooks.md", &[hooks::table()?])?,
        Chapter::read("sessions.md", &operations::tables()?)?,
        Chapter::read_document("docs/ergonomics.md", &[api_size::table()?])?,
    ])
}

/// Returns a chapter with these tables below their markers. Other tables are left unchanged.
fn filled(chapter: &str, tables: &[(String, String)]) -> Result<String, String> {
    let mut filled = String::with_capacity(chapter.len());
    let (mut in_derived, mut found) = (false, Vec::new());
    for line in chapter.split_inclusive('\n') {
        in_derived &= line.starts_with('|');
        if in_derived {
            continue;
        }
        filled.push_str(line);
        let marked =
            line.strip_prefix(MARKER).and_then(|rest| rest.trim_end().strip_suffix(" -->"));
        if let Some((name, rows)) = tables.iter().find(|(name, _)| Some(name.as_str()) == marked) {
            filled.push_str(rows);
            found.push(name);
            in_derived = true;
        }
    }
    match tables.iter().find(|(name, _)| !found.contains(&name)) {
        Some((name, _)) => Err(format!("no table is marked with `{MARKER}{name} -->`")),
        None => Ok(filled),
    }
}

/// Formats a Markdown table. Empty columns are omitted.
fn markdown<const N: usize>(titles: [&str; N], rows: &[[String; N]]) -> String {
    let kept: Vec<usize> =
        (0..N).filter(|at| rows.iter().any(|row| !row[*at].is_empty())).collect();
    let line = |cells: &dyn Fn(usize) -> String| {
        let cells: Vec<String> = kept.iter().map(|at| cells(*at)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head = line(&|at| titles[at].to_owned());
    let rows = rows.iter().map(|row| line(&|at| row[at].replace('|', "\\|")));
    format!("{head}|{}\n{}", "---|".repeat(kept.len()), rows.collect::<String>())
}

fn read(path: &std::path::Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the names and texts of the Rust files in a directory of the kit, sorted by name.
fn sources(folder: &str) -> Result<Vec<(String, String)>, String> {
    let folder = workspace::root().join("crates/claude-agent-kit/src").join(folder);
    let failed = |error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| end == "rs") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, read(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_table_is_replaced_and_the_rest_is_kept() {
        let chapter = "# A\n<!-- table: x -->\n| old |\n|---|\n| 1 |\n\ntext\n| own |\n|---|\n";
        let tables = [("x".to_owned(), "| new |\n|---|\n".to_owned())];
        let filled = filled(chapter, &tables).unwrap();
        assert_eq!(filled, "# A\n<!-- table: x -->\n| new |\n|---|\n\ntext\n| own |\n|---|\n");
    }

    #[test]
    fn chapter_without_the_marker_is_an_error() {
        let tables = [("y".to_owned(), String::new())];
        let error = filled("<!-- table: x -->\n", &tables).unwrap_err();
        assert_eq!(error, "no table is marked with `<!-- table: y -->`");
    }

    #[test]
    fn empty_column_is_omitted() {
        let rows = [["a".to_owned(), String::new(), "b|c".to_owned()]];
        let table = markdown(["1", "2", "3"], &rows);
        assert_eq!(table, "| 1 | 3 |\n|---|---|\n| a | b\\|c |\n");
    }
}
