//! Whatever a line holds: it is decoded, isolated or refused, its bytes are kept, and what was
//! decoded can be written and decoded again.

use claude_wire::{Envelope, FromCli, FromHost, Message};

pub(super) fn run(line: &[u8]) {
    let envelope = Envelope::read(line);
    match Message::decode(line.to_vec()) {
        Ok(message) => {
            assert_eq!(message.raw(), line);
            let written = serde_json::to_vec(&message.body).expect("a body can be written");
            let again = Message::decode(written).expect("what was written can be read");
            assert_eq!(again.body.kind(), message.body.kind());
            if let (Ok(envelope), Some(kind)) = (&envelope, message.body.kind()) {
                assert_eq!(envelope.kind, kind);
            }
        }
        Err(malformed) => assert_eq!(malformed.line, line),
    }
    drop(FromCli::decode(line.to_vec()));
    if let Ok(frame) = FromHost::decode(line.to_vec()) {
        let encoded = frame.encode().expect("what was read can be written");
        assert_eq!(encoded.iter().position(|byte| *byte == b'\n'), Some(encoded.len() - 1));
    }
}
