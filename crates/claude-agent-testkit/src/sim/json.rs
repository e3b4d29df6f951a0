//! JSON objects whose keys keep their insertion order.
//!
//! A client may depend on the key order of the real CLI without noticing. A `serde_json::Value`
//! would sort the keys.

use std::fmt::{Display, Write as _};

use serde_json::Value;

/// An object that is being built; its values are JSON text.
#[derive(Debug, Clone)]
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self(String::from("{"))
    }

    /// Creates an object whose first key is `type`.
    pub(super) fn typed(kind: &str) -> Self {
        Self::new().str("type", kind)
    }

    /// Adds a value that is already JSON.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        self.key(key);
        self.0.push_str(json);
        self
    }

    pub(super) fn str(mut self, key: &str, text: &str) -> Self {
        self.key(key);
        quote_into(&mut self.0, text);
        self
    }

    /// Adds a number or a boolean.
    pub(super) fn plain(mut self, key: &str, value: impl Display) -> Self {
        self.key(key);
        write!(self.0, "{value}").expect("writing to a String cannot fail");
        self
    }

    pub(super) fn null(self, key: &str) -> Self {
        self.raw(key, "null")
    }

    pub(super) fn value(self, key: &str, value: &Value) -> Self {
        let json = value.to_string();
        self.raw(key, &json)
    }

    pub(super) fn strings<S: AsRef<str>>(self, key: &str, texts: &[S]) -> Self {
        self.raw(key, &array(texts.iter().map(|text| quoted(text.as_ref()))))
    }

    /// Adds a string or null.
    pub(super) fn str_or_null(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.str(key, text),
            None => self.null(key),
        }
    }

    /// Adds a string, if there is one.
    pub(super) fn some_str(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.str(key, text),
            None => self,
        }
    }

    /// Adds the fields of another object.
    pub(super) fn fields(mut self, other: &Object) -> Self {
        let fields = &other.0[1..];
        if !fields.is_empty() {
            self.comma();
            self.0.push_str(fields);
        }
        self
    }

    pub(super) fn done(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn key(&mut self, key: &str) {
        self.comma();
        quote_into(&mut self.0, key);
        self.0.push(':');
    }

    fn comma(&mut self) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
    }
}

/// Returns an array of values that are already JSON.
pub(super) fn array<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> String {
    let mut array = String::from("[");
    for value in values {
        if array.len() > 1 {
            array.push(',');
        }
        array.push_str(value.as_ref());
    }
    array.push(']');
    array
}

/// Returns a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    quote_into(&mut json, text);
    json
}

fn quote_into(json: &mut String, text: &str) {
    json.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        json.push_str(&text[plain..at]);
        plain = at + 1;
        if escaped.is_empty() {
            write!(json, "\\u{byte:04x}").expect("writing to a String cannot fail");
        } else {
            json.push_str(escaped);
        }
    }
    json.push_str(&text[plain..]);
    json.push('"');
}

/// Returns the text of a JSON string, or an empty string for other values.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_strings_are_escaped() {
        let object = Object::typed("b").str("a", "\"\\\n\u{1}é").plain("n", 1.5).null("z");
        let more = Object::new().strings("list", &["x", "y"]);
        let json = object.fields(&more).fields(&Object::new()).done();
        assert_eq!(json, r#"{"type":"b","a":"\"\\\n\u0001é","n":1.5,"z":null,"list":["x","y"]}"#);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["a"], "\"\\\n\u{1}é");
    }
}
