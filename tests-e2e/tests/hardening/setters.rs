//! The setters of `Options`, as they stand in its source.

use std::collections::BTreeSet;
use std::fs;

/// The names of all setters.
pub(crate) fn all() -> BTreeSet<String> {
    let folder = tests_e2e::places::root().join("crates/claude-agent-kit/src/options");
    let mut names = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        // What lies deeper has no setters of its own.
        if file.is_dir() {
            continue;
        }
        let source = fs::read_to_string(file).unwrap();
        names.extend(in_source(&source));
    }
    assert!(names.len() > 90, "the source is gone: {names:?}");
    names
}

/// Public functions of `Options` that take it by value.
fn in_source(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for (place, line) in source.lines().enumerate() {
        match line {
            "impl Options {" => inside = true,
            "}" => inside = false,
            _ => {}
        }
        let Some(rest) = line.strip_prefix("    pub fn ").filter(|_| inside) else { continue };
        let signature: Vec<&str> = source.lines().skip(place).take(3).collect();
        let name = rest.split(['(', '<']).next().unwrap();
        let taken = signature.join("");
        let (_, arguments) = taken.split_once('(').unwrap();
        if arguments.trim_start().starts_with("self") {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn setters_are_found_in_every_form_in_which_they_are_written() {
    let source = "impl Options {\n    pub fn new() -> Self {\n    }\n    pub fn a(self) -> Self {\n    \
                  }\n    pub fn b<P>(self, p: P) -> Self {\n    }\n    pub fn c(\n        self,\n\
                  \x20       x: u8,\n    ) -> Self {\n    }\n}\nimpl Other {\n    pub fn d(self) {\n";
    assert_eq!(in_source(source), ["a", "b", "c"]);
}
