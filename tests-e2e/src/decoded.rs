//! Checks that every line of a recording can be decoded. A scenario fails if one cannot.

use claude_agent_testkit::recording::{EntryKind, Recording};
use claude_wire::{Envelope, FromCli};

/// Returns the problems with the lines of the CLI, one text each.
pub fn problems(recording: &Recording) -> Vec<String> {
    let lines = recording.entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Received(line) => Some(line),
        _ => None,
    });
    lines.filter_map(problem).collect()
}

fn problem(line: &bytes::Bytes) -> Option<String> {
    let frame = match FromCli::decode(line.clone()) {
        Ok(frame) => frame,
        Err(malformed) => return Some(format!("{malformed}: {}", excerpt(line))),
    };
    if let FromCli::Message(message) = &frame
        && message.raw() != line
    {
        return Some(format!("the bytes changed: {}", excerpt(line)));
    }
    // An undecodable part is visible in the debug output.
    let text = format!("{frame:?}");
    if let Some(at) = text.find("Undecodable {") {
        let reason: String = text[at..].chars().take(300).collect();
        return Some(format!("{reason} in {}", excerpt(line)));
    }
    // A line that had to be repaired has no envelope.
    let repaired = matches!(&frame, FromCli::Message(message) if message.repaired());
    match Envelope::read(line) {
        Err(error) if !repaired => Some(format!("no envelope ({error}): {}", excerpt(line))),
        _ => None,
    }
}

fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(200).collect()
}
