//! Finds the tests that use an item.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::workspace;

/// The kinds of tests that rows name, in the order of the cells.
const PLACES: [&str; 4] = ["wire", "core", "kit", "e2e"];

/// The number of rows that name a test which iterates over all items of its file.
const GOES_THROUGH_ALL: usize = 3;

/// Where a test must contain an item to count as using it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reach {
    /// In the test itself.
    Body,
    /// In the test, or anywhere in the file of a test that many rows of the section name, because it iterates over a list.
    File,
}

#[derive(Debug)]
struct Test {
    place: &'static str,
    name: String,
    body: String,
    /// The index of its file.
    file: usize,
}

/// The tests of the project.
#[derive(Debug, Default)]
pub struct Tests {
    files: Vec<String>,
    all: Vec<Test>,
}

impl Tests {
    /// Reads the tests of the project.
    ///
    /// # Errors
    ///
    /// Returns an error when a source file cannot be read.
    pub fn read() -> io::Result<Self> {
        let mut tests = Self::default();
        for place in PLACES {
            let Some(folder) = workspace::test_dir(place) else { continue };
            let folder = workspace::root().join(folder);
            let mut folders = vec![folder.clone()];
            while let Some(next) = folders.pop() {
                for entry in fs::read_dir(next)? {
                    let path = entry?.path();
                    if path.is_dir() {
                        folders.push(path);
                    } else if path.extension().is_some_and(|end| end == "rs") {
                        tests.add(place, &folder, &path)?;
                    }
                }
            }
        }
        Ok(tests)
    }

    fn add(&mut self, place: &'static str, folder: &Path, path: &Path) -> io::Result<()> {
        let source = fs::read_to_string(path)?;
        let file: PathBuf = path.strip_prefix(folder).unwrap_or(path).with_extension("");
        let file: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
        if place == "e2e" && file.len() == 1 {
            // These check documents and the whole project, and only mention items.
            return Ok(());
        }
        let file = file.join("/");
        for (name, body) in in_source(&source) {
            let name = format!("{place}/{file}::{name}");
            self.all.push(Test { place, name, body, file: self.files.len() });
        }
        self.files.push(source);
        Ok(())
    }

    /// Returns up to two tests that use an item, of different kinds: those that most rows of its section name. `named`
    /// contains the number of rows that name each test.
    pub fn using(
        &self,
        uses: &dyn Fn(&str) -> bool,
        reach: Reach,
        named: &BTreeMap<String, usize>,
    ) -> Vec<String> {
        let count = |test: &Test| named.get(&test.name).copied().unwrap_or_default();
        let mut best = Vec::new();
        for place in PLACES {
            let fitting = self.all.iter().filter(|test| test.place == place).filter(|test| {
                let through_all = reach == Reach::File
                    && count(test) >= GOES_THROUGH_ALL
                    && uses(&self.files[test.file]);
                (uses(&test.body) || through_all) && workspace::has_test(&test.name)
            });
            best.extend(fitting.max_by_key(|test| (count(test), Reverse(&test.name))));
        }
        // The sort is stable, so that ties keep the order of the kinds.
        let mut chosen = best.clone();
        chosen.sort_by_key(|test| Reverse(count(test)));
        chosen.truncate(2);
        best.retain(|test| chosen.iter().any(|other| other.name == test.name));
        best.into_iter().map(|test| test.name.clone()).collect()
    }
}

/// Returns the names and bodies of the tests in a source formatted by rustfmt.
fn in_source(source: &str) -> Vec<(String, String)> {
    let (mut found, mut lines) = (Vec::new(), source.lines());
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if trimmed != "#[test]" && !trimmed.starts_with("#[tokio::test") {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - trimmed.len()]);
        let head = lines.by_ref().find_map(|line| line.split_once("fn "));
        let Some((name, _)) = head.and_then(|(_, rest)| rest.split_once('(')) else { break };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        found.push((name.to_owned(), body.join("\n")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_with_their_bodies() {
        let source = "fn helper() {}\n\n#[test]\nfn a() {\n    one();\n}\n\nmod m {\n    \
                      #[tokio::test(x)]\n    async fn b() {\n        two();\n    }\n}\n";
        let found = in_source(source);
        let expected = [("a", "    one();"), ("b", "        two();")];
        let expected = expected.map(|(name, body)| (name.to_owned(), body.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn most_named_test_of_each_kind_is_chosen() {
        let test = |place, name: &str, body: &str, file| Test {
            place,
            name: name.to_owned(),
            body: body.to_owned(),
            file,
        };
        let (first, second, third) = (
            "wire/launch::every_option_of_model_prompt_and_tools_has_its_flag",
            "wire/launch::resuming_takes_its_flags_together",
            "e2e/sessions/operations::every_operation_has_a_request_and_a_typed_response",
        );
        let tests = Tests {
            files: vec![String::new(), "item".to_owned()],
            all: vec![
                test("wire", first, "item", 0),
                test("wire", second, "item", 0),
                test("e2e", third, "another", 1),
            ],
        };
        let uses = |text: &str| text.contains("item");
        assert_eq!(tests.using(&uses, Reach::File, &BTreeMap::new()), [first]);
        let named = BTreeMap::from([(second.to_owned(), 1), (third.to_owned(), 3)]);
        assert_eq!(tests.using(&uses, Reach::File, &named), [second, third]);
        assert_eq!(tests.using(&uses, Reach::Body, &named), [second]);
    }
}
