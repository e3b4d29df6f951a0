//! The table of deviations in `docs/history-deviations.md`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tests_e2e::workspace;

use crate::compare::{Difference, differences};
use crate::feature::Feature;
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

#[test]
fn table_covers_only_what_it_names() {
    let table = Deviation::table();
    let job = |call| Job { call, ..Job::default() };
    let covered = |subject, call, feature, ours: Value, theirs: Value| -> bool {
        let found = differences(&ours, &theirs);
        assert!(!found.is_empty());
        let features = BTreeSet::from([feature]);
        let is_covered = |difference: &Difference| {
            table.iter().any(|row| row.covers(subject, &job(call), &features, difference))
        };
        found.iter().all(is_covered)
    };
    let title = |title: &str| json!([{"type": "custom-title", "customTitle": title}]);
    let check = |subject, call, feature| covered(subject, call, feature, title("a"), title(" a"));
    assert!(check(Subject::TypeScript, "fork", Feature::PaddedTitle));
    // Another call, another input, another SDK.
    assert!(!check(Subject::TypeScript, "messages", Feature::PaddedTitle));
    assert!(!check(Subject::TypeScript, "fork", Feature::Queued));
    assert!(!check(Subject::TypeScript, "info", Feature::NonAscii));
    assert!(check(Subject::Python, "info", Feature::NonAscii));
    // A second difference beside the one that is listed.
    let other = json!([{"type": "tag", "customTitle": " a"}]);
    assert!(!covered(Subject::TypeScript, "fork", Feature::PaddedTitle, title("a"), other));
    // One entry more.
    let more = json!([{"type": "custom-title", "customTitle": "a"}, {"type": "tag"}]);
    assert!(!covered(Subject::TypeScript, "fork", Feature::PaddedTitle, title("a"), more));
}
