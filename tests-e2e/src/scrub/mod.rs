//! Scrubs recordings before they are stored: removes everything specific to this machine and shortens the CLI's prose.
//!
//! Lines are edited as text, so that all other bytes stay as the CLI wrote them.

mod prose;
mod replacements;

use bytes::Bytes;
use claude_agent_testkit::recording::{Entry, EntryKind, Recording};

use self::replacements::Replacements;
use crate::real_cli::SandboxDir;

/// Returns the recording without what is specific to this machine and this run.
pub fn recording(recording: &Recording, sandbox: &SandboxDir) -> Recording {
    let replacements = Replacements::of(sandbox);
    let mut header = recording.header.clone();
    for value in header.argv.iter_mut().chain(header.env.values_mut()) {
        *value = replacements.scrub(value);
    }
    let entries = recording.entries.iter().map(|entry| {
        let what = match &entry.kind {
            EntryKind::Sent(line) => EntryKind::Sent(text(line, |line| replacements.scrub(line))),
            EntryKind::Received(line) => {
                EntryKind::Received(text(line, |line| prose::shorten(&replacements.scrub(line))))
            }
            EntryKind::Stderr(line) => {
                EntryKind::Stderr(text(line, |line| prose::without_code(&replacements.scrub(line))))
            }
            EntryKind::Unfinished(channel, rest) => {
                EntryKind::Unfinished(*channel, text(rest, |rest| replacements.scrub(rest)))
            }
            other => other.clone(),
        };
        Entry::new(entry.at, what)
    });
    Recording::new(header, entries.collect())
}

/// Scrubs a line. A line that is not UTF-8 is left unchanged.
fn text(line: &Bytes, scrub: impl Fn(&str) -> String) -> Bytes {
    match std::str::from_utf8(line) {
        Ok(line) => Bytes::from(scrub(line)),
        Err(_) => line.clone(),
    }
}

/// Returns the text of a transcript, or of a file beside it, without what is specific to this machine.
pub fn transcript(text: &str, sandbox: &SandboxDir) -> String {
    let replacements = Replacements::of(sandbox);
    let lines = text.split('\n').map(|line| prose::shorten_entry(&replacements.scrub(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Texts that belong to a machine and must not appear in a stored file.
const FOREIGN: &[&str] = &["/tmp/", "/root", "/work/", "/var/folders", "registry."];

/// Returns the texts of this machine that are still in a recording.
pub fn leftovers(recording: &Recording) -> Vec<String> {
    machine_texts(&String::from_utf8_lossy(&recording.to_bytes()))
}

/// Returns the texts of this machine that are in a file.
pub fn machine_texts(file: &str) -> Vec<String> {
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1);
    let foreign = FOREIGN.iter().map(|text| (*text).to_owned()).chain(home);
    foreign.filter(|text| file.contains(text.as_str())).collect()
}
