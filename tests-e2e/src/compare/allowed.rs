//! The differences that are known and why they are left.

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
    /// A difference as it is printed, or the beginning of one followed by `*`.
    difference: String,
}

/// A row of the table that cannot be used.
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
    /// When a row is not whole: without a reason nothing is allowed.
    pub fn parse(markdown: &str) -> Result<Self, InvalidTable> {
        let table = markdown.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
        let mut rows = Vec::new();
        // Behind the heading and the rule below it.
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

    /// Whether a difference in a scenario is named in the table.
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
    fn nothing_is_allowed_without_a_reason() {
        let bad = Allowed::parse(&format!("{HEAD}| one | `missing a` | |\n")).unwrap_err();
        assert_eq!(bad.line, 5);
    }
}
