//! The known differences and their reasons.

use std::fmt;

use super::Difference;

/// The table of `allowed_differences.md`.
#[derive(Debug)]
pub struct Allowed {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    /// A scenario, or `*` for all.
    scenario: String,
    /// A difference as it is printed, or a prefix of it followed by `*`.
    difference: String,
}

/// An invalid row of the table.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvalidTable {
    /// The line of the file.
    pub line: usize,
}

impl fmt::Display for InvalidTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected `| scenario | difference | reason |`, each filled", self.line)
    }
}

impl std::error::Error for InvalidTable {}

impl Allowed {
    /// Reads the table of a Markdown file.
    ///
    /// # Errors
    /// Returns an error when a row is incomplete; every row needs a reason.
    pub fn parse(markdown: &str) -> Result<Self, InvalidTable> {
        let table = markdown.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
        let mut rows = Vec::new();
        // Skips the header and the separator.
        for (index, line) in table.skip(2) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [scenario, difference, reason] = cells[..] else {
                return Err(InvalidTable { line: index + 1 });
            };
            if scenario.is_empty() || difference.is_empty() || reason.is_empty() {
                return Err(InvalidTable { line: index + 1 });
            }
            let difference = difference.trim_matches('`').to_owned();
            rows.push(Row { scenario: scenario.to_owned(), difference });
        }
        Ok(Self { rows })
    }

    /// Whether the table contains a difference in a scenario.
    pub fn covers(&self, scenario: &str, difference: &Difference) -> bool {
        let text = difference.to_string();
        self.rows.iter().any(|row| {
            let here = row.scenario == "*" || row.scenario == scenario;
            let fits = match row.difference.strip_suffix('*') {
                Some(beginning) => text.starts_with(beginning),
                None => text == row.difference,
            };
            here && fits
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowed, Difference};

    const HEAD: &str = "text\n\n| scenario | difference | reason |\n|---|---|---|\n";

    #[test]
    fn rows_cover_what_they_name() {
        let table = format!("{HEAD}| one | `missing a b` | because |\n| * | `extra x*` | so |\n");
        let allowed = Allowed::parse(&table).unwrap();
        let missing = Difference::Missing("a b".to_owned());
        assert!(allowed.covers("one", &missing));
        assert!(!allowed.covers("two", &missing));
        assert!(allowed.covers("two", &Difference::Extra("xyz".to_owned())));
        assert!(!allowed.covers("two", &Difference::Extra("y".to_owned())));
    }

    #[test]
    fn rows_need_a_reason() {
        let bad = Allowed::parse(&format!("{HEAD}| one | `missing a` | |\n")).unwrap_err();
        assert_eq!(bad.line, 5);
    }
}
