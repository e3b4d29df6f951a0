//! However a transcript is damaged and cut into chunks, its index is the same, its trees can be
//! walked, and everything in it can be decoded or is reported.

use claude_wire::transcript::{Ends, Entry, Fork, ForkIds, Index, MessageFilter, SummaryData};

use super::input::Input;

/// The limit of a line, the length of a chunk, and the transcript.
pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let limit = 64 * (usize::from(input.byte()) + 1);
    let chunk = usize::from(input.byte()) + 1;
    let bytes = input.rest();
    let mut index = Index::with_max_line_bytes(limit);
    index.feed(bytes);
    index.finish();
    let mut chunked = Index::with_max_line_bytes(limit);
    for chunk in bytes.chunks(chunk) {
        chunked.feed(chunk);
        assert!(chunked.pending() <= u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }
    chunked.finish();
    assert_eq!(index.issues(), chunked.issues());
    assert!(index.entries().eq(chunked.entries()));
    let tree = index.tree();
    assert!(tree.issues().len() >= index.issues().len());
    assert!(tree.full_conversation().len() >= tree.conversation().len());
    drop(tree.messages(MessageFilter::default().include_system(true)));
    let mut summary = SummaryData::default();
    for entry in index.entries() {
        let line = bytes_of(bytes, entry.offset(), entry.len());
        let decoded = Entry::decode(line.to_vec()).expect("an entry of the index decodes");
        assert_eq!(decoded.raw().map(|raw| &raw[..]), Some(line));
        let read = |buffer: &mut [u8], offset: u64| {
            let from = usize::try_from(offset).expect("an offset in the line");
            buffer.copy_from_slice(&line[from..from + buffer.len()]);
            true
        };
        let large = Entry::decode_large(line.len() as u64, &read).expect("it decodes in parts too");
        assert_eq!(large.body, decoded.body);
        drop((decoded.prompt(), decoded.shown_uuid()));
        summary.add(line);
    }
    drop((summary.info(), Ends::of(bytes).info(None), Ends::of(bytes).continued_in()));
    fork(&index, bytes);
}

fn fork(index: &Index, bytes: &[u8]) {
    let tree = index.tree();
    let Ok(plan) = tree.fork(None) else { return };
    let mut next = 0_u128;
    let mut fork = Fork::new(&plan, ForkIds::new("source", "copy", "now"), || {
        next += 1;
        next.to_be_bytes()
    });
    for entry in plan.state_entries() {
        fork.carry(entry, bytes_of(bytes, entry.offset(), entry.len()));
    }
    let mut copy = fork.header();
    for entry in plan.entries() {
        let line = bytes_of(bytes, entry.offset(), entry.len());
        copy.extend(fork.entry(entry, line).expect("an entry of the index can be copied"));
    }
    copy.extend(fork.trailer("title").expect("the title is not empty"));
    let mut copied = Index::new();
    copied.feed(&copy);
    assert!(copied.issues().is_empty(), "{:?}", copied.issues());
    assert!(copied.len() > plan.entries().len());
}

fn bytes_of(bytes: &[u8], offset: u64, length: usize) -> &[u8] {
    let start = usize::try_from(offset).expect("an offset of bytes in memory");
    &bytes[start..start + length]
}
