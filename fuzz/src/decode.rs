//! Any line is decoded, isolated or rejected; its bytes are kept, and a decoded message can be serialized and decoded
//! again.

use claude_wire::{Envelope, FromCli, FromHost, Message};

pub(super) fn run(line: &[u8]) {
    let envelope = Envelope::read(line);
    match Message::decode(line.to_vec()) {
        Ok(message) => {
            assert_eq!(message.raw(), line);
            let written = serde_json::to_vec(&message.body).expect("a body is serializable");
            let again = Message::decode(written).expect("a serialized body can be decoded");
            assert_eq!(again.body.kind(), message.body.kind());
            if let (Ok(envelope), Some(kind)) = (&envelope, message.body.kind()) {
                assert_eq!(envelope.kind, kind);
            }
        }
        Err(malformed) => assert_eq!(malformed.line, line),
    }
    drop(FromCli::decode(line.to_vec()));
    if let Ok(frame) = FromHost::decode(line.to_vec()) {
        let encoded = frame.encode().expect("a decoded frame is serializable");
        assert_eq!(encoded.iter().position(|byte| *byte == b'\n'), Some(encoded.len() - 1));
    }
}
