//! Parses the faults.

use super::cursor::{Cursor, Table};
use super::values::ReadValue as _;
use super::{SECTIONS, ScriptError};
use crate::recording::Exit;
use crate::sim::fault::{Fault, Faults, Point};

const ONE_OF_THE_POINTS: &str = "`at`, `before`, `after`, `on` or a section";
const ONE_OF_THE_FAULTS: &str = "a fault such as `exit` or `pause`";

const NEEDS_NO_LINE: &str = "a fault that does not modify a line, which requires `before`";

type PointOf = fn(&mut Cursor<'_>) -> Result<Point, ScriptError>;
type FaultOf = fn(&mut Cursor<'_>) -> Result<Fault, ScriptError>;

const POINTS: Table<PointOf> = &[
    ("at", moment),
    ("before", |cursor| line(cursor).map(|(kind, nth)| Point::Before(kind, nth))),
    ("after", |cursor| line(cursor).map(|(kind, nth)| Point::After(kind, nth))),
    ("on", |cursor| line(cursor).map(|(kind, nth)| Point::Read(kind, nth))),
];

const FAULTS: Table<FaultOf> = &[
    ("exit", |cursor| Ok(Fault::Exit(cursor.number(0..=255, "an exit code from 0 to 255")?))),
    ("signal", signal),
    ("hang", |_| Ok(Fault::Hang)),
    ("ignore-sigterm", |_| Ok(Fault::IgnoreTerminate)),
    ("bytes", |cursor| Ok(Fault::Bytes(cursor.bytes()?))),
    ("line", |cursor| Ok(Fault::Bytes([cursor.bytes()?, b"\n".to_vec()].concat()))),
    ("garbage", |_| Ok(Fault::Bytes(b"this is not JSON\n".to_vec()))),
    ("garbage-utf8", |_| Ok(Fault::Bytes(b"\xff\xfe\xc3( is not UTF-8\n".to_vec()))),
    ("long-line", |cursor| Ok(Fault::LongLine(cursor.size()?))),
    ("messages", |cursor| Ok(Fault::Messages(cursor.number(.., "a number of messages")?))),
    ("deltas", |cursor| Ok(Fault::Deltas(cursor.number(.., "a number of deltas")?))),
    ("stderr", |cursor| Ok(Fault::Stderr(cursor.size()?))),
    ("pause", |cursor| Ok(Fault::Pause(cursor.duration()?))),
    ("swallow", |_| Ok(Fault::Swallow)),
    ("twice", |_| Ok(Fault::Twice)),
    ("behind", |_| Ok(Fault::Behind)),
    ("wrong-id", |_| Ok(Fault::WrongId)),
    ("wrong-shape", |_| Ok(Fault::WrongShape)),
    ("close-stdout", |_| Ok(Fault::CloseStdout)),
    ("close-stdin", |_| Ok(Fault::CloseStdin)),
    ("leave-grandchild", |cursor| Ok(Fault::LeaveGrandchild(cursor.duration()?))),
    ("stop-reading", |_| Ok(Fault::StopReading)),
];

/// Parses faults up to the next section.
pub(super) fn parse(mut faults: Faults, cursor: &mut Cursor<'_>) -> Result<Faults, ScriptError> {
    let sections: Vec<_> = SECTIONS.iter().map(|(word, _)| *word).collect();
    while cursor.has_more() && !sections.contains(&cursor.peek()) {
        let point = cursor.choose(POINTS, &sections, ONE_OF_THE_POINTS)?(cursor)?;
        loop {
            let start = cursor.next_position();
            let fault = cursor.choose(FAULTS, &[], ONE_OF_THE_FAULTS)?(cursor)?;
            if modifies_line(&fault) && !matches!(point, Point::Before(..)) {
                return Err(cursor.error_at(start, NEEDS_NO_LINE));
            }
            faults = faults.at(point.clone(), fault);
            if !cursor.has_more_on_line() {
                break;
            }
        }
    }
    Ok(faults)
}

/// Returns whether the fault modifies the line at its point, so that it has no effect without one.
fn modifies_line(fault: &Fault) -> bool {
    use Fault::{Behind, Swallow, Twice, WrongId, WrongShape};
    matches!(fault, Behind | Swallow | Twice | WrongId | WrongShape)
}

fn moment(cursor: &mut Cursor<'_>) -> Result<Point, ScriptError> {
    let moments: Table<fn() -> Point> = &[("start", || Point::Start), ("signal", || Point::Signal)];
    cursor.choose(moments, &[], "`start` or `signal`").map(|moment| moment())
}

/// Parses a kind of line and an optional ordinal, which defaults to 1.
fn line(cursor: &mut Cursor<'_>) -> Result<(String, usize), ScriptError> {
    let expected = "a kind of line such as `result`, `system/init` or `*`";
    let (start, kind) = cursor.word(expected)?;
    let is_kind = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '*');
    // In `before exit 3` the kind is missing; a line of the kind `exit` would never be written.
    let is_fault = FAULTS.iter().any(|(word, _)| *word == kind);
    if is_fault || !kind.chars().all(is_kind) {
        return Err(cursor.error_at(start, expected));
    }
    let counted = cursor.peek().starts_with(|c: char| c.is_ascii_digit());
    let nth = if counted { cursor.number(1.., "a number from 1")? } else { 1 };
    Ok((kind.to_owned(), nth))
}

fn signal(cursor: &mut Cursor<'_>) -> Result<Fault, ScriptError> {
    let expected = "a signal such as `SIGKILL` or `9`";
    let (start, word) = cursor.word(expected)?;
    let name = word.strip_prefix("SIG").unwrap_or(word);
    match format!("SIG{name}").parse() {
        Ok(Exit::Signal(number)) if number > 0 => Ok(Fault::Signal(number)),
        _ => Err(cursor.error_at(start, expected)),
    }
}
