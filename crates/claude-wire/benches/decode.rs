//! Decoding beside `serde_json::Value` on the same bytes, in memory; framing alone.
//!
//! `cargo bench -p claude-wire` prints times, throughput and allocations per message.

use bytes::Bytes;
use claude_wire::{Envelope, Framer, Message};
use divan::counter::{BytesCount, ItemsCount};
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// Lines per round: enough that one round is no longer noise.
const LINES: usize = 1_000;

fn main() {
    divan::main();
}

/// An `assistant` message of 800 bytes and a `stream_event` of 240, as the CLI writes them.
const KINDS: [&str; 2] = ["assistant_800", "delta_240"];

fn line(kind: &str) -> Bytes {
    let (before, after, length) = match kind {
        "assistant_800" => (
            r#"{"type":"assistant","message":{"id":"msg_1794769616569207","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":""#,
            r#""}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},"context_management":null},"parent_tool_use_id":null,"session_id":"26b2e340-f3b7-46c3-a124-f93c60a48c96","uuid":"5cac1209-2cab-44a4-bb84-e158f8cb4683","timestamp":"2026-11-15T19:06:56.574Z"}"#,
            800,
        ),
        _ => (
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""#,
            r#""}},"session_id":"4ca8c1ef-bad4-40ce-9e0c-b53b36c052b3","parent_tool_use_id":null,"uuid":"90b07c11-5db6-48a4-8b74-d15f4c8c6194"}"#,
            240,
        ),
    };
    let filler = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let text = &filler[..length - before.len() - after.len()];
    Bytes::from(format!("{before}{text}{after}"))
}

#[divan::bench(args = KINDS)]
fn value(bencher: Bencher<'_, '_>, kind: &str) {
    let line = line(kind);
    bencher
        .counter(ItemsCount::new(LINES))
        .counter(BytesCount::new(LINES * line.len()))
        .bench_local(|| {
            for _ in 0..LINES {
                black_box(serde_json::from_slice::<serde_json::Value>(black_box(&line)).is_ok());
            }
        });
}

#[divan::bench(args = KINDS)]
fn typed(bencher: Bencher<'_, '_>, kind: &str) {
    let line = line(kind);
    bencher
        .counter(ItemsCount::new(LINES))
        .counter(BytesCount::new(LINES * line.len()))
        .bench_local(|| {
            for _ in 0..LINES {
                black_box(Message::decode(black_box(line.clone())).is_ok());
            }
        });
}

#[divan::bench(args = KINDS)]
fn envelope(bencher: Bencher<'_, '_>, kind: &str) {
    let line = line(kind);
    bencher.counter(ItemsCount::new(LINES)).bench_local(|| {
        for _ in 0..LINES {
            black_box(Envelope::read(black_box(&line)).is_ok());
        }
    });
}

#[divan::bench(args = KINDS)]
fn framing(bencher: Bencher<'_, '_>, kind: &str) {
    let line = line(kind);
    let mut stream = Vec::new();
    for _ in 0..LINES {
        stream.extend_from_slice(&line);
        stream.push(b'\n');
    }
    let mut framer = Framer::default();
    bencher.counter(ItemsCount::new(LINES)).counter(BytesCount::new(stream.len())).bench_local(
        || {
            for chunk in stream.chunks(64 * 1024) {
                framer.push(black_box(chunk));
                while let Some(frame) = framer.next_frame() {
                    black_box(frame);
                }
            }
        },
    );
}
