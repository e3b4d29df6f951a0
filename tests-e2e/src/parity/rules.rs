//! Derives rows of `docs/parity.md` from names.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{self, Facts};
use super::uses::{Reach, Tests};
use super::{Names, Source};
use crate::tables::hooks;
use crate::tables::options::{self, Setter};

const HOOKS: &str = "Hook events";

/// The section without a column for tests.
const TYPES: &str = "Types";

/// What rows are derived from, in addition to the names.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Project {
    /// The setters of `Options` and of its groups.
    pub setters: Vec<Setter>,
    /// The hook events that the pinned CLI was not observed to fire.
    pub unseen: BTreeSet<String>,
    /// The tests.
    pub tests: Tests,
}

impl Project {
    /// Reads the sources of the project.
    ///
    /// # Errors
    ///
    /// Returns an error when a source file cannot be read.
    pub fn read() -> Result<Self, String> {
        let tests = Tests::read().map_err(|error| format!("the tests cannot be read: {error}"))?;
        Ok(Self { setters: options::setters()?, unseen: hooks::unseen()?, tests })
    }
}

/// The counterpart of a name in this project.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    heading: &'static str,
    /// Names of the public API.
    rust: Vec<String>,
    /// How the value is sent to the CLI.
    sent_as: String,
    /// Texts that a test of the item contains.
    traces: Vec<String>,
    /// Where a test must contain them.
    reach: Reach,
}

/// A table with derived rows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DerivedTable {
    /// The whole text.
    pub table: String,
    /// The rows that were added.
    pub rows: Vec<String>,
    /// Items that get no row yet, because no test uses them.
    pub untested: Vec<String>,
}

/// Returns the table with a row for each missing name that a rule covers.
pub fn derive(table: &str, facts: &Facts, project: &Project) -> DerivedTable {
    let mut items: BTreeMap<Item, BTreeMap<Source, Names>> = BTreeMap::new();
    for (source, name) in table::missing(table, facts) {
        let Some((kind, name)) = name.split_once(' ') else { continue };
        if let Some(item) = item(kind, name, facts, project) {
            let names = items.entry(item).or_default().entry(source).or_default();
            names.insert(name.to_owned());
        }
    }
    let mut derived = DerivedTable { table: table.to_owned(), rows: vec![], untested: vec![] };
    for (item, names) in items {
        let tests = tests(&item, &derived.table, project);
        if tests.is_empty() && item.heading != TYPES {
            derived.untested.extend(item.rust);
            continue;
        }
        let row = table::with_row(&mut derived.table, item.heading, &|column| {
            let source = Source::ALL.iter().find(|source| source.column() == column);
            match (source, column) {
                (Some(source), _) => quoted(names.get(source).into_iter().flatten(), ", "),
                (None, "Rust") => quoted(&item.rust, ", "),
                (None, "test") => tests.clone(),
                (None, "how the CLI is told") => item.sent_as.clone(),
                _ => String::new(),
            }
        });
        derived.rows.extend(row);
    }
    derived
}

/// Returns the cell with the tests of an item.
fn tests(item: &Item, table: &str, project: &Project) -> String {
    let uses = |text: &str| item.traces.iter().any(|trace| has(text, trace));
    let named = table::named_tests(table, item.heading);
    let mut tests = project.tests.using(&uses, item.reach, &named);
    let is_unseen = |name| item.heading == HOOKS && project.unseen.contains(name);
    if !item.traces.iter().any(is_unseen) {
        return quoted(&tests, "<br>");
    }
    // A test on the CLI registers the hook too, but the hook is never called.
    tests.retain(|test| !test.starts_with("e2e/"));
    let note = if tests.is_empty() { "" } else { " (not seen on the pinned CLI)" };
    quoted(&tests, "<br>") + note
}

