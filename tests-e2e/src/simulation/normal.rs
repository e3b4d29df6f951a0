//! Traces of two runs of a seed are the same but for ids and dates.

use std::collections::BTreeMap;

/// The ids that were seen, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: BTreeMap<String, usize>,
}

impl Names {
    /// The text with its ids numbered and without dates.
    pub(super) fn normalise(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut word = String::new();
        for letter in text.chars() {
            if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':') {
                word.push(letter);
            } else {
                self.finish(&mut word, &mut out);
                out.push(letter);
            }
        }
        self.finish(&mut word, &mut out);
        out
    }

    fn finish(&mut self, word: &mut String, out: &mut String) {
        if is_date(word) || is_time(word) {
            out.push_str("DATE");
        } else if let Some(at) = id_in(word) {
            let next = self.known.len();
            let number = *self.known.entry(word[at..].to_owned()).or_insert(next);
            out.push_str(&word[..at]);
            out.push_str(&format!("ID{number}"));
        } else {
            out.push_str(word);
        }
        word.clear();
    }
}

/// Where the part of a word begins that is random.
fn id_in(word: &str) -> Option<usize> {
    let is_uuid = |text: &str| {
        text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            })
    };
    if let Some(at) = word.len().checked_sub(36)
        && word.is_char_boundary(at)
        && is_uuid(&word[at..])
    {
        return Some(at);
    }
    let hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if let Some(rest) = word.strip_prefix("req_") {
        let (_, suffix) = rest.split_once('_')?;
        return hex(suffix, 8).then(|| word.len() - 8);
    }
    // Agents.
    word.strip_prefix('a').filter(|rest| hex(rest, 16)).map(|_| 1)
}

/// Milliseconds since 1970, as they are for some centuries.
fn is_time(word: &str) -> bool {
    word.len() == 13 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_date(word: &str) -> bool {
    let shape = "0000-00-00T00:00:00.000Z";
    word.len() == shape.len()
        && word.bytes().zip(shape.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            _ => byte == like,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_and_dates_are_gone() {
        let mut names = Names::default();
        let text = r#"{"id":"0a1b2c3d-0000-4000-8000-000000000001","at":"2026-01-31T23:59:59.000Z","r":"req_3_00ff00ff","n":12}"#;
        assert_eq!(names.normalise(text), r#"{"id":"ID0","at":"DATE","r":"req_3_ID1","n":12}"#);
        assert_eq!(names.normalise("hook-0a1b2c3d-0000-4000-8000-000000000001"), "hook-ID0");
        assert_eq!(names.normalise("abc a0123456789abcdef"), "abc aID2");
        assert_eq!(names.normalise("at 1794813501226 or 12"), "at DATE or 12");
    }
}
