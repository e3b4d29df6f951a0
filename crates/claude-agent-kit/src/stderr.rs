//! The CLI's stderr: its tail for diagnostics, its lines for a callback. Secrets are masked in both.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::mask::{Mask, is_part_of_token};

/// The size of the visible tail, in bytes.
const TAIL_BYTES: usize = 64 * 1024;

/// Longer lines are passed on in pieces.
const LINE_BYTES: usize = 64 * 1024;

/// How far from a cut to search for a space, so that words stay whole.
const WORD_BYTES: usize = 4 * 1024;

/// The number of bytes kept before a cut but never shown, to recognize secrets that begin there.
const CONTEXT_BYTES: usize = 4 * 1024;

/// The capacity that the buffer of a line keeps.
const IDLE_BYTES: usize = 4 * 1024;

/// The last 64 KiB of stderr.
#[derive(Debug, Default)]
pub(crate) struct StderrTail {
    /// Up to [`CONTEXT_BYTES`] more than the visible tail.
    kept: VecDeque<u8>,
    /// Whether something before it was discarded.
    cut: bool,
}

impl StderrTail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        const MOST: usize = TAIL_BYTES + CONTEXT_BYTES;
        let kept = &bytes[bytes.len().saturating_sub(MOST)..];
        let over = (self.kept.len() + kept.len()).saturating_sub(MOST);
        self.cut |= over > 0 || kept.len() < bytes.len();
        self.kept.drain(..over);
        self.kept.extend(kept);
    }

    /// Copies the stored text, so that it can be masked without holding a lock.
    pub(crate) fn copy(&self) -> TailCopy {
        let (front, back) = self.kept.as_slices();
        TailCopy { bytes: [front, back].concat(), cut: self.cut }
    }
}

/// The end of a text, and whether something before it is missing.
pub(crate) struct TailCopy {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cut: bool,
}

impl TailCopy {
    /// Joins lines. One of 64 KiB has lost its beginning.
    pub(crate) fn of_lines<'a>(lines: impl Iterator<Item = &'a Bytes>) -> Self {
        let mut copy = Self { bytes: Vec::new(), cut: false };
        for line in lines {
            copy.cut |= copy.bytes.is_empty() && line.len() >= TAIL_BYTES;
            copy.bytes.extend_from_slice(line);
            copy.bytes.push(b'\n');
        }
        copy
    }

    /// Returns the last 64 KiB with secrets masked, starting at a line if earlier text was discarded.
    pub(crate) fn masked(&self, mask: &Mask) -> String {
        let length = self.bytes.len();
        let mut start = length.saturating_sub(TAIL_BYTES);
        if self.cut {
            start = start.max(CONTEXT_BYTES.min(length));
        }
        if start > 0 {
            start += whole_start(&self.bytes[start..]);
        }
        let (context, shown) = self.bytes.split_at(start);
        // A key may have begun before the stored text.
        let inside = self.cut && context.iter().all(|byte| is_part_of_token(*byte));
        let mut text = String::from_utf8_lossy(context).into_owned();
        let start = text.len();
        text.push_str(&String::from_utf8_lossy(shown));
        mask.apply_within(&text, start..text.len(), inside).text
    }
}

/// Splits stderr into masked lines.
#[derive(Debug, Default)]
pub(crate) struct StderrLines {
    mask: Mask,
    /// The unfinished line, without the part that is no longer needed.
    line: Vec<u8>,
    /// How much of the line was passed on; kept because a secret may begin there.
    passed: usize,
    /// Whether part of the line was passed on.
    in_pieces: bool,
    /// Whether the part that was passed on ends inside a key or token.
    inside_token: bool,
}

impl StderrLines {
    pub(crate) fn new(mask: Mask) -> Self {
        Self { mask, ..Self::default() }
    }

