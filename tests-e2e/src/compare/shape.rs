//! Which fields the lines of each kind have, always or ever.

use std::collections::{BTreeMap, BTreeSet};

use claude_agent_testkit::recording::Recording;

use super::Difference;
use crate::drift::lines_by_kind;

/// What the real CLI was seen to write, by kind of line.
#[derive(Debug, Default)]
pub struct Baseline {
    kinds: BTreeMap<String, Fields>,
}

#[derive(Debug)]
struct Fields {
    /// The paths that every line of the kind has.
    always: BTreeSet<String>,
    /// The paths, with the types of their values, that any line of the kind has.
    ever: BTreeSet<String>,
}

impl Baseline {
    /// Adds what a real CLI wrote.
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

    /// Where the lines of a recording have fields that they should not, or lack some.
    pub fn differences(&self, recording: &Recording) -> Vec<Difference> {
        let mut differences = BTreeSet::new();
        for (kind, typed) in lines_by_kind(recording) {
            let Some(fields) = self.kinds.get(&kind) else {
                differences.insert(Difference::Invents(kind));
                continue;
            };
            let untyped: BTreeSet<String> = typed.iter().map(|path| name(path)).collect();
            // Of what stands inside a list only the list itself is certain.
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

/// The path without the type of its value.
fn name(typed: &str) -> String {
    typed.rsplit_once(": ").map_or(typed, |(path, _)| path).to_owned()
}
