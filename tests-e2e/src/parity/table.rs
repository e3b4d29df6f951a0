//! Checks `docs/parity.md`, the table of all names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use super::{Names, Source, stored};
use crate::{public_api, workspace};

/// The headings of the tables and the kind of their names.
const SECTIONS: [(&str, &str); 8] = [
    ("Options", "option"),
    ("Functions, classes and constants", "export"),
    ("Methods", "method"),
    ("Messages", "message"),
    ("Hook events", "hook"),
    ("Control operations", "operation"),
    ("Types", "export"),
    ("Flags of the CLI", "flag"),
];

/// The heading of the table of omissions and their reasons.
const LEFT_OUT: &str = "What is left out";

/// A row: official names and their counterparts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    heading: String,
    names: Vec<(Source, String)>,
    /// Names of the public API.
    rust: Vec<String>,
    /// The reason for an omission.
    reason: Option<String>,
    /// The tests; `None` if the table has no such column.
    tests: Option<Vec<String>>,
}

/// What the table is checked against.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Facts {
    /// The names that each source publishes.
    pub official: BTreeMap<Source, Names>,
    /// The names of the public API, from [`stored_names`](crate::public_api::stored_names).
    pub api: BTreeSet<String>,
}

impl Facts {
    /// Reads the stored facts.
    ///
    /// # Errors
    ///
    /// Returns an error when a file cannot be read.
    pub fn stored() -> io::Result<Self> {
        let mut official = BTreeMap::new();
        for source in Source::ALL {
            official.insert(source, stored::load(source)?);
        }
        Ok(Self { official, api: public_api::stored_names()? })
    }
}

/// Returns the path of the table.
pub fn path() -> PathBuf {
    workspace::root().join("docs/parity.md")
}

/// Returns the published names that no row contains, with their kinds.
pub(super) fn missing(table: &str, facts: &Facts) -> Vec<(Source, String)> {
    let (rows, _) = read(table);
    let mut missing = Vec::new();
    for (source, names) in &facts.official {
        let named: Names = rows.iter().flat_map(|row| row.lines_of(*source)).collect();
        missing.extend(names.difference(&named).map(|name| (*source, name.clone())));
    }
    missing
}

/// Returns how many rows of a section name each test.
pub(super) fn named_tests(table: &str, heading: &str) -> BTreeMap<String, usize> {
    let mut named = BTreeMap::new();
    let rows = read(table).0.into_iter().filter(|row| row.heading == heading);
    for test in rows.flat_map(|row| row.tests.unwrap_or_default()) {
        *named.entry(test).or_default() += 1;
    }
    named
}

/// Appends a row to a section's table and returns it. `cell` returns the text of each column.
pub(super) fn with_row(
    table: &mut String,
    heading: &str,
    cell: &dyn Fn(&str) -> String,
) -> Option<String> {
    let section = table.find(&format!("\n## {heading}\n"))?;
    let first = section + table[section..].find("\n|")? + 1;
    let rows = table[first..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = first + rows.map(str::len).sum::<usize>();
    let columns = cells(table[first..].lines().next()?)?;
    let texts = columns.iter().map(|column| cell(column));
    let texts = texts.map(|text| if text.is_empty() { text } else { format!(" {text}") });
    let row = format!("|{} |", texts.collect::<Vec<_>>().join(" |"));
    table.insert_str(end, &format!("{row}\n"));
    Some(row)
}

/// Returns all problems of the table, one per line.
pub fn problems(table: &str, facts: &Facts, is_test: &dyn Fn(&str) -> bool) -> Vec<String> {
    let (rows, reasons) = read(table);
    let mut problems = Vec::new();
    for (source, name) in missing(table, facts) {
        problems.push(format!("no row names {} `{name}`", source.column()));
    }
    for (source, names) in &facts.official {
        let named: Names = rows.iter().flat_map(|row| row.lines_of(*source)).collect();
        let column = source.column();
        let unknown = named.difference(names).map(|name| format!("{column} has no `{name}`"));
        problems.extend(unknown);
    }
    for row in &rows {
        row.check(facts, is_test, &mut problems);
    }
    check_reasons(&rows, &reasons, &mut problems);
    problems
}

/// Checks that the table of omissions lists exactly what the rows omit. Types are not listed: they go with what uses
/// them.
fn check_reasons(
    rows: &[Row],
    reasons: &BTreeMap<String, BTreeSet<String>>,
    problems: &mut Vec<String>,
) {
    let mut left_out: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let Some(reason) = row.reason.as_deref() else { continue };
        if !reasons.contains_key(reason) {
            problems.push(format!("\"{LEFT_OUT}\" does not explain the reason `{reason}`"));
        } else if row.heading != "Types" {
            let names = row.names.iter().map(|(_, name)| name.clone());
            left_out.entry(reason).or_default().extend(names);
        }
    }
    for (reason, named) in reasons {
        let meant = left_out.remove(reason.as_str()).unwrap_or_default();
        let missing = meant.difference(named).map(|name| (name, "does not name"));
        for (name, what) in missing.chain(named.difference(&meant).map(|name| (name, "names"))) {
            let not = if what == "names" { ", which no row leaves out for it" } else { "" };
            problems.push(format!("\"{LEFT_OUT}\" {what} `{name}` at `{reason}`{not}"));
        }
    }
}

impl Row {
    /// Returns the names of one source, with their kind.
    fn lines_of(&self, source: Source) -> impl Iterator<Item = String> {
        let section = SECTIONS.iter().find(|(heading, _)| *heading == self.heading);
        let kind = section.map_or("?", |(_, kind)| kind);
        let names = self.names.iter().filter(move |(from, _)| *from == source);
        names.map(move |(_, name)| format!("{kind} {name}"))
    }

