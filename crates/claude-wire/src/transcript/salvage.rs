//! Finding the records of a line: normally one, and what is left of them otherwise.
//!
//! Damage that was seen in real transcripts: a record that is cut off, with the next whole record
//! on the same line; two records without a line break between them; runs of NUL bytes in front of
//! a record, after a power loss; a last line that is cut off.

use memchr::memchr;

use super::facts::{self, Facts};
use super::issue::IssueKind;
use super::row;
use crate::repair;
use crate::scan::{ScanError, Scanner};

/// A part of a line.
pub(super) enum Part<'a> {
    /// A record that can be read, with the flags of how it was found.
    Record { facts: &'a Facts<'a>, length: usize, flags: u32 },
    /// Bytes that are not a record.
    Bad { length: usize, kind: IssueKind },
}

/// Calls `found` with each part of a line and its position. Blanks between parts are left out.
pub(super) fn split(line: &[u8], is_last: bool, found: &mut dyn FnMut(usize, Part<'_>)) {
    let end = line.len() - line.iter().rev().take_while(|byte| is_blank(**byte)).count();
    let mut effort = Effort(line.len().saturating_mul(MAX_READS));
    let mut at = 0;
    let mut is_first = true;
    while at < line.len() {
        let blank = line[at..].iter().take_while(|byte| is_blank(**byte)).count();
        let has_nul = line[at..at + blank].contains(&0);
        if at + blank >= end {
            if has_nul {
                found(at, Part::Bad { length: line.len() - at, kind: IssueKind::Nul });
            }
            return;
        }
        at += blank;
        let mut flags = if is_first { 0 } else { row::SPLICED };
        if has_nul {
            flags |= row::NUL_PREFIXED;
        }
        let flags = (flags, is_last);
        at += part(&line[at..end], at, flags, &mut effort, found);
        is_first = false;
    }
}

/// Bytes in front of a record that are skipped, as the CLI and the TypeScript SDK do.
fn is_blank(byte: u8) -> bool {
    byte <= b' '
}

/// Finds the part that `rest` begins with and returns its length.
fn part(
    rest: &[u8],
    at: usize,
    (flags, is_last): (u32, bool),
    effort: &mut Effort,
    found: &mut dyn FnMut(usize, Part<'_>),
) -> usize {
    let mut scanner = Scanner::new(rest);
    let error = match facts::read(&mut scanner) {
        Ok(facts) => {
            let length = scanner.position();
            found(at, record(&facts, length, flags));
            return length;
        }
        Err(error) => error,
    };
    effort.take(scanner.position());
    if let Some(length) = effort.value_length(rest)
        && let Some(repaired) = repair::repaired(&rest[..length])
        && let Ok(facts) = facts::read(&mut Scanner::new(repaired.as_bytes()))
    {
        found(at, record(&facts, length, flags | row::REPAIRED));
        return length;
    }
    let next = next_record(rest, effort);
    let is_cut = rest.starts_with(b"{") && (next.is_some() || error == ScanError::Eof || is_last);
    let length = next.unwrap_or(rest.len());
    let kind = if is_cut { IssueKind::Torn } else { IssueKind::Malformed };
    found(at, Part::Bad { length, kind });
    length
}

fn record<'a>(facts: &'a Facts<'a>, length: usize, flags: u32) -> Part<'a> {
    if facts.kind.is_some() {
        Part::Record { facts, length, flags }
    } else {
        Part::Bad { length, kind: IssueKind::Malformed }
    }
}

/// The maximum number of positions of a damaged line that are tried.
const MAX_ATTEMPTS: usize = 4096;
/// How many times a damaged line is read in all. Records that are torn inside of each other would have
/// to be read to the end of the line once for each of them.
const MAX_READS: usize = 16;

/// How many bytes may be read for nothing until the rest of a line counts as lost.
struct Effort(usize);

impl Effort {
    fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// The length of the JSON value at the start of `bytes`, whatever characters are in its strings.
    fn value_length(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut scanner = Scanner::new(bytes);
        let is_value = scanner.skip().is_ok();
        let length = scanner.position();
        self.take(length);
        is_value.then_some(length)
    }
}

/// Where the next whole record begins inside of a damaged line.
///
/// Inside of strings quotes are escaped, so these beginnings only match objects. An object that is
/// nested in the damaged record must not be taken for a record: hence [`is_plausible`].
fn next_record(line: &[u8], effort: &mut Effort) -> Option<usize> {
    const STARTS: [&[u8]; 2] = [br#"{"parentUuid":"#, br#"{"type":""#];
    let mut at = 1;
    let mut attempts = 0;
    while attempts < MAX_ATTEMPTS && effort.0 > 0 {
        at += memchr(b'{', line.get(at..)?)?;
        let rest = &line[at..];
        if STARTS.iter().any(|start| rest.starts_with(start)) {
            attempts += 1;
            if is_record(rest, effort) {
                return Some(at);
            }
        }
        at += 1;
    }
    None
}

fn is_record(rest: &[u8], effort: &mut Effort) -> bool {
    let mut scanner = Scanner::new(rest);
    let read = facts::read(&mut scanner);
    effort.take(scanner.position());
    if let Ok(facts) = read {
        return is_plausible(&facts);
    }
    let length = effort.value_length(rest);
    let repaired = length.and_then(|length| repair::repaired(&rest[..length]));
    repaired.is_some_and(|text| {
        facts::read(&mut Scanner::new(text.as_bytes())).is_ok_and(|facts| is_plausible(&facts))
    })
}

/// Whether an object looks like an entry, and not like a content block or a tool's result.
fn is_plausible(facts: &Facts<'_>) -> bool {
    const WITHOUT_SESSION: [&str; 4] =
        ["file-history-snapshot", "file-history-delta", "summary", "queue-operation"];
    let Some(kind) = facts.kind.as_deref() else { return false };
    (facts.has_parent_field && facts.uuid.is_some())
        || facts.has_session
        || WITHOUT_SESSION.contains(&kind)
}
