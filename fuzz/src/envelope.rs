//! The envelope of any line, complete or oversized, contains only what the line contains.

use claude_wire::{Envelope, Frame, Framer};
use serde_json::Value;

pub(super) fn run(line: &[u8]) {
    if let Ok(envelope) = Envelope::read(line) {
        assert!(!envelope.kind.is_empty());
        // Some types are recognized by the first bytes of the line; for all others the whole line is parsed.
        if let Ok(Value::Object(fields)) = serde_json::from_slice(line) {
            assert!(fields.contains_key("type"));
        }
    }
    for limit in [1, 40, 200] {
        let mut framer = Framer::new(limit);
        framer.push(line);
        framer.push(b"\n");
        while let Some(frame) = framer.next_frame() {
            match frame {
                Frame::Oversized(oversized) => drop(Envelope::of_oversized(&oversized)),
                Frame::Line(line) => assert!(line.len() <= limit),
            }
        }
    }
}
