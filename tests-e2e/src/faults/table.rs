//! The table of what comes of every fault in every state.

use std::fmt::Write as _;

use super::outcome::LEGEND;
use super::{Fault, State, expected};

/// So many cells have a meaning.
pub fn count() -> usize {
    State::ALL
        .into_iter()
        .flat_map(|state| Fault::all().map(move |fault| expected(state, fault)))
        .flatten()
        .count()
}

/// The table with what `cell` says of each, as Markdown.
pub fn table(cell: impl Fn(State, Fault) -> String) -> String {
    let mut text = String::from("| whose | fault |");
    for state in State::ALL {
        add(&mut text, format_args!(" {} |", state.name()));
    }
    add(&mut text, format_args!("\n|---|---|{}\n", "---|".repeat(State::ALL.len())));
    for fault in Fault::all() {
        add(&mut text, format_args!("| {} | {} |", fault.whose(), fault.name()));
        for state in State::ALL {
            add(&mut text, format_args!(" {} |", cell(state, fault)));
        }
        text.push('\n');
    }
    text
}

/// What should come of a fault in a state, in a few letters.
pub fn wanted(state: State, fault: Fault) -> String {
    expected(state, fault).map_or_else(|_| "·".to_owned(), |outcome| outcome.code())
}

/// `docs/faults.md`.
pub fn document() -> String {
    let mut text = String::from(INTRODUCTION);
    add(&mut text, format_args!("\n## States\n| state | what it is |\n|---|---|\n"));
    for state in State::ALL {
        add(&mut text, format_args!("| {} | {} |\n", state.name(), state.about()));
    }
    add(&mut text, format_args!("\n## Faults\n| whose | fault | what it is |\n|---|---|---|\n"));
    for fault in Fault::all() {
        let (whose, name, about) = (fault.whose(), fault.name(), fault.about());
        add(&mut text, format_args!("| {whose} | {name} | {about} |\n"));
    }
    add(&mut text, format_args!("\n## Outcomes: {} cells\n{EXPLANATION}\n", count()));
    text.push_str(&table(wanted));
    text.push_str("\n| letters | meaning |\n|---|---|\n");
    for (letters, meaning) in LEGEND {
        add(&mut text, format_args!("| {letters} | {meaning} |\n"));
    }
    text.push_str("\n## What cannot be\n| fault | states | why |\n|---|---|---|\n");
    for fault in Fault::all() {
        impossible(&mut text, fault);
    }
    text
}

const INTRODUCTION: &str = "\
# Faults
What becomes of a session when something goes wrong, for every state that it can be in and every
fault of the CLI, the pipe, the host, a callback and the runtime. Each cell is run on `claude-sim` as
a real process: `cargo test -p tests-e2e --test faults`. This file is what `cargo xtask faults` prints.

Besides the outcome below every cell checks that
- nothing is lost: messages that had arrived before the fault are read, and the reader of
  `messages()` is told the end of the session as its last item;
- nobody waits: every future that was pending is told within a bound;
- nothing is left: no process, no zombie and no descendant of the CLI is there afterwards. What the CLI
  itself left behind when it ended by itself (`grandchild`; the shell of a tool, when the CLI is killed
  by somebody else) is not the SDK's to kill, and holds nothing up;
- a session that goes on works: the CLI answers an operation, what was held in the state is
  finished, and the session can be stopped.
";

const EXPLANATION: &str = "\
How the session ended, then what was told to whoever waited in the state, then warnings. `S/ok`, and
`C/ok` after the end of the input, is the mark of a fault that was survived. What is told to those
who ask besides is checked too; it stands in `tests-e2e/src/faults/expected.rs`.
";

/// The states that a fault cannot meet, by reason.
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
    // Writing to a text does not fail.
    let _ = text.write_fmt(more);
}
