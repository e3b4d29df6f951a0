//! What the CLI writes to stderr: its last part for diagnostics, its lines for a callback.

use std::collections::VecDeque;

use crate::mask::Mask;

/// How much is kept.
const TAIL_BYTES: usize = 64 * 1024;

/// Longer lines are given in pieces.
const LINE_BYTES: usize = 64 * 1024;

/// How far from a cut a blank is looked for: a cut inside a word could split a secret, and half of
/// one would not be recognised.
const WORD_BYTES: usize = 4 * 1024;

/// Room that an unfinished line keeps when it is short.
const IDLE_BYTES: usize = 4 * 1024;

/// The last 64 KiB of stderr, and the line that is being written.
#[derive(Debug, Default)]
pub(crate) struct StderrTail {
    tail: VecDeque<u8>,
    /// Whether something before the tail is gone.
    cut: bool,
    line: Vec<u8>,
}

impl StderrTail {
    /// Takes bytes as they were read, and gives every line that they end.
    pub(crate) fn push(&mut self, bytes: &[u8], mut on_line: impl FnMut(&str)) {
        self.keep(bytes);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(end) if self.line.is_empty() && end.len() <= LINE_BYTES => {
                    give(end, &mut on_line);
                }
                Some(end) => {
                    self.extend(end, &mut on_line);
                    self.give_rest(&mut on_line);
                }
                None => self.extend(part, &mut on_line),
            }
        }
    }

    /// Gives the last line if it has no line break.
    pub(crate) fn finish(&mut self, mut on_line: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.give_rest(&mut on_line);
        }
    }

    /// What is kept, from the start of a line, without secrets.
    pub(crate) fn tail(&self, mask: &Mask) -> String {
        let (front, back) = self.tail.as_slices();
        let bytes = [front, back].concat();
        let start = if self.cut { whole_start(&bytes) } else { 0 };
        mask.apply(&String::from_utf8_lossy(&bytes[start..])).into_owned()
    }

    fn keep(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let over = (self.tail.len() + kept.len()).saturating_sub(TAIL_BYTES);
        self.cut |= over > 0 || kept.len() < bytes.len();
        self.tail.drain(..over);
        self.tail.extend(kept);
    }

    fn extend(&mut self, part: &[u8], on_line: &mut impl FnMut(&str)) {
        let mut part = part;
        // One more than the limit tells that the line is longer.
        while self.line.len() + part.len() > LINE_BYTES {
            let (now, later) = part.split_at(LINE_BYTES - self.line.len());
            self.line.extend_from_slice(now);
            let end = whole_end(&self.line);
            give(&self.line[..end], on_line);
            self.line.drain(..end);
            part = later;
        }
        self.line.extend_from_slice(part);
    }

    fn give_rest(&mut self, on_line: &mut impl FnMut(&str)) {
        give(&self.line, on_line);
        self.line.clear();
        self.line.shrink_to(IDLE_BYTES);
    }
}

fn give(line: &[u8], on_line: &mut impl FnMut(&str)) {
    on_line(&String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)));
}

/// Where a text that was cut somewhere begins with a line, a word or at least a character.
fn whole_start(bytes: &[u8]) -> usize {
    let after = |found: Option<usize>| found.map(|at| at + 1);
    let line = after(bytes.iter().position(|byte| *byte == b'\n')).filter(|at| *at < bytes.len());
    let first = &bytes[..bytes.len().min(WORD_BYTES)];
    let word = || after(first.iter().position(u8::is_ascii_whitespace));
    let character = || bytes.iter().position(|byte| !is_inside(*byte));
    line.or_else(word).or_else(character).unwrap_or(bytes.len())
}

/// Where a piece of a line can end: after a word, or at least after a character.
fn whole_end(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(WORD_BYTES);
    let word = bytes[last..].iter().rposition(u8::is_ascii_whitespace).map(|at| last + at + 1);
    let character = || {
        // No character is longer than four bytes.
        let start = bytes.iter().rev().take(4).position(|byte| !is_inside(*byte));
        let start = bytes.len() - 1 - start?;
        let whole = std::str::from_utf8(&bytes[start..]).is_ok();
        Some(if whole { bytes.len() } else { start })
    };
    word.or_else(character).filter(|end| *end > 0).unwrap_or(bytes.len())
}

