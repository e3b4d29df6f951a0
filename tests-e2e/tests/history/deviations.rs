//! The table of deviations in `docs/history-deviations.md`.

use std::collections::BTreeSet;
use std::fs;

use tests_e2e::workspace;

use crate::compare::Difference;
use crate::conversation::Feature;
use crate::jobs::Job;
use crate::subjects::Subject;

/// A row of the table: where results may differ.
#[derive(Debug)]
pub(crate) struct Deviation {
    pub(crate) id: String,
    subjects: Vec<String>,
    calls: Vec<String>,
    /// Names of [`Feature`]s, one of which the input has.
    features: Vec<String>,
    /// The members that may differ; empty for all.
    members: Vec<String>,
}

impl Deviation {
    /// Reads the rows that the test run compares.
    pub(crate) fn table() -> Vec<Self> {
        let path = workspace::root().join("docs/history-deviations.md");
        let table = fs::read_to_string(path).unwrap();
        let (_, compared) = table.split_once("## Compared in the test run\n").unwrap();
        let compared = compared.split("\n## ").next().unwrap();
        let rows = compared.lines().filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
            let quoted = |at: usize| -> Vec<String> {
                cells[at].split('`').skip(1).step_by(2).map(str::to_owned).collect()
            };
            let id = quoted(0).pop()?;
            let subjects = cells[1].split(", ").map(str::to_owned).collect();
            Some(Self { id, subjects, calls: quoted(2), features: quoted(3), members: quoted(4) })
        });
        rows.collect()
    }

    /// Returns the row once for every SDK that it is about.
    pub(crate) fn keys(&self) -> Vec<(String, Subject)> {
        let is_meant = |subject: &Subject| self.subjects.iter().any(|name| name == subject.name());
        let subjects = Subject::ALL.into_iter().filter(is_meant);
        subjects.map(|subject| (self.id.clone(), subject)).collect()
    }

    pub(crate) fn covers(
        &self,
        subject: Subject,
        job: &Job,
        features: &BTreeSet<Feature>,
        difference: &Difference,
    ) -> bool {
        let has = |feature: &Feature| self.features.contains(&format!("{feature:?}"));
        let is_member = |member: &String| difference.path.contains(&format!(".{member}"));
        self.subjects.iter().any(|name| name == subject.name())
            && self.calls.iter().any(|call| call == job.call)
            && features.iter().any(has)
            && (self.members.is_empty() || self.members.iter().any(is_member))
    }
}
