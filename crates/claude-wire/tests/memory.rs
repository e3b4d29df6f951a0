//! How much memory reading a transcript takes, counted by the allocator of this program.

#![expect(unsafe_code, reason = "only an allocator sees every allocation")]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use claude_wire::transcript::{Entry, Index, MessageFilter};

#[allow(dead_code, reason = "the other program uses all of it")]
#[path = "it/transcript_shapes.rs"]
mod transcript_shapes;

/// Counts the bytes that are allocated, and the most there were.
struct CountingAllocator;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Tests of one program share the counters.
static TURN: Mutex<()> = Mutex::new(());

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size > layout.size() {
            grow(size - layout.size());
        } else {
            LIVE.fetch_sub(layout.size() - size, Ordering::Relaxed);
        }
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs a function and returns the most bytes that were allocated meanwhile.
fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let value = work();
    (PEAK.load(Ordering::Relaxed) - before, value)
}

/// A turn as the CLI writes it: a prompt, three blocks of a response with two parallel calls, their
/// results, an answer and a checkpoint. The result of the first call is not on the chain.
fn turn(number: usize, text: &mut String) {
    let id = |line: usize| format!("{number:08x}-{line:04x}-4000-8000-000000000000");
    let mut line = |at: usize, parent: Option<String>, kind: &str, message: &str| {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        writeln!(
            text,
            r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","message":{message},"uuid":"{}","timestamp":"2026-09-01T10:00:00.000Z"}}"#,
            id(at)
        )
        .unwrap();
    };
    let block = |response: usize, block: &str| {
        format!(r#"{{"id":"msg_{number}_{response}","role":"assistant","content":[{block}]}}"#)
    };
    let call = |at: usize| {
        format!(r#"{{"type":"tool_use","id":"toolu_{number}_{at}","name":"Bash","input":{{}}}}"#)
    };
    let result = |at: usize| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{number}_{at}","content":"x"}}]}}"#
        )
    };
    let before =
        number.checked_sub(1).map(|before| format!("{before:08x}-0007-4000-8000-000000000000"));
    line(0, before, "user", r#"{"role":"user","content":"Hi"}"#);
    line(1, Some(id(0)), "assistant", &block(0, r#"{"type":"thinking","thinking":"x"}"#));
    line(2, Some(id(1)), "assistant", &block(0, r#"{"type":"text","text":"x"}"#));
    line(3, Some(id(2)), "assistant", &block(0, &call(3)));
    line(4, Some(id(3)), "assistant", &block(0, &call(4)));
    line(5, Some(id(3)), "user", &result(3));
    line(6, Some(id(4)), "user", &result(4));
    line(7, Some(id(6)), "assistant", &block(1, r#"{"type":"text","text":"x"}"#));
    writeln!(text, r#"{{"type":"last-prompt","lastPrompt":"Hi","leafUuid":"{}"}}"#, id(7)).unwrap();
}

#[test]
fn choosing_a_conversation_takes_at_most_64_bytes_per_line() {
    const TURNS: usize = 12_000;
    let _turn = TURN.lock();
    let mut text = String::with_capacity(8192);
    let (indexed, index) = peak_of(|| {
        let mut index = Index::new();
        for number in 0..TURNS {
            text.clear();
            turn(number, &mut text);
            index.feed(text.as_bytes());
        }
        index.finish();
        index
    });
    let lines = index.len();
    assert_eq!(lines, 9 * TURNS);
    let held = index.memory();
    let (chosen, messages) = peak_of(|| index.tree().message_list(MessageFilter::default()));
    assert_eq!(messages.len(), 8 * TURNS);
    assert_eq!(index.tree().issues(), []);
    println!(
        "{} bytes per line for the index, {} with the choice",
        indexed / lines,
        (held + chosen) / lines
    );
    assert!(indexed <= 50 * lines, "the index took {indexed} bytes for {lines} lines");
    assert!(held + chosen <= 64 * lines, "{held} and {chosen} bytes for {lines} lines");
}

/// Indexes a transcript as from a file, and returns the most bytes that choosing its messages took.
fn peak_of_messages(bytes: &[u8]) -> usize {
    let choose = || {
        let mut index = Index::new();
        for chunk in bytes.chunks(16 * 1024) {
            index.feed(chunk);
        }
        index.finish();
        index.tree().message_list(MessageFilter::default())
    };
    peak_of(choose).0
}

#[test]
fn memory_for_crafted_transcripts_is_in_proportion_to_their_size() {
    const BYTES: usize = 1_000_000;
    let _turn = TURN.lock();
    let mut wrong = Vec::new();
    for (name, make) in transcript_shapes::CRAFTED {
        let bytes = make(BYTES);
        let lines = bytes.split(|byte| *byte == b'\n').count();
        let longest = bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
        let taken = peak_of_messages(&bytes);
        // Identifiers beyond those of an ordinary line, such as the entries that a boundary names, take
        // less than their text.
        let allowed = 64 * lines + bytes.len() + 2 * longest + 64 * 1024;
        let text = format!(
            "{name}: {taken} of {allowed} bytes, {} for each of {lines} lines",
            taken / lines
        );
        println!("{text}");
        if taken > allowed {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn long_line_is_read_within_its_own_size() {
    const LINE: usize = 8 << 20;
    let _turn = TURN.lock();
    let paragraph = format!("{}\\n", "x".repeat(1000));
    let content = paragraph.repeat(LINE / paragraph.len());
    let message = format!(r#"{{"role":"user","content":"{content}"}}"#);
    drop(content);
    let line = format!(r#"{{"parentUuid":null,"type":"user","uuid":"u1","message":{message}}}"#);
    let (indexed, index) = peak_of(|| {
        let mut index = Index::new();
        for chunk in line.as_bytes().chunks(64 * 1024) {
            index.feed(chunk);
        }
        index.finish();
        index
    });
    assert_eq!(index.issues(), []);
    assert_eq!(index.tree().messages(MessageFilter::default()).len(), 1);
    // A vector that grows has room for up to twice its contents.
    assert!(indexed <= 2 * line.len() + 64 * 1024, "{indexed} bytes");
    assert!(index.memory() < 4096, "{} bytes", index.memory());
    let raw = Bytes::from(line);
    let (decoded, entry) = peak_of(|| Entry::decode(raw.clone()).unwrap());
    assert!(entry.prompt().is_some());
    assert!(decoded <= raw.len() + 64 * 1024, "{decoded} bytes besides the line itself");
    let read = |buffer: &mut [u8], offset: u64| {
        let from = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(&raw[from..from + buffer.len()]);
        true
    };
    // As from a file: what is decoded is in memory, not the line.
    let (large, same) = peak_of(|| Entry::decode_large(raw.len() as u64, &read).unwrap());
    assert_eq!(same.body, entry.body);
    assert!(large <= raw.len() + 1024 * 1024, "{large} bytes without the line");
}
