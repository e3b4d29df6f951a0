//! Makes a recording fit to be stored: nothing of this machine, and little of the CLI's prose.
//!
//! Everything is done on the text of a line, so that every other byte stays as the CLI wrote it.

mod places;
mod prose;

use bytes::Bytes;
use claude_agent_testkit::recording::{Entry, EntryKind, Recording};

use self::places::Places;
use crate::real_cli::World;

/// The recording without what is particular to this machine and this run.
pub fn recording(recording: &Recording, world: &World) -> Recording {
    let places = Places::of(world);
    let mut header = recording.header.clone();
    for value in header.argv.iter_mut().chain(header.env.values_mut()) {
        *value = places.scrub(value);
    }
    let entries = recording.entries.iter().map(|entry| {
        let what = match &entry.kind {
            EntryKind::Sent(line) => EntryKind::Sent(text(line, |line| places.scrub(line))),
            EntryKind::Received(line) => {
                EntryKind::Received(text(line, |line| prose::shorten(&places.scrub(line))))
            }
            EntryKind::Stderr(line) => {
                EntryKind::Stderr(text(line, |line| prose::without_code(&places.scrub(line))))
            }
            EntryKind::Unfinished(channel, rest) => {
                EntryKind::Unfinished(*channel, text(rest, |rest| places.scrub(rest)))
            }
            other => other.clone(),
        };
        Entry::new(entry.at, what)
    });
    Recording::new(header, entries.collect())
}

/// A line that is not UTF-8 holds nothing that could be found in it, and stays.
fn text(line: &Bytes, scrub: impl Fn(&str) -> String) -> Bytes {
    match std::str::from_utf8(line) {
        Ok(line) => Bytes::from(scrub(line)),
        Err(_) => line.clone(),
    }
}

/// What must not stand in a stored file, because it belongs to a machine and not to the CLI.
const FOREIGN: &[&str] = &["/tmp/", "/root", "/work/", "/var/folders", "registry."];

/// What of this machine is still in a recording.
pub fn leftovers(recording: &Recording) -> Vec<String> {
    let file = String::from_utf8_lossy(&recording.to_bytes()).into_owned();
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let foreign = FOREIGN.iter().map(|text| (*text).to_owned()).chain(home);
    foreign.filter(|text| file.contains(text.as_str())).collect()
}