    fn check(&self, facts: &Facts, is_test: &dyn Fn(&str) -> bool, problems: &mut Vec<String>) {
        let name = self.names.first().map_or("?", |(_, name)| name.as_str());
        let mut report = |what: String| problems.push(format!("{}: `{name}` {what}", self.heading));
        match (&self.reason, self.rust.as_slice()) {
            (None, []) => report("has neither a Rust name nor a reason".to_owned()),
            (Some(_), [_, ..]) => report("has both a Rust name and a reason".to_owned()),
            _ => {}
        }
        for item in self.rust.iter().filter(|item| !facts.api.contains(*item)) {
            report(format!("names `{item}`, which is not in the public API"));
        }
        let tests = self.tests.as_deref().unwrap_or_default();
        if self.tests.is_some() && self.reason.is_none() && tests.is_empty() {
            report("names no test".to_owned());
        }
        for test in tests.iter().filter(|test| !is_test(test)) {
            report(format!("names the test {test}, which does not exist"));
        }
    }
}

/// Parses the rows, and the reasons with the names that they apply to.
fn read(table: &str) -> (Vec<Row>, BTreeMap<String, BTreeSet<String>>) {
    let (mut rows, mut reasons) = (Vec::new(), BTreeMap::new());
    let (mut heading, mut columns) = ("", Vec::new());
    for line in table.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            (heading, columns) = (title, Vec::new());
        }
        let Some(cells) = cells(line) else { continue };
        if columns.is_empty() {
            columns = cells;
        } else if cells.iter().all(|cell| cell.starts_with("---")) {
            // The separator below the header.
        } else if heading == LEFT_OUT {
            let names = cells.last().map(|cell| quoted(cell)).unwrap_or_default();
            reasons.insert(cells[0].trim_matches('`').to_owned(), names.into_iter().collect());
        } else {
            rows.push(row(heading, &columns, &cells));
        }
    }
    (rows, reasons)
}

fn row(heading: &str, columns: &[&str], cells: &[&str]) -> Row {
    let cell = |title: &str| {
        let at = columns.iter().position(|column| *column == title)?;
        cells.get(at).copied()
    };
    let names = Source::ALL.iter().flat_map(|source| {
        let names = quoted(cell(source.column()).unwrap_or_default());
        names.into_iter().map(|name| (*source, name))
    });
    let rust = cell("Rust").unwrap_or_default();
    let reason = rust.strip_prefix("left out: ").map(|reason| reason.trim_matches('`').to_owned());
    Row {
        heading: heading.to_owned(),
        names: names.collect(),
        rust: if reason.is_some() { Vec::new() } else { quoted(rust) },
        reason,
        tests: cell("test").map(quoted),
    }
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// Returns the texts in backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
## What is left out
| why | what it means | names |
|---|---|---|
| `screen` | needs a screen | `title`, `--tmux` |

## Options
| TypeScript | Python | Rust | test |
|---|---|---|---|
| `model` | `model` | `Options::model` | `wire/launch::model` |
| `title` | | left out: `screen` | |

## Types
| TypeScript | Python | Rust |
|---|---|---|
| `Message` | | `Message` |
| `Title` | | left out: `screen` |

## Flags of the CLI
| flag | Rust | test |
|---|---|---|
| `--tmux` | left out: `screen` | |
";

    fn facts() -> Facts {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Names>();
        Facts {
            official: BTreeMap::from([
                (
                    Source::TypeScript,
                    names(&["option model", "option title", "export Message", "export Title"]),
                ),
                (Source::Python, names(&["option model"])),
                (Source::Cli, names(&["flag --tmux"])),
            ]),
            api: names(&["Options::model", "Message"]),
        }
    }

    #[track_caller]
    fn check(table: &str, expected: &[&str]) {
        assert_eq!(problems(table, &facts(), &|test| test == "wire/launch::model"), expected);
    }

    #[test]
    fn complete_table_has_no_problems() {
        check(TABLE, &[]);
    }

    #[test]
    fn missing_rows_are_reported() {
        let rows = TABLE.lines().filter(|line| line.starts_with("| `") && !line.contains("needs"));
        for row in rows {
            let without = TABLE.replace(&format!("{row}\n"), "");
            let named = problems(&without, &facts(), &|_| true);
            assert!(named.iter().any(|line| line.starts_with("no row names")), "{row}: {named:?}");
        }
    }

    #[test]
    fn unknown_official_names_are_reported() {
        check(
            &TABLE.replace("| `model` | `model`", "| `model` | `model`, `models`"),
            &["Python has no `option models`"],
        );
    }

    #[test]
    fn unknown_items_tests_and_reasons_are_reported() {
        check(
            &TABLE.replace("`Options::model`", "`Options::modell`"),
            &["Options: `model` names `Options::modell`, which is not in the public API"],
        );
        check(
            &TABLE.replace("launch::model", "launch::modell"),
            &["Options: `model` names the test wire/launch::modell, which does not exist"],
        );
        check(&TABLE.replace("`wire/launch::model`", ""), &["Options: `model` names no test"]);
        check(
            &TABLE.replace("`Options::model`", ""),
            &["Options: `model` has neither a Rust name nor a reason"],
        );
        check(
            &TABLE.replace("`Title` | | left out: `screen`", "`Title` | | left out: `taste`"),
            &["\"What is left out\" does not explain the reason `taste`"],
        );
    }

    #[test]
    fn table_of_omissions_matches_the_rows() {
        check(
            &TABLE.replace("`title`, `--tmux`", "`--tmux`"),
            &["\"What is left out\" does not name `title` at `screen`"],
        );
        check(
            &TABLE.replace("`title`, `--tmux`", "`title`, `model`, `--tmux`"),
            &["\"What is left out\" names `model` at `screen`, which no row leaves out for it"],
        );
    }
}
