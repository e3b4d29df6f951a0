//! Parses lines for scenarios.

use serde_json::{Value, json};

/// Parses a line as JSON. A line that is not JSON becomes an object of an unknown type, so that the scenario can
/// show it.
pub(super) fn read(line: &[u8]) -> Value {
    serde_json::from_slice(line)
        .or_else(|_| serde_json::from_str(&without_lone_surrogates(&String::from_utf8_lossy(line))))
        .unwrap_or_else(|_| json!({"type": "not JSON", "text": String::from_utf8_lossy(line)}))
}

/// Replaces lone surrogates such as `\ud83d` with `\ufffd`.
fn without_lone_surrogates(text: &str) -> String {
    let mut repaired = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\\') {
        repaired.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = match (surrogate(rest), surrogate(rest.get(6..).unwrap_or_default())) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => {
                repaired.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            // A backslash with the escaped character, so that `\\ud83d` stays text.
            (None, _) => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
        };
        repaired.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    repaired + rest
}

fn surrogate(text: &str) -> Option<u32> {
    let unit = u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        let line = br#"{"a":"\ud83d","b":"\ud83d\ude00","c":"\\ud83d","d":"\ude00\n"}"#;
        let expected = json!({"a": "\u{fffd}", "b": "😀", "c": "\\ud83d", "d": "\u{fffd}\n"});
        assert_eq!(read(line), expected);
    }

    #[test]
    fn what_is_not_json_is_kept_as_text() {
        assert_eq!(read(b"oops"), json!({"type": "not JSON", "text": "oops"}));
    }
}
