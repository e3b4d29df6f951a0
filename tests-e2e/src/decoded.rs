//! Every line that a CLI writes must decode: a line that the types do not fit fails its scenario.

use claude_agent_testkit::recording::{EntryKind, Recording};
use claude_wire::{Envelope, FromCli};

/// What is wrong with the lines of the CLI, one sentence for each.
pub fn complaints(recording: &Recording) -> Vec<String> {
    let lines = recording.entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Received(line) => Some(line),
        _ => None,
    });
    lines.filter_map(complaint).collect()
}

fn complaint(line: &bytes::Bytes) -> Option<String> {
    let frame = match FromCli::decode(line.clone()) {
        Ok(frame) => frame,
        Err(malformed) => return Some(format!("{malformed}: {}", excerpt(line))),
    };
    if let FromCli::Message(message) = &frame
        && message.raw() != line
    {
        return Some(format!("the bytes changed: {}", excerpt(line)));
    }
    // Wherever a part is undecodable, the word stands in the output for programmers.
    let text = format!("{frame:?}");
    if let Some(at) = text.find("Undecodable {") {
        let reason: String = text[at..].chars().take(300).collect();
        return Some(format!("{reason} in {}", excerpt(line)));
    }
    // What cannot be decoded at the first try has no envelope either; such lines were repaired.
    let repaired = matches!(&frame, FromCli::Message(message) if message.repaired());
    match Envelope::read(line) {
        Err(error) if !repaired => Some(format!("no envelope ({error}): {}", excerpt(line))),
        _ => None,
    }
}

fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(200).collect()
}
