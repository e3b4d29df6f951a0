//! The fields that the lines of each kind have, always or sometimes.

use std::collections::{BTreeMap, BTreeSet};

use claude_agent_testkit::recording::Recording;

use super::Difference;
use crate::drift::lines_by_kind;

/// The fields that the real CLI writes, by kind of line.
#[derive(Debug, Default)]
pub struct Baseline {
    kinds: BTreeMap<String, Fields>,
}

#[derive(Debug)]
struct Fields {
    /// The paths that every line of the kind has.
    always: BTreeSet<String>,
    /// The paths, with the types of their values, that some line of the kind has.
    ever: BTreeSet<String>,
}

impl Baseline {
    /// Adds a recording of the real CLI.
    pub fn add(&mut self, recording: &Recording) {
        for (kind, typed) in lines_by_kind(recording) {
            let untyped: BTreeSet<String> = typed.iter().map(|path| name(path)).collect();
            match self.kinds.get_mut(&kind) {
                None => drop(self.kinds.insert(kind, Fields { always: untyped, ever: typed })),
                Some(fields) => {
                    fields.always.retain(|path| untyped.contains(path));
                    fields.ever.extend(typed);
                }
            }
        }
    }

    /// Returns the unexpected and missing fields in the lines of a recording.
    pub fn differences(&self, recording: &Recording) -> Vec<Difference> {
        let mut differences = BTreeSet::new();
        for (kind, typed) in lines_by_kind(recording) {
            let Some(fields) = self.kinds.get(&kind) else {
                differences.insert(Difference::Invents(kind));
                continue;
            };
            let untyped: BTreeSet<String> = typed.iter().map(|path| name(path)).collect();
            // Lists may be empty, so only the list itself is required.
            for path in fields.always.difference(&untyped).filter(|path| !path.contains('[')) {
                differences.insert(Difference::Lacks(format!("{kind} {path}")));
            }
            for path in typed.difference(&fields.ever) {
                differences.insert(Difference::Invents(format!("{kind} {path}")));
            }
        }
        differences.into_iter().collect()
    }
}

/// Returns the path without the type of its value.
fn name(typed: &str) -> String {
    typed.rsplit_once(": ").map_or(typed, |(path, _)| path).to_owned()
}