/// Returns the counterpart of a name, if a rule covers it and the public API contains it.
fn item(kind: &str, name: &str, facts: &Facts, project: &Project) -> Option<Item> {
    let (heading, rust) = match kind {
        "hook" => (HOOKS, vec![format!("hook::{name}")]),
        "export" => (TYPES, vec![type_of_hook(name)?]),
        "method" => ("Methods", vec![format!("Session::{}", snake_case(name))]),
        "operation" => ("Control operations", operation(name, facts)),
        "option" | "flag" => return option(kind, name, facts, project),
        _ => return None,
    };
    let is_here = !rust.is_empty() && rust.iter().all(|item| facts.api.contains(item));
    let trace = if kind == "hook" { name.to_owned() } else { format!("{}(", snake_case(name)) };
    let traces = match kind {
        // An operation without a method is used through its request.
        "operation"
            if !rust.iter().any(|item| item.contains("::") && !item.contains("Request::")) =>
        {
            vec![format!("{}::", pascal_case(name))]
        }
        "operation" => vec![format!("{}(", without_get(name))],
        _ => vec![trace],
    };
    let (sent_as, reach) = (String::new(), Reach::File);
    is_here.then_some(Item { heading, rust, sent_as, traces, reach })
}

/// Returns the type of a hook's input or output.
fn type_of_hook(name: &str) -> Option<String> {
    let input = name.strip_suffix("HookInput").map(|event| format!("{event}Input"));
    input.or_else(|| name.strip_suffix("HookSpecificOutput").map(|event| format!("{event}Output")))
}

/// Returns the method of an operation and its request; empty without a request.
fn operation(name: &str, facts: &Facts) -> Vec<String> {
    let request = pascal_case(name);
    let requests = ["HostRequest", "CliRequest"].map(|sender| format!("{sender}::{request}"));
    let requests = requests.into_iter().filter(|item| facts.api.contains(item));
    let mut found: Vec<String> = requests.collect();
    let methods = [
        format!("Session::{}", without_get(name)),
        format!("McpHandle::{}", name.trim_start_matches("mcp_")),
    ];
    let method = methods.into_iter().find(|method| facts.api.contains(method));
    if !found.is_empty() {
        found.splice(0..0, method);
    }
    found
}

/// Strips the prefix of getters: `get_settings` becomes `settings`.
fn without_get(name: &str) -> &str {
    name.strip_prefix("get_").unwrap_or(name)
}

/// Returns the setter with this name, or those that send the flag.
fn option(kind: &str, name: &str, facts: &Facts, project: &Project) -> Option<Item> {
    let is_it = |setter: &&Setter| match kind {
        "flag" => setter.has_flag(name),
        _ => setter.name == snake_case(name),
    };
    let setters: Vec<&Setter> = project.setters.iter().filter(is_it).collect();
    let sent_as = if kind == "flag" { None } else { setters.first()?.sent.clone() };
    let rust: Vec<String> = setters.iter().map(|setter| setter.item()).collect();
    let is_here = !rust.is_empty() && rust.iter().all(|item| facts.api.contains(item));
    let (heading, traces) = match kind {
        "flag" => ("Flags of the CLI", vec![name.to_owned()]),
        _ => {
            ("Options", [".?(", ".? ="].map(|use_of| use_of.replace('?', &snake_case(name))).into())
        }
    };
    let (sent_as, reach) = (sent_as.unwrap_or_default(), Reach::Body);
    is_here.then_some(Item { heading, rust, sent_as, traces, reach })
}

/// Whether a text contains a trace that is not part of a longer name.
fn has(text: &str, trace: &str) -> bool {
    let in_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    let is_whole = |at: usize| {
        let (before, after) = (&text[..at], &text[at + trace.len()..]);
        (trace.starts_with('.') || !before.ends_with(in_name))
            && (trace.ends_with('(') || !after.starts_with(in_name))
    };
    text.match_indices(trace).any(|(at, _)| is_whole(at))
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a String>, between: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(between)
}

/// Converts `maxTurns` to `max_turns`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Converts `set_model` to `SetModel`.
fn pascal_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_converted_between_cases() {
        assert_eq!(snake_case("maxTurns"), "max_turns");
        assert_eq!(snake_case("max_turns"), "max_turns");
        assert_eq!(pascal_case("set_model"), "SetModel");
    }

    #[test]
    fn trace_inside_a_longer_name_does_not_match() {
        assert!(has("options.model(x)", ".model("));
        assert!(has("[Stop, Setup]", "Stop"));
        assert!(!has("StopFailure PreStop", "Stop"));
        assert!(!has("--max-turns=3", "--max") && has("--max-turns=3", "--max-turns"));
        assert!(!has("reset_model(x)", "set_model("));
        assert!(has(" set_model(x)", "set_model("));
    }
}