/// Whether a byte of UTF-8 is not the first of its character.
fn is_inside(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text that is read in pieces of this size, the last one included.
    fn lines_in_pieces(bytes: &[u8], size: usize) -> Vec<String> {
        let mut tail = StderrTail::default();
        let mut lines = Vec::new();
        for piece in bytes.chunks(size) {
            tail.push(piece, |line| lines.push(line.to_owned()));
        }
        tail.finish(|line| lines.push(line.to_owned()));
        tail.finish(|line| panic!("{line:?} was given twice"));
        lines
    }

    fn tail_of(bytes: &[u8]) -> String {
        let mut tail = StderrTail::default();
        for piece in bytes.chunks(1000) {
            tail.push(piece, |_| {});
        }
        tail.tail(&Mask::default())
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let cases: [(&[u8], &[&str]); 7] = [
            (b"", &[]),
            (b"one", &["one"]),
            (b"one\n", &["one"]),
            (b"one\r\ntwo\n\nthree", &["one", "two", "", "three"]),
            ("grün\nä".as_bytes(), &["grün", "ä"]),
            (b"not \xff utf-8\n", &["not \u{fffd} utf-8"]),
            (b"a\rb\n", &["a\rb"]),
        ];
        for (bytes, expected) in cases {
            for size in [1, 2, 3, 100] {
                assert_eq!(lines_in_pieces(bytes, size), expected, "{size}");
            }
        }
    }

    #[test]
    fn a_long_line_is_given_in_pieces_and_nothing_is_lost() {
        for length in [LINE_BYTES - 1, LINE_BYTES, LINE_BYTES + 1, 3 * LINE_BYTES + 5] {
            for unit in ["x", "ü", "word "] {
                let text = unit.repeat(length / unit.len());
                let lines = lines_in_pieces(format!("{text}\nend").as_bytes(), 4096);
                let (last, pieces) = lines.split_last().unwrap();
                assert_eq!(last, "end");
                assert_eq!(pieces.concat(), text);
                assert!(pieces.iter().all(|piece| piece.len() <= LINE_BYTES));
                assert_eq!(pieces.len() == 1, text.len() <= LINE_BYTES, "{length} {unit}");
                // Pieces do not end inside a word.
                let whole = pieces.iter().rev().skip(1).all(|piece| piece.ends_with(' '));
                assert!(whole || unit != "word ");
            }
        }
        // In one read as well.
        let text = "y".repeat(LINE_BYTES * 2);
        assert_eq!(lines_in_pieces(format!("{text}\n").as_bytes(), usize::MAX).concat(), text);
    }

    #[test]
    fn the_tail_is_everything_while_it_is_short() {
        for text in ["", "one", "one\ntwo\n", "\n\n"] {
            assert_eq!(tail_of(text.as_bytes()), text);
        }
        let full = "z".repeat(TAIL_BYTES);
        assert_eq!(tail_of(full.as_bytes()), full);
    }

    #[test]
    fn a_longer_one_begins_with_a_whole_line() {
        let lines: Vec<String> = (0..20_000).map(|number| format!("line {number}\n")).collect();
        let text = lines.concat();
        let tail = tail_of(text.as_bytes());
        assert!(tail.len() <= TAIL_BYTES && tail.len() > TAIL_BYTES - 20, "{}", tail.len());
        assert!(tail.starts_with("line ") && tail.ends_with("line 19999\n"));
        // Read at once it is the same.
        let mut at_once = StderrTail::default();
        at_once.push(text.as_bytes(), |_| {});
        assert_eq!(at_once.tail(&Mask::default()), tail);
    }

    #[test]
    fn a_line_that_is_longer_than_the_tail_begins_with_a_whole_word_or_character() {
        let tail = tail_of("word ".repeat(TAIL_BYTES).as_bytes());
        assert!(tail.starts_with("word "), "{}", &tail[..10]);
        let tail = tail_of(format!("x{}", "ü".repeat(TAIL_BYTES)).as_bytes());
        assert!(tail.chars().all(|c| c == 'ü'));
        // A line break at the very end is not the start of a line.
        let tail = tail_of(format!("{}\n", "ü ".repeat(TAIL_BYTES)).as_bytes());
        assert!(tail.len() > TAIL_BYTES - 10);
    }

    #[test]
    fn secrets_are_hidden_in_the_tail_also_across_reads_and_cuts() {
        let secret = "very-secret-value";
        let mask = Mask::new([secret.to_owned()]);
        let text = format!("the key {secret} is bad ");
        // Wherever the cut falls.
        for longer in 0..text.len() {
            let mut tail = StderrTail::default();
            let all = text.repeat(2000) + &"x".repeat(longer);
            for piece in all.as_bytes().chunks(997) {
                tail.push(piece, |_| {});
            }
            let shown = tail.tail(&mask);
            for part in ["ver", "secret", "-val", "lue"] {
                assert!(!shown.contains(part), "{part}, {longer}");
            }
            assert!(shown.contains("***"));
        }
    }

    #[test]
    fn a_silent_stderr_costs_nothing_and_a_loud_one_no_more_than_its_limits() {
        let mut tail = StderrTail::default();
        assert_eq!(tail.tail.capacity() + tail.line.capacity(), 0);
        tail.push(&vec![b'x'; 10 * LINE_BYTES], |_| {});
        assert!(tail.tail.capacity() <= 2 * TAIL_BYTES);
        assert!(tail.line.capacity() <= 2 * LINE_BYTES);
        tail.push(b"\n", |_| {});
        assert!(tail.line.capacity() <= IDLE_BYTES);
    }
}
