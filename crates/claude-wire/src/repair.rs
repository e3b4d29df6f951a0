//! Repairs JSON text with broken characters. The CLI forwards lone surrogate escapes that models write.

use std::borrow::Cow;

/// Returns the text with U+FFFD for each invalid UTF-8 sequence and each lone surrogate escape; `None`
/// if there is nothing to repair.
pub fn repaired(text: &[u8]) -> Option<String> {
    match valid(text) {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}

/// Returns the text, repaired if there is something to repair.
pub fn valid(text: &[u8]) -> Cow<'_, str> {
    let valid = String::from_utf8_lossy(text);
    let lone = lone_surrogates(valid.as_bytes());
    if lone.is_empty() {
        return valid;
    }
    let mut repaired = String::with_capacity(valid.len());
    let mut from = 0;
    for at in lone {
        repaired.push_str(&valid[from..at]);
        repaired.push_str(r"\ufffd");
        from = at + ESCAPE;
    }
    repaired.push_str(&valid[from..]);
    Cow::Owned(repaired)
}

/// The length of `\uXXXX`.
const ESCAPE: usize = 6;

/// Returns the positions of lone surrogate escapes.
fn lone_surrogates(text: &[u8]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        match surrogate(&text[at..]) {
            Some(Half::High) if surrogate(&text[at + ESCAPE..]) == Some(Half::Low) => {
                at += 2 * ESCAPE;
            }
            Some(_) => {
                lone.push(at);
                at += ESCAPE;
            }
            // Any other escape is skipped as two bytes; the second may itself be a backslash.
            None => at += 2.min(text.len() - at),
        }
    }
    lone
}

#[derive(PartialEq)]
enum Half {
    High,
    Low,
}

/// Returns which half of a surrogate pair the escape at the start of `text` is, if any.
fn surrogate(text: &[u8]) -> Option<Half> {
    let digits = text.get(..ESCAPE)?.strip_prefix(br"\u")?;
    if !digits[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    match (digits[0].to_ascii_lowercase(), digits[1].to_ascii_lowercase()) {
        (b'd', b'8'..=b'9' | b'a'..=b'b') => Some(Half::High),
        (b'd', b'c'..=b'f') => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::repaired;

    fn check(text: &[u8], expected: Option<&str>) {
        let text_after = repaired(text);
        assert_eq!(text_after.as_deref(), expected, "{}", text.escape_ascii());
    }

    #[test]
    fn only_what_is_broken_changes() {
        check(br#"{"a":"plain"}"#, None);
        check(br#""\ud83d\ude00""#, None);
        check(br#""\\ud83d""#, None);
        check(br#""\\\ud83d""#, Some(r#""\\\ufffd""#));
        check(br#""\ud83d""#, Some(r#""\ufffd""#));
        check(br#""\uDE00\uD83D""#, Some(r#""\ufffd\ufffd""#));
        check(br#""\ud83d\ud83d\ude00""#, Some(r#""\ufffd\ud83d\ude00""#));
        check(br#""\ud83dx\ude00""#, Some(r#""\ufffdx\ufffd""#));
        check(b"\"\xff\"", Some("\"\u{fffd}\""));
        check(b"\"\xf0\x9f\"", Some("\"\u{fffd}\""));
        check(br#""\ud83d"#, Some(r#""\ufffd"#));
        check(br#""\ud8"#, None);
        check(br"\", None);
    }
}
