//! Bytes to lines.

use claude_wire::frame::{KEPT_OF_OVERSIZED, Oversized};
use claude_wire::{Frame, Framer, FromCli};
use proptest::prelude::*;

/// Everything that a framer gives for these chunks, the last line included.
fn frames<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
    let mut framer = Framer::new(limit);
    let mut frames = Vec::new();
    for chunk in chunks {
        framer.push(chunk);
        frames.extend(std::iter::from_fn(|| framer.next_frame()));
    }
    frames.extend(framer.finish());
    frames
}

fn lines(bytes: &[u8]) -> Vec<String> {
    frames(1 << 20, [bytes])
        .into_iter()
        .map(|frame| match frame {
            Frame::Line(line) => String::from_utf8_lossy(&line).into_owned(),
            Frame::Oversized(_) => panic!("{frame:?}"),
        })
        .collect()
}

#[test]
fn lines_end_at_line_feeds_and_nowhere_else() {
    assert_eq!(lines(b"a\nb\n"), ["a", "b"]);
    assert_eq!(lines(b"a\r\nb\r\n"), ["a", "b"]);
    assert_eq!(lines(b"a\rb\n"), ["a\rb"]);
    assert_eq!(lines(b"a\r\r\n"), ["a\r"]);
    assert_eq!(lines("a\u{2028}b\u{85}c\x0bd\n".as_bytes()), ["a\u{2028}b\u{85}c\x0bd"]);
}

#[test]
fn blank_lines_are_skipped() {
    assert_eq!(lines(b"\n\n\r\na\n  \t \n\r\nb\n\n"), ["a", "b"]);
    assert!(lines(b"").is_empty());
    assert!(lines(b"\n").is_empty());
}

#[test]
fn last_line_without_line_feed_is_returned_by_finish() {
    assert_eq!(lines(b"a\nb"), ["a", "b"]);
    assert_eq!(lines(b"a\nb\r"), ["a", "b"]);
    let mut framer = Framer::default();
    framer.push(b"half");
    assert_eq!(framer.next_frame(), None);
    assert_eq!(framer.finish(), Some(Frame::Line("half".into())));
    assert_eq!(framer.finish(), None);
}

#[test]
fn line_split_inside_a_character_is_joined() {
    let text = "{\"type\":\"x\",\"t\":\"\u{1f600}\u{e9}\"}\n".as_bytes();
    for at in 0..text.len() {
        let (before, after) = text.split_at(at);
        assert_eq!(frames(1 << 20, [before, after]), frames(1 << 20, [text]), "cut at {at}");
    }
}

#[test]
fn the_limit_counts_the_line_without_its_break() {
    for (line, oversized) in [("12345678", false), ("123456789", true)] {
        for end in ["\n", "\r\n"] {
            let bytes = format!("{line}{end}next{end}");
            for size in 1..bytes.len() {
                let found = frames(8, bytes.as_bytes().chunks(size));
                assert_eq!(matches!(found[0], Frame::Oversized(_)), oversized, "{bytes:?} {size}");
                assert_eq!(found[1], Frame::Line("next".into()), "{bytes:?} {size}");
            }
        }
    }
}

#[test]
fn both_ends_of_an_oversized_line_are_kept() {
    let mut line = b"HEAD".to_vec();
    line.resize(1 << 20, b'.');
    line.extend_from_slice(b"TAIL");
    let size = line.len() as u64;
    line.extend_from_slice(b"\r\nnext\n");
    for chunk in [1000, 65_537, line.len()] {
        let found = frames(300_000, line.chunks(chunk));
        let Frame::Oversized(Oversized { size: told, head, tail, .. }) = &found[0] else {
            panic!("{chunk}")
        };
        assert_eq!(*told, size);
        assert!(head.starts_with(b"HEAD") && head.len() == KEPT_OF_OVERSIZED);
        assert!(tail.ends_with(b"TAIL") && tail.len() == KEPT_OF_OVERSIZED);
        assert_eq!(found[1], Frame::Line("next".into()));
    }
}