    /// Adds bytes and passes on every line that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], mut on_line: impl FnMut(&str)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(end) if self.line.is_empty() && end.len() <= LINE_BYTES => {
                    let line = String::from_utf8_lossy(end.strip_suffix(b"\r").unwrap_or(end));
                    on_line(&self.mask.apply(&line));
                }
                Some(end) => {
                    self.extend(end, &mut on_line);
                    self.finish_line(&mut on_line);
                }
                None => self.extend(part, &mut on_line),
            }
        }
    }

    /// Passes on the last line if it has no newline.
    pub(crate) fn finish(&mut self, mut on_line: impl FnMut(&str)) {
        if !self.line.is_empty() {
            self.finish_line(&mut on_line);
        }
    }

    fn extend(&mut self, mut part: &[u8], on_line: &mut impl FnMut(&str)) {
        while self.line.len() - self.passed + part.len() > LINE_BYTES {
            // The end of a secret may come after the piece.
            let most = self.passed + LINE_BYTES + self.context();
            if self.line.len() + part.len() <= most {
                break;
            }
            let (now, later) = part.split_at(most.saturating_sub(self.line.len()));
            self.line.extend_from_slice(now);
            self.pass_piece(on_line);
            part = later;
        }
        self.line.extend_from_slice(part);
    }

    fn finish_line(&mut self, on_line: &mut impl FnMut(&str)) {
        let end = self.line.strip_suffix(b"\r").map_or(self.line.len(), <[u8]>::len);
        self.line.truncate(end);
        while self.line.len() - self.passed > LINE_BYTES {
            self.pass_piece(on_line);
        }
        self.pass(self.line.len(), on_line);
        self.line.clear();
        self.line.shrink_to(IDLE_BYTES);
        (self.passed, self.in_pieces, self.inside_token) = (0, false, false);
    }

    /// Passes on the next piece of a line that is too long.
    fn pass_piece(&mut self, on_line: &mut impl FnMut(&str)) {
        let end = self.passed + whole_end(&self.line[self.passed..self.passed + LINE_BYTES]);
        self.pass(end, on_line);
        let start = end.saturating_sub(self.context());
        let start =
            start + self.line[start..end].iter().take_while(|byte| is_inside(**byte)).count();
        self.line.drain(..start);
        self.passed = end - start;
    }

    fn pass(&mut self, end: usize, on_line: &mut impl FnMut(&str)) {
        let mut text = String::from_utf8_lossy(&self.line[..self.passed]).into_owned();
        let start = text.len();
        text.push_str(&String::from_utf8_lossy(&self.line[self.passed..end]));
        let part = start..text.len();
        text.push_str(&String::from_utf8_lossy(&self.line[end..]));
        let masked = self.mask.apply_within(&text, part, self.inside_token);
        self.inside_token = masked.inside_token;
        // The middle of a secret leaves nothing to show.
        if !masked.text.is_empty() || !self.in_pieces {
            on_line(&masked.text);
        }
        self.in_pieces = true;
    }

    /// Returns how much text around a piece is needed to recognize a secret that the piece cuts.
    fn context(&self) -> usize {
        self.mask.longest().clamp(CONTEXT_BYTES, LINE_BYTES)
    }
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
        masked_lines(&Mask::default(), bytes, size)
    }

    fn masked_lines(mask: &Mask, bytes: &[u8], size: usize) -> Vec<String> {
        let mut stderr = StderrLines::new(mask.clone());
        let mut lines = Vec::new();
        for piece in bytes.chunks(size) {
            stderr.push(piece, |line| lines.push(line.to_owned()));
        }
        stderr.finish(|line| lines.push(line.to_owned()));
        stderr.finish(|line| panic!("{line:?} was passed on twice"));
        lines
    }

    fn tail_of(bytes: &[u8]) -> String {
        let mut tail = StderrTail::default();
        for piece in bytes.chunks(1000) {
            tail.push(piece);
        }
        tail.copy().masked(&Mask::default())
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
        at_once.push(text.as_bytes());
        assert_eq!(at_once.copy().masked(&Mask::default()), tail);
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
                tail.push(piece);
            }
            let shown = tail.copy().masked(&mask);
            for part in ["ver", "secret", "-val", "lue"] {
                assert!(!shown.contains(part), "{part}, {longer}");
            }
            assert!(shown.contains("***"));
        }
    }

    /// However the pieces of a line fall, no part of a secret is shown.
    #[test]
    fn a_secret_is_hidden_wherever_a_long_line_is_cut() {
        let secret = "top.secret(value)with words and signs";
        let mask = Mask::new([secret.to_owned()]);
        let filler = |length: usize| "(".repeat(length);
        for before in (LINE_BYTES - secret.len() - 1..=LINE_BYTES + 1).step_by(5) {
            let text = format!("{}{secret}{}", filler(before), filler(2 * LINE_BYTES));
            let lines = masked_lines(&mask, text.as_bytes(), 4096);
            let expected = format!("{}***{}", filler(before), filler(2 * LINE_BYTES));
            assert_eq!(lines.concat(), expected, "{before}");
        }
        // Secrets that overlap, without an end.
        let mask = Mask::new(["abcabcab".to_owned()]);
        let lines = masked_lines(&mask, "abc".repeat(LINE_BYTES).as_bytes(), 1000);
        assert_eq!(lines, ["***", "c"]);
    }

    #[test]
    fn a_token_is_hidden_wherever_a_long_line_is_cut() {
        let filler = |length: usize| "(".repeat(length);
        for name in ["Bearer ", "x-api-key: ", "sk-ant-"] {
            for before in (LINE_BYTES - 20..=LINE_BYTES).step_by(4) {
                let token = "hidden".repeat(LINE_BYTES / 4);
                let text = format!("{}{name}{token}){}", filler(before), filler(LINE_BYTES));
                let lines = masked_lines(&Mask::default(), text.as_bytes(), 4096).concat();
                let shown = if name == "sk-ant-" { "" } else { name };
                let expected = format!("{}{shown}***){}", filler(before), filler(LINE_BYTES));
                assert_eq!(lines, expected, "{name} {before}");
            }
        }
    }

    #[test]
    fn a_token_or_secret_that_began_before_the_tail_is_hidden() {
        let tail = tail_of(format!("sk-ant-{} end", "hidden".repeat(TAIL_BYTES)).as_bytes());
        assert_eq!(tail, " end");
        let secret = format!("(top({}", "secret(".repeat(100));
        let mask = Mask::new([secret.clone()]);
        for length in (TAIL_BYTES - secret.len()..TAIL_BYTES).step_by(101) {
            let mut tail = StderrTail::default();
            tail.push(b"before all that is kept".repeat(1000).as_slice());
            tail.push(secret.as_bytes());
            tail.push(")".repeat(length).as_bytes());
            let shown = tail.copy().masked(&mask);
            assert!(!shown.contains("secret"), "{length}: {}", &shown[..100]);
        }
    }

    #[test]
    fn a_silent_stderr_costs_nothing_and_a_loud_one_no_more_than_its_limits() {
        let (mut tail, mut lines) = (StderrTail::default(), StderrLines::default());
        assert_eq!(tail.kept.capacity() + lines.line.capacity(), 0);
        let text = vec![b'x'; 10 * LINE_BYTES];
        tail.push(&text);
        lines.push(&text, |_| {});
        assert!(tail.kept.capacity() <= 2 * (TAIL_BYTES + CONTEXT_BYTES));
        assert!(lines.line.capacity() <= 2 * (LINE_BYTES + 2 * CONTEXT_BYTES));
        lines.push(b"\n", |_| {});
        assert!(lines.line.capacity() <= IDLE_BYTES);
    }
}
