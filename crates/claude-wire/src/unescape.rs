//! Resolves the escapes of JSON strings.

/// Returns the contents of a string with its escapes resolved, given without the quotes; `None` if it
/// is not valid, so that the caller can ask `serde_json` for the reason.
///
/// `serde_json` collects the text in a buffer and copies it, which takes twice the memory and time for
/// the long outputs of tools.
pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let end = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        let (plain, escape) = rest.split_at(end);
        if plain.bytes().fold(0, |found, byte| found | u8::from(byte < 0x20)) != 0 {
            return None;
        }
        resolved.push_str(plain);
        if escape.is_empty() {
            return Some(resolved);
        }
        let (character, length) = escaped(escape.as_bytes())?;
        resolved.push(character);
        rest = &escape[length..];
    }
}

/// The character of the escape that the text begins with, and the length of the escape; `None` if it
/// is not valid.
pub(crate) fn escaped(escape: &[u8]) -> Option<(char, usize)> {
    let character = match escape.get(1)? {
        b'n' => '\n',
        b'"' => '"',
        b'\\' => '\\',
        b't' => '\t',
        b'r' => '\r',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            let first = unit(escape)?;
            if let Some(character) = char::from_u32(first) {
                return Some((character, 6));
            }
            let second = unit(escape.get(6..).filter(|next| next.starts_with(br"\u"))?)?;
            let is_pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
            let code = 0x10000 + ((first & 0x3ff) << 10 | (second & 0x3ff));
            return char::from_u32(code).filter(|_| is_pair).map(|character| (character, 12));
        }
        _ => return None,
    };
    Some((character, 2))
}

/// The UTF-16 unit of an escape `\uXXXX`.
fn unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.get(2..6)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::unescape;

    #[track_caller]
    fn check(text: &str) {
        let expected: Option<String> = serde_json::from_str(&format!("\"{text}\"")).ok();
        // A quote ends a string, so that none comes here.
        assert_eq!(unescape(text), expected, "{text:?}");
    }

    #[test]
    fn escapes_are_resolved_as_by_serde_json() {
        for text in [
            "",
            "plain",
            r"\n",
            r"a\tb\\c\/d\be\ff\rg",
            r"\u00e9",
            r"\u00E9",
            r"\ud83d\ude00",
            r"\ud83d",
            r"\ude00",
            r"\ud83dx",
            r"\ud83d\n",
            r"\ud83d\ud83d",
            r"\ude00\ud83d",
            r"\u12",
            r"\u12g4",
            r"\x",
            "\\",
            "tab\tinside",
            "é\\né",
            r"\u0000",
            r"\uffff",
            r"\u+123",
            r"\ud83d\u+e00",
        ] {
            check(text);
        }
    }

    proptest! {
        #[test]
        fn random_text_is_resolved_as_by_serde_json(
            text in r#"([a-zé\x01-\x03]|\\[nt\\/"ux]|\\u[0-9a-fA-F]{3,4}|\\ud8[0-9a-f]{2}|\\udc[0-9a-f]{2}){0,12}"#
        ) {
            check(&text);
        }
    }
}