#[test]
fn memory_stays_below_twice_the_limit() {
    const LIMIT: usize = 1 << 20;
    let mut framer = Framer::new(LIMIT);
    let chunk = vec![b'x'; 64 * 1024];
    for _ in 0..64 {
        let space = framer.space();
        let room = (space.capacity() - space.len()).min(chunk.len());
        space.extend_from_slice(&chunk[..room]);
        assert!(space.capacity() < 2 * LIMIT, "{}", space.capacity());
        assert_eq!(framer.next_frame(), None);
        assert!(framer.buffered() < 2 * LIMIT);
    }
    framer.push(b"\n");
    let Some(Frame::Oversized(oversized)) = framer.next_frame() else { panic!() };
    assert!(oversized.size > LIMIT as u64);
    assert_eq!(framer.buffered(), 0);
}

#[test]
fn empty_buffer_can_be_lent() {
    let (mut one, mut other) = (Framer::default(), Framer::default());
    assert!(one.take_spare().is_none(), "it has none yet");
    one.space().extend_from_slice(b"first\nsec");
    let Some(Frame::Line(first)) = one.next_frame() else { panic!() };
    assert_eq!(one.next_frame(), None);
    assert!(one.take_spare().is_none(), "half a line waits in it");
    one.lend(|| panic!("it has one"));
    one.push(b"ond\n");
    let Some(Frame::Line(second)) = one.next_frame() else { panic!() };
    assert_eq!(one.next_frame(), None);
    let spare = one.take_spare().unwrap();
    other.lend(|| Some(spare));
    other.push(&b"third\n".repeat(10_000));
    let mut lines = 0;
    while let Some(Frame::Line(line)) = other.next_frame() {
        assert_eq!(line, "third");
        lines += 1;
    }
    assert_eq!(lines, 10_000);
    assert_eq!((&*first, &*second), (&b"first"[..], &b"second"[..]), "they are as they were");
    other.take_spare();
    other.lend(|| Some("rubbish\n".into()));
    assert_eq!(other.next_frame(), None);
}

#[test]
fn buffer_enlarged_by_a_burst_is_not_lent() {
    let mut framer = Framer::default();
    framer.space().extend_from_slice(b"a line\n");
    assert!(framer.next_frame().is_some() && framer.next_frame().is_none());
    let usual = framer.take_spare().unwrap().capacity();
    // A line that ends where its memory does: what is left of that is small, and yet a part of it.
    let mut sent = 0;
    while sent < 1 << 20 {
        let space = framer.space();
        let room = space.capacity() - space.len();
        space.resize(space.len() + room, b'x');
        sent += room;
        assert_eq!(framer.next_frame(), None);
    }
    let space = framer.space();
    let room = space.capacity() - space.len();
    space.resize(space.len() + room - 100, b'x');
    space.extend_from_slice(b"\n");
    assert!(framer.next_frame().is_some() && framer.next_frame().is_none());
    assert!(framer.take_spare().is_none());
    // When it is quiet again, it is content with as little as at first.
    for _ in 0..10 {
        framer.space().extend_from_slice(b"a line\n");
        assert!(framer.next_frame().is_some() && framer.next_frame().is_none());
        framer.take_spare();
    }
    assert_eq!(framer.space().capacity(), usual + b"a line\n".len());
}

/// Many framers take turns with one buffer; each gives the lines that it would give by itself, and
/// those that were given stay as they are.
#[test]
fn framers_that_share_a_buffer_do_not_mix_their_lines() {
    let text = |framer: usize| -> String {
        let lines = (0..200).map(|line| format!("{framer} {}\n", "x".repeat(line * line % 97)));
        lines.collect()
    };
    for at_a_time in 1..60 {
        let mut framers: Vec<_> = (0..5).map(|_| (Framer::default(), Vec::new())).collect();
        let mut spare = None;
        let texts: Vec<String> = (0..5).map(text).collect();
        let longest = texts.iter().map(String::len).max().unwrap();
        for from in (0..longest).step_by(at_a_time) {
            for ((framer, lines), text) in framers.iter_mut().zip(&texts) {
                let until = (from + at_a_time).min(text.len());
                framer.lend(|| spare.take());
                framer.space().extend_from_slice(&text.as_bytes()[from.min(until)..until]);
                while let Some(Frame::Line(line)) = framer.next_frame() {
                    lines.push(line);
                }
                spare = framer.take_spare().or(spare);
            }
        }
        for ((_, lines), text) in framers.iter().zip(&texts) {
            assert!(text.lines().eq(lines.iter().map(|line| str::from_utf8(line).unwrap())));
        }
    }
}

