//! The forms in which a secret value may be printed.

/// Shorter values are not masked: hiding every `1` or `true` would make a text unreadable.
const SHORTEST: usize = 6;

/// Adds every form of a value.
pub(super) fn add(value: &str, forms: &mut Vec<String>) {
    let value = value.trim();
    let is_long_enough = |text: &str| text.chars().nth(SHORTEST - 1).is_some();
    // A CLI may leave out the scheme of `Bearer x`.
    let token = value.split_once(' ').map(|(_, token)| token.trim());
    for text in [Some(value), token].into_iter().flatten().filter(|text| is_long_enough(text)) {
        encode(text, forms);
    }
    // A key of several lines is printed line by line.
    for line in value.lines() {
        let line = line.trim();
        if line.len() < value.len() && is_long_enough(line) {
            forms.push(line.to_owned());
        }
    }
}

/// Adds a text as it is, as JSON, URL-encoded and in base64.
fn encode(text: &str, forms: &mut Vec<String>) {
    let json = serde_json::Value::from(text).to_string();
    let json = &json[1..json.len() - 1];
    forms.push(text.to_owned());
    forms.push(json.to_owned());
    forms.push(json.replace('/', "\\/"));
    // As `encodeURIComponent` and `URLSearchParams` write it.
    forms.push(url_encoded(text, b"-_.!~*'()", "%20"));
    forms.push(url_encoded(text, b"*-._", "+"));
    for alphabet in [b"+/", b"-_"] {
        let encoded = base64(text.as_bytes(), *alphabet);
        forms.push(encoded.trim_end_matches('=').to_owned());
        forms.push(encoded);
    }
}

fn url_encoded(text: &str, kept: &[u8], blank: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b' ' => encoded.push_str(blank),
            _ if byte.is_ascii_alphanumeric() || kept.contains(&byte) => {
                encoded.push(char::from(byte));
            }
            _ => {
                encoded.push('%');
                encoded.push(hex_digit(byte >> 4));
                encoded.push(hex_digit(byte & 15));
            }
        }
    }
    encoded
}

fn hex_digit(value: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(value & 15)])
}

/// With padding; the last two characters of the alphabet differ between its variants.
fn base64(bytes: &[u8], last_two: [u8; 2]) -> String {
    let digit = |value: u32| {
        let value = u8::try_from(value & 63).unwrap_or_default();
        char::from(match value {
            0..=25 => b'A' + value,
            26..=51 => b'a' + value - 26,
            52..=61 => b'0' + value - 52,
            _ => last_two[usize::from(value - 62)],
        })
    };
    let mut encoded = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            encoded.push(if at <= chunk.len() { digit(bits >> shift) } else { '=' });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_encoded_as_rfc_4648_says() {
        for (text, expected) in [
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
            ("?>?>~~", "Pz4/Pn5+"),
        ] {
            assert_eq!(base64(text.as_bytes(), *b"+/"), expected);
        }
        assert_eq!(base64(b"?>?>~~", *b"-_"), "Pz4_Pn5-");
    }

    #[test]
    fn values_are_url_encoded_as_javascript_does_it() {
        let text = "a b/c+d~(é)";
        assert_eq!(url_encoded(text, b"-_.!~*'()", "%20"), "a%20b%2Fc%2Bd~(%C3%A9)");
        assert_eq!(url_encoded(text, b"*-._", "+"), "a+b%2Fc%2Bd%7E%28%C3%A9%29");
    }
}
