//! The lines do not depend on how the stream is split, and memory is bounded.

use claude_wire::{Frame, Framer};

use super::input::Input;

/// The input consists of the limit, the number of cuts, their positions, and the stream.
pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let limit = usize::from(input.byte()) + 1;
    let count = usize::from(input.byte());
    let cuts = input.bytes(count);
    let stream = input.rest();
    let whole = frames(limit, [stream]);
    let mut rest = stream;
    let mut chunks = Vec::new();
    for cut in cuts {
        let (chunk, after) = rest.split_at(usize::from(*cut).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    assert_eq!(frames(limit, chunks), whole);
}

fn frames<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
    let mut framer = Framer::new(limit);
    let mut frames = Vec::new();
    for chunk in chunks {
        framer.push(chunk);
        frames.extend(std::iter::from_fn(|| framer.next_frame()));
        // At most a line, the two ends of an oversized line, and this chunk are buffered.
        assert!(framer.buffered() <= 4 * limit + 16 + chunk.len());
    }
    frames.extend(framer.finish());
    frames
}
