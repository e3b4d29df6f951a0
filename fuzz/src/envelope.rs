//! The envelope of any line, whole and of its two ends: what it finds stands in the line.

use claude_wire::{Envelope, Frame, Framer};
use serde_json::Value;

pub(super) fn run(line: &[u8]) {
    if let Ok(envelope) = Envelope::read(line) {
        assert!(!envelope.kind.is_empty());
        // Types that are only passed on are recognised by their first bytes; of all others the
        // whole line was read.
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
