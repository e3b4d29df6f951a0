//! The output of faults: floods, long lines and modified lines.

use std::time::Duration;

use serde_json::Value;

/// The size of a chunk that is written at once.
const PIECE: usize = 64 * 1024;

/// Returns `count` assistant messages of about 400 bytes each, in chunks.
pub(super) fn messages(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let text = "All work and no play makes a dull message. ".repeat(3);
    let line = format!(
        r#"{{"type":"assistant","message":{{"id":"msg_flood","type":"message","role":"assistant","model":"flood","content":[{{"type":"text","text":"{text}"}}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}},"parent_tool_use_id":null,"session_id":"00000000-0000-4000-8000-000000000000","uuid":"00000000-0000-4000-8000-000000000001"}}
"#
    );
    repeat_line(line, count)
}

/// Returns `count` text deltas, in chunks.
pub(super) fn deltas(count: usize) -> impl Iterator<Item = Vec<u8>> {
    let line = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some more words "}},"session_id":"00000000-0000-4000-8000-000000000000","parent_tool_use_id":null,"uuid":"00000000-0000-4000-8000-000000000001"}
"#;
    repeat_line(line.to_owned(), count)
}

/// Returns one line of `size` bytes, not counting the newline.
pub(super) fn long_line(size: usize) -> impl Iterator<Item = Vec<u8>> {
    const HEAD: &str = r#"{"type":"flood","filler":""#;
    const TAIL: &str = "\"}\n";
    let filler = size.saturating_sub(HEAD.len() + TAIL.len() - 1);
    let pieces =
        (0..filler.div_ceil(PIECE)).map(move |index| vec![b'x'; PIECE.min(filler - index * PIECE)]);
    [HEAD.as_bytes().to_vec()].into_iter().chain(pieces).chain([TAIL.as_bytes().to_vec()])
}

/// Returns at least `size` bytes of warnings, in lines.
pub(super) fn stderr(size: usize) -> impl Iterator<Item = Vec<u8>> {
    let line = "warning: the simulated CLI repeats this line to flood its stderr\n";
    repeat_line(line.to_owned(), size.div_ceil(line.len()))
}

/// Replaces the `request_id` of a line.
pub(super) fn with_wrong_id(line: &[u8]) -> Vec<u8> {
    modify(line, |frame| {
        for place in ["/request_id", "/response/request_id"] {
            if let Some(id) = frame.pointer_mut(place) {
                *id = "req_0_ffffffff".into();
            }
        }
    })
}

/// Replaces the payload of a line with a string.
pub(super) fn with_wrong_shape(line: &[u8]) -> Vec<u8> {
    modify(line, |frame| {
        for place in ["/response/response", "/request", "/message"] {
            if let Some(payload) = frame.pointer_mut(place) {
                *payload = "not what it should be".into();
                return;
            }
        }
        if let Some(fields) = frame.as_object_mut() {
            fields.insert("uuid".to_owned(), 5.into());
        }
    })
}

/// Starts a process that keeps the CLI's stdout open for a while.
///
/// The process inherits stdout, so this only has an effect in the program `claude-sim`.
pub(super) fn leave_grandchild(time: Duration) {
    let seconds = time.as_secs_f64().to_string();
    // Without a `sleep` program the fault is a plain exit, which the test detects.
    drop(
        std::process::Command::new("sleep").arg(seconds).stdin(std::process::Stdio::null()).spawn(),
    );
}

fn modify(line: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let Ok(mut frame) = serde_json::from_slice(line) else { return line.to_vec() };
    change(&mut frame);
    format!("{frame}\n").into_bytes()
}

fn repeat_line(line: String, count: usize) -> impl Iterator<Item = Vec<u8>> {
    let at_once = (PIECE / line.len()).max(1);
    (0..count.div_ceil(at_once))
        .map(move |index| line.repeat(at_once.min(count - index * at_once)).into_bytes())
}
