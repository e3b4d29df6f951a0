//! The fault matrix, with one trial per cell, and a check of its document.

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use tests_e2e::faults::{self, Fault, Programs, State};

/// The minimum number of cells.
const MIN_CELLS: usize = 300;

/// Whether each cell passed.
type Results = Arc<Mutex<BTreeMap<(State, Fault), bool>>>;

fn main() -> ExitCode {
    faults::quiet_panics();
    let mut arguments = Arguments::from_args();
    // Cells spend most of their time waiting.
    arguments.test_threads.get_or_insert(8);
    let results = Results::default();
    let mut trials = vec![
        Trial::test("document_matches_the_code", document),
        Trial::test("matrix_has_enough_cells_and_no_blanks", has_enough_cells),
    ];
    for fault in Fault::all() {
        for state in State::ALL {
            if faults::expected(state, fault).is_ok() {
                let results = Arc::clone(&results);
                let name = format!("{}::{}", state.name(), fault.name());
                trials.push(Trial::test(name, move || cell(state, fault, &results)));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    print(&results);
    conclusion.exit_code()
}

fn cell(state: State, fault: Fault, results: &Results) -> Result<(), Failed> {
    let programs = Programs::new(env!("CARGO_BIN_EXE_sim"), env!("CARGO_BIN_EXE_host"));
    let expected = faults::expected(state, fault)?;
    let actual = faults::run(state, fault, programs);
    let good = actual.as_ref().is_ok_and(|(actual, _)| expected.allows(actual));
    results.lock().unwrap_or_else(PoisonError::into_inner).insert((state, fault), good);
    match actual {
        _ if good => Ok(()),
        Ok((actual, text)) => {
            Err(format!("expected {}\n  actual {actual}\n  {text}", expected.line()).into())
        }
        Err(reason) => Err(reason.into()),
    }
}

/// Prints the cells: letters as in the document, `!` for a cell that failed.
#[expect(clippy::print_stdout, reason = "prints the table")]
fn print(results: &Results) {
    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
    if results.is_empty() {
        return;
    }
    let seen = |state, fault| match results.get(&(state, fault)) {
        Some(true) => faults::expected_code(state, fault),
        Some(false) => format!("!{}", faults::expected_code(state, fault)),
        None if faults::expected(state, fault).is_err() => "·".to_owned(),
        None => "not run".to_owned(),
    };
    println!("{}", faults::table(seen));
    let good = results.values().filter(|good| **good).count();
    println!("{good} of {} cells match docs/faults.md", faults::count());
}

fn document() -> Result<(), Failed> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/faults.md");
    if fs::read_to_string(path)? == faults::document() {
        return Ok(());
    }
    Err("docs/faults.md is not what `cargo xtask faults` prints".into())
}

fn has_enough_cells() -> Result<(), Failed> {
    let mut blank = Vec::new();
    for fault in Fault::all() {
        for state in State::ALL {
            if faults::expected_code(state, fault).contains('?') {
                blank.push(format!("{}::{}", state.name(), fault.name()));
            }
        }
    }
    if faults::count() < MIN_CELLS || !blank.is_empty() {
        return Err(format!("{} cells, without letters: {blank:?}", faults::count()).into());
    }
    Ok(())
}
