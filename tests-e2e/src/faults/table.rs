//! The table of the outcomes of every fault in every state.

use std::fmt::Write as _;

use super::outcome::LEGEND;
use super::{Fault, State, expected};

/// Returns the number of cells.
pub fn count() -> usize {
    State::ALL
        .into_iter()
        .flat_map(|state| Fault::all().map(move |fault| expected(state, fault)))
        .flatten()
        .count()
}

/// Formats a Markdown table with the text of `cell` for each pair.
pub fn table(cell: impl Fn(State, Fault) -> String) -> String {
    let mut text = String::from("| origin | fault |");
    for state in State::ALL {
        add(&mut text, format_args!(" {} |", state.name()));
    }
    add(&mut text, format_args!("\n|---|---|{}\n", "---|".repeat(State::ALL.len())));
    for fault in Fault::all() {
        add(&mut text, format_args!("| {} | {} |", fault.origin(), fault.name()));
        for state in State::ALL {
            add(&mut text, format_args!(" {} |", cell(state, fault)));
        }
        text.push('\n');
    }
    text
}

/// Returns the code of the expected outcome of a fault in a state.
pub fn expected_code(state: State, fault: Fault) -> String {
    expected(state, fault).map_or_else(|_| "·".to_owned(), |outcome| outcome.code())
}

/// Returns the contents of `docs/faults.md`.
pub fn document() -> String {
    let mut text = String::from(INTRODUCTION);
    add(&mut text, format_args!("\n## States\n| state | description |\n|---|---|\n"));
    for state in State::ALL {
        add(&mut text, format_args!("| {} | {} |\n", state.name(), state.about()));
    }
    add(&mut text, format_args!("\n## Faults\n| origin | fault | description |\n|---|---|---|\n"));
    for fault in Fault::all() {
        let (origin, name, about) = (fault.origin(), fault.name(), fault.about());
        add(&mut text, format_args!("| {origin} | {name} | {about} |\n"));
    }
    add(&mut text, format_args!("\n## Outcomes: {} cells\n{EXPLANATION}\n", count()));
    text.push_str(&table(expected_code));
    text.push_str("\n| code | meaning |\n|---|---|\n");
    for (letters, meaning) in LEGEND {
        add(&mut text, format_args!("| {letters} | {meaning} |\n"));
    }
    text.push_str("\n## Excluded pairs\n| fault | states | reason |\n|---|---|---|\n");
    for fault in Fault::all() {
        impossible(&mut text, fault);
    }
    text
}

const INTRODUCTION: &str = "\
# Faults
The outcome of every fault (of the CLI, the pipe, the host, a callback and the runtime) in every session
state. Each cell runs against `claude-sim` as a separate process: `cargo test -p tests-e2e --test faults`.
`cargo xtask faults` prints this file.

In addition to the outcome below, every cell checks that
- no message is lost: messages that arrived before the fault are delivered, and the reader of `messages()`
  receives the end of the session as its last item;
- no future hangs: every pending future resolves within a time bound;
- no process is left over: neither a zombie nor a descendant of the CLI. Descendants of a CLI that exited on
  its own or was killed by another process (`grandchild`; the shell of a tool) are not killed by the SDK, and
  do not delay it;
- a session that survives is usable: the CLI responds to an operation, the pending work completes, and the
  session can be stopped.
";

const EXPLANATION: &str = "\
A cell lists how the session ended, how the pending future of the state resolved, and the warnings. `S/ok`
(`C/ok` after stdin was closed) means that the session survived the fault. The outcomes of other requests are
checked too; see `tests-e2e/src/faults/expected.rs`.
";

/// Adds the states in which a fault cannot occur, grouped by reason.
fn impossible(text: &mut String, fault: Fault) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for state in State::ALL {
        let Err(reason) = expected(state, fault) else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, states)) => states.push(state.name()),
            None => reasons.push((reason, vec![state.name()])),
        }
    }
    for (reason, states) in reasons {
        add(text, format_args!("| {} | {} | {reason} |\n", fault.name(), states.join(", ")));
    }
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a `String` does not fail.
    let _ = text.write_fmt(more);
}
