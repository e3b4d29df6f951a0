//! Replaces IDs and dates, which differ between runs of the same seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The shapes of values that differ in every run: `h` is a hexadecimal digit, `0` a decimal one.
const IDS: [&str; 4] = [
    // Sessions, messages, requests of the CLI.
    "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh",
    // Agents.
    "ahhhhhhhhhhhhhhhh",
    // Runs of tasks.
    "hhhhhhhhh-hhhhhhhh",
    // Requests of the host, after `req_1_`.
    "_hhhhhhhh",
];
const TIMES: [&str; 2] = ["0000-00-00T00:00:00.000Z", "0000000000000"];

/// The text of an error that precedes an incomplete line.
const CUT_LINE: &str = "the last line of stdout that is no message is";

/// Numbers IDs in the order of their first occurrence.
#[derive(Debug, Default)]
pub(crate) struct Normalizer {
    known: BTreeMap<String, usize>,
}

impl Normalizer {
    /// Returns the text with numbered IDs and without dates.
    pub(crate) fn normalize(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        // An incomplete line may end in the middle of an ID, which then has no known shape.
        let cut = text.find(CUT_LINE).map_or(text.len(), |at| at + CUT_LINE.len());
        let mut rest = &text[..cut];
        // Only whole words match.
        let mut inside = false;
        while let Some(letter) = rest.chars().next() {
            let fits = |shape: &&&str| is_like(rest, shape) && (!inside || letter == '_');
            if let Some(shape) = IDS.iter().find(fits) {
                let (id, after) = rest.split_at(shape.len());
                let next = self.known.len();
                let number = *self.known.entry(id.to_owned()).or_insert(next);
                let _ = write!(out, "ID{number}");
                rest = after;
            } else if let Some(shape) = TIMES.iter().find(fits) {
                out.push_str("DATE");
                rest = &rest[shape.len()..];
            } else {
                out.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
            inside = letter.is_ascii_alphanumeric();
        }
        out
    }
}

/// Whether a text starts with a word of this shape.
fn is_like(text: &str, shape: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.get(shape.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    ends && bytes.len() >= shape.len()
        && bytes.iter().zip(shape.bytes()).all(|(byte, like)| match like {
            b'h' => byte.is_ascii_hexdigit(),
            b'0' => byte.is_ascii_digit(),
            _ => *byte == like,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_and_dates_are_removed() {
        let mut names = Normalizer::default();
        let text = r#"{"id":"0a1b2c3d-0000-4000-8000-000000000001","at":"2026-01-31T23:59:59.000Z","r":"req_3_00ff00ff","n":12}"#;
        assert_eq!(names.normalize(text), r#"{"id":"ID0","at":"DATE","r":"req_3ID1","n":12}"#);
        assert_eq!(names.normalize("/0a1b2c3d-0000-4000-8000-000000000001.jsonl"), "/ID0.jsonl");
        assert_eq!(names.normalize("abc a0123456789abcdef"), "abc ID2");
        assert_eq!(names.normalize("ms:1794813501226 or 12"), "ms:DATE or 12");
        assert_eq!(names.normalize("run 0115c35d4-674a882b"), "run ID3");
        let cut = format!("{CUT_LINE} \"req_1_4ac17");
        assert_eq!(names.normalize(&cut), CUT_LINE);
    }
}