#[test]
fn a_long_line_just_under_the_limit_arrives() {
    const LIMIT: usize = 60 << 20;
    let mut framer = Framer::new(LIMIT);
    let mut sent = 0;
    while sent < LIMIT {
        let space = framer.space();
        let room = (space.capacity() - space.len()).min(LIMIT - sent);
        space.resize(space.len() + room, b'x');
        sent += room;
        assert!(space.capacity() < 2 * LIMIT);
        assert_eq!(framer.next_frame(), None);
    }
    framer.push(b"\n");
    assert!(matches!(framer.next_frame(), Some(Frame::Line(line)) if line.len() == LIMIT));
}

/// A long line moves to other memory many times while lines before it are still held and the next
/// one has begun.
#[test]
fn a_line_that_grows_large_keeps_its_bytes_and_its_neighbours() {
    let long: Vec<u8> = (0..3_000_000_u32).map(|index| b'a' + (index % 23) as u8).collect();
    let stream = [&b"before\n"[..], &long, b"\nafter\n"].concat();
    for size in [1_000, 70_000, 400_000] {
        let mut framer = Framer::default();
        let mut frames = Vec::new();
        for chunk in stream.chunks(size) {
            framer.push(chunk);
            frames.extend(std::iter::from_fn(|| framer.next_frame()));
        }
        let lines = [&b"before"[..], &long, b"after"];
        let is =
            |frame: &Frame, wanted: &[u8]| matches!(frame, Frame::Line(line) if line == wanted);
        assert_eq!(frames.len(), 3, "in pieces of {size}");
        assert!(frames.iter().zip(lines).all(|(frame, wanted)| is(frame, wanted)), "{size}");
    }
}

#[test]
fn only_lines_that_fill_a_part_of_the_read_buffer_are_cut_out_of_it_without_a_copy() {
    let mut framer = Framer::default();
    let space = framer.space();
    let long = vec![b'x'; space.capacity() / 3];
    for line in [&b"first"[..], &long, b"last"] {
        space.extend_from_slice(line);
        space.extend_from_slice(b"\n");
    }
    let start = space.as_ptr() as usize;
    let mut places = Vec::new();
    while let Some(Frame::Line(line)) = framer.next_frame() {
        places.push((line.as_ptr() as usize, line));
    }
    let within = start..start + 2 * long.len();
    assert_eq!(places[1], (start + 6, long.into()));
    assert!(!within.contains(&places[0].0) && places[0].1 == "first");
    assert!(!within.contains(&places[2].0) && places[2].1 == "last");
}

/// Streams that come near every rule: long lines, blank ones, odd breaks, half characters.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z{}\",:]{0,12}".prop_map(String::into_bytes),
        2 => Just(b"\n".to_vec()),
        1 => Just(b"\r\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b"  ".to_vec()),
        1 => Just("\u{1f600}".as_bytes().to_vec()),
        1 => Just(br#"{"type":"result","is_error":true}"#.to_vec()),
        1 => Just(br#"{"type":"assistant","message":{"content":[{"type":"text","text":"x"}]}}"#.to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
        1 => proptest::collection::vec(Just(b'y'), 0..80),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cuts_give_the_same_lines_and_messages(
        stream in stream(),
        limit in 1_usize..200,
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        places.extend([0, stream.len()]);
        places.sort_unstable();
        let chunks = places.windows(2).map(|pair| &stream[pair[0]..pair[1]]);
        let cut = frames(limit, chunks);
        let whole = frames(limit, [&stream[..]]);
        prop_assert_eq!(&cut, &whole);
        let single = frames(limit, stream.chunks(1));
        prop_assert_eq!(&single, &whole);
        for frame in whole {
            if let Frame::Line(line) = frame {
                // Whatever it is, it is decoded or refused; nothing panics.
                match FromCli::decode(line.clone()) {
                    Ok(FromCli::Message(message)) => prop_assert_eq!(message.raw(), &line),
                    Ok(_) => {}
                    Err(malformed) => prop_assert_eq!(&malformed.line, &line),
                }
            }
        }
    }
}
