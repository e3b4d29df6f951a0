//! Keys and tokens that are recognised by what precedes them, without being known.

use std::ops::Range;

/// Adds the places of keys and tokens: `sk-ant-…`, and what follows `bearer` or `x-api-key`.
///
/// `inside` means that a token began before `from` and had not ended there.
pub(super) fn find(text: &str, from: usize, inside: bool, places: &mut Vec<Range<usize>>) {
    if inside {
        add(0..end_of_token(text, from), places);
    }
    let mut end = 0;
    for (at, _) in text.match_indices("sk-ant-") {
        // Inside a token that was found there is nothing more to find.
        if at >= end {
            end = end_of_token(text, at);
            places.push(at..end);
        }
    }
    for name in ["bearer", "x-api-key"] {
        find_after(text, name, places);
    }
}

fn add(token: Range<usize>, places: &mut Vec<Range<usize>>) {
    if !token.is_empty() {
        places.push(token);
    }
}

/// Adds the tokens that follow a name and a gap, such as `bearer xyz` and `"x-api-key": "xyz"`.
fn find_after(text: &str, name: &str, places: &mut Vec<Range<usize>>) {
    let mut from = 0;
    // The end of the last token. A name inside of a token is followed by the rest of the same one.
    let mut end = 0;
    while let Some(at) = find_ignoring_case(&text[from..], name) {
        from += at + name.len();
        let gap = text[from..].find(|c: char| !matches!(c, ' ' | ':' | '=' | '"' | '\''));
        // Without a gap the name is a part of a longer word.
        let Some(gap) = gap.filter(|gap| *gap > 0) else { continue };
        from += gap;
        if from >= end {
            end = end_of_token(text, from);
            add(from..end, places);
        }
    }
}

/// Returns whether a byte can be part of a key or token.
pub(crate) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)
}

fn end_of_token(text: &str, start: usize) -> usize {
    let length = text.as_bytes()[start..].iter().position(|byte| !is_part(*byte));
    length.map_or(text.len(), |length| start + length)
}

/// The needle is ASCII and in lower case.
fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    let needle = needle.as_bytes();
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle))
}
