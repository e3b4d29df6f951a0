//! Keeps `docs/messages.md` current: the list of all texts of errors, warnings, problems and findings,
//! rendered by the functions that create them.

mod failures;
mod findings;
mod history;
mod literals;
mod problems;
mod sessions;
mod store;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::store::StoreError;
use crate::warning::{Warning, WarningCode};

const INTRODUCTION: &str = "\
# Messages

Every text that a host or its user sees as an error, a warning, a problem with options or a finding of the
doctor, with example values. The unit test `messages::the_list_of_messages_is_current` renders the texts
and compares them with this file; `UPDATE_EXPECT=1 cargo test -p claude-agent-kit --all-features messages`
rewrites it.

The form is `<what happened>: <cause>; help: <what to do>`. Texts are not part of the API: programs use
`ErrorKind`, `WarningCode` and the facts of an error.
";

/// The list, and the kinds and codes that it contains.
#[derive(Default)]
struct Messages {
    text: String,
    kinds: BTreeSet<&'static str>,
    codes: BTreeSet<&'static str>,
    checks: BTreeSet<String>,
    /// Directories and their replacements in the list.
    replaced: Vec<(String, &'static str)>,
}

impl Messages {
    fn section(&mut self, title: &str) {
        write!(self.text, "\n## {title}\n").unwrap();
    }

    fn line(&mut self, label: &str, text: &str) {
        let mut text = text.replace('\n', "\\n");
        for (path, shown) in &self.replaced {
            text = text.replace(path, shown);
        }
        writeln!(self.text, "- {label}: {text}").unwrap();
    }

    fn error(&mut self, error: &Error) {
        self.kinds.insert(error.kind().as_str());
        self.line(&format!("`{}`", error.kind()), &error.to_string());
    }

    fn store_error(&mut self, error: &StoreError) {
        self.line(&format!("`{}`", error.kind()), &error.to_string());
    }

    fn warning(&mut self, warning: &Warning) {
        self.codes.insert(warning.code().as_str());
        self.line(&format!("`{}`", warning.code()), &warning.to_string());
    }

    fn finding(&mut self, finding: &Finding) {
        self.checks.insert(finding.check().to_string());
        let text = finding.to_string();
        let (level, rest) = text.split_once(' ').unwrap();
        self.line(level, rest.trim_start());
    }

    /// Shows this directory as another one.
    fn replace(&mut self, path: &Path, shown: &'static str) {
        self.replaced.push((path.display().to_string(), shown));
    }
}

fn rendered() -> Messages {
    let mut messages = Messages { text: INTRODUCTION.to_owned(), ..Messages::default() };
    failures::add(&mut messages);
    sessions::add(&mut messages);
    history::add(&mut messages);
    store::add(&mut messages);
    problems::add(&mut messages);
    findings::add(&mut messages);
    messages
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/messages.md")
}

#[test]
fn the_list_of_messages_is_current() {
    let rendered = rendered().text;
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path(), &rendered).unwrap();
        return;
    }
    let stored = fs::read_to_string(path()).unwrap_or_default();
    let changed: Vec<&str> =
        rendered.lines().filter(|line| !stored.lines().any(|other| other == *line)).collect();
    assert!(
        stored == rendered,
        "docs/messages.md is stale; help: run `UPDATE_EXPECT=1 cargo test -p claude-agent-kit \
         --all-features messages`; new lines: {changed:#?}"
    );
}

#[test]
fn the_list_contains_every_kind_code_and_check() {
    let messages = rendered();
    let kinds = ErrorKind::ALL.iter().map(|kind| kind.as_str());
    let missing: Vec<&str> = kinds.filter(|kind| !messages.kinds.contains(kind)).collect();
    assert_eq!(missing, [""; 0], "error kinds without a message");
    let codes = WarningCode::ALL.iter().map(|code| code.as_str());
    let missing: Vec<&str> = codes.filter(|code| !messages.codes.contains(code)).collect();
    assert_eq!(missing, [""; 0], "warning codes without a message");
    assert_eq!(messages.checks.len(), 11, "{:?}", messages.checks);
}

#[test]
fn the_list_contains_every_literal_of_a_message() {
    let text = rendered().text;
    let missing = literals::missing_in(&text);
    assert!(missing.is_empty(), "not in the list of messages: {missing:#?}");
}

/// Texts follow the conventions of the project: lower case, no full stop, one `; help: `.
#[test]
fn messages_follow_the_conventions() {
    let text = rendered().text;
    for line in text.lines().filter_map(|line| line.strip_prefix("- ")) {
        let (_, message) = line.split_once(": ").unwrap();
        let first = message.chars().next().unwrap();
        let is_acronym = ["MCP ", "CLI "].iter().any(|acronym| message.starts_with(acronym));
        assert!(!first.is_uppercase() || is_acronym || message.starts_with("ANTHROPIC"), "{line}");
        assert!(!message.ends_with('.'), "{line}");
        for pronoun in ["it ", "it's ", "somebody ", "nobody ", "what "] {
            assert!(!message.starts_with(pronoun), "{line}");
        }
    }
}
