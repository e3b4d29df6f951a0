//! Checks that the simulated CLI behaves like each version in the table of `docs/cli-versions.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tests_e2e::scenario::SimInMemory;
use tests_e2e::versions::{self, Facts};
use tests_e2e::workspace;

use crate::support::run;

/// Returns the rows of the table, with the value for each version.
fn table() -> BTreeMap<String, Facts> {
    let document = std::fs::read_to_string(workspace::root().join("docs/cli-versions.md")).unwrap();
    let mut rows = document.lines().skip_while(|line| !line.starts_with("|  | 2.1."));
    let cells = |row: &str| -> Vec<String> {
        row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    let versions = cells(rows.next().expect("docs/cli-versions.md has the table"));
    let mut table: BTreeMap<String, Facts> = BTreeMap::new();
    for row in rows.skip(1).take_while(|row| row.starts_with('|')) {
        let cells = cells(row);
        for (version, value) in versions.iter().zip(&cells).skip(1) {
            table.entry(version.clone()).or_default().insert(cells[0].clone(), value.clone());
        }
    }
    table
}

/// Returns whether the simulated CLI depends on the version for this fact. It leaves out fields,
/// messages and operations; flags that it does not use, and capabilities, are the same for all
/// versions.
fn is_simulated(fact: &str) -> bool {
    !fact.starts_with("flag ") && !fact.contains(" capability ") && fact != "compact suite"
}

#[test]
fn simulated_cli_behaves_like_each_version() {
    run(async {
        for (version, expected) in table() {
            let found = versions::facts(Arc::new(SimInMemory::of(&*version))).await.unwrap();
            for (fact, value) in expected.iter().filter(|(fact, _)| is_simulated(fact)) {
                let found = found.get(fact).map_or("no", String::as_str);
                assert_eq!(found, value, "{fact} on {version}");
            }
        }
    });
}
