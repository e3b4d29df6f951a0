//! Parses config files in JSON.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::node::{Entry, Node, Value, Wrong};

/// The maximum nesting: deeper than any configuration, and safe for the stack.
const MAX_DEPTH: usize = 64;

/// Parses a JSON text.
pub(super) fn parse(text: &str) -> Result<Node, Vec<Wrong>> {
    // Some editors write a byte order mark.
    let begun = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut wrong = Vec::new();
    let node = match serde_json::from_str::<&RawValue>(begun) {
        Ok(raw) => Reader { text, wrong: &mut wrong }.node(raw, 0),
        Err(error) => {
            wrong.push(Wrong::new(at(text, &error), describe(&error)));
            None
        }
    };
    match node {
        Some(node) if wrong.is_empty() => Ok(node),
        _ => Err(wrong),
    }
}

/// Returns the byte offset of an error.
fn at(text: &str, error: &serde_json::Error) -> usize {
    let line = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    line.map(str::len).sum::<usize>() + error.column().saturating_sub(1)
}

/// Describes an error without its position, which is reported separately.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((what, _)) => format!("invalid JSON: {what}"),
        None => format!("invalid JSON: {text}"),
    }
}

struct Reader<'a> {
    text: &'a str,
    wrong: &'a mut Vec<Wrong>,
}

impl<'a> Reader<'a> {
    fn node(&mut self, raw: &'a RawValue, depth: usize) -> Option<Node> {
        let at = self.offset(raw.get());
        let value = match raw.get().as_bytes().first() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => {
                self.wrong
                    .push(Wrong::new(at, format!("nested more than {MAX_DEPTH} levels deep")));
                return None;
            }
            Some(b'{') => Value::Table(self.table(raw, depth)?),
            Some(b'[') => {
                let entries: Vec<&RawValue> = self.read(raw, at)?;
                let mut nodes = Vec::with_capacity(entries.len());
                for entry in entries {
                    if let Some(node) = self.node(entry, depth + 1) {
                        nodes.push(node);
                    }
                }
                Value::List(nodes)
            }
            _ => match self.read(raw, at)? {
                serde_json::Value::Bool(flag) => Value::Flag(flag),
                serde_json::Value::String(text) => Value::Text(text),
                serde_json::Value::Number(number) => match number.as_i128() {
                    Some(whole) => Value::Whole(whole),
                    None => Value::Number(number.as_f64().unwrap_or(f64::INFINITY)),
                },
                _ => Value::Null,
            },
        };
        Some(Node { at, value })
    }

    fn table(&mut self, raw: &'a RawValue, depth: usize) -> Option<Vec<Entry>> {
        let fields: Fields<'a> = self.read(raw, self.offset(raw.get()))?;
        let mut entries: Vec<Entry> = Vec::with_capacity(fields.0.len());
        let mut seen = HashSet::new();
        let mut end = self.offset(raw.get());
        for (name, raw) in fields.0 {
            // Between two values there is one key, and it begins with the first quote.
            let at = self.text[end..].find('"').map_or(end, |before| end + before);
            end = self.offset(raw.get()) + raw.get().len();
            if !seen.insert(name.clone()) {
                self.wrong.push(Wrong::new(at, format!("duplicate key {name:?}")));
            }
            if let Some(node) = self.node(raw, depth + 1) {
                entries.push(Entry { name, at, node });
            }
        }
        Some(entries)
    }

    /// Parses a part of valid JSON. A lone surrogate is still an error.
    fn read<T: Deserialize<'a>>(&mut self, raw: &'a RawValue, at: usize) -> Option<T> {
        match serde_json::from_str(raw.get()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong.push(Wrong::new(at, describe(&error)));
                None
            }
        }
    }

    /// Returns the byte offset of a part of the text.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }
}

/// The fields of an object in order, with duplicates.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(FieldsVisitor).map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Position;
    use super::*;

    fn place(text: &str, at: usize) -> String {
        let Position { line, column } = Position::of(text, at);
        format!("{line}:{column}")
    }

    fn places(text: &str, node: &Node, path: &str, found: &mut Vec<String>) {
        found.push(format!("{path}@{}", place(text, node.at)));
        match &node.value {
            Value::Table(entries) => {
                for entry in entries {
                    let key = format!("{path}/{}", entry.name);
                    found.push(format!("{key}={}", place(text, entry.at)));
                    places(text, &entry.node, &key, found);
                }
            }
            Value::List(nodes) => nodes.iter().for_each(|node| places(text, node, "-", found)),
            _ => {}
        }
    }

    #[test]
    fn keys_and_values_have_positions() {
        let text = "{\n  \"a\": 1, \"\\u0062\" : {\"ü\":[true,\n null]},\"e\":\"x\"\n}";
        let mut found = Vec::new();
        places(text, &parse(text).unwrap(), "", &mut found);
        let expected = [
            "@1:1",
            "/a=2:3",
            "/a@2:8",
            "/b=2:11",
            "/b@2:22",
            "/b/ü=2:23",
            "/b/ü@2:27",
            "-@2:28",
            "-@3:2",
            "/e=3:9",
            "/e@3:13",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn invalid_json_is_reported_with_its_position() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for (text, line, column, part) in [
            ("", 1, 1, "EOF"),
            ("{\n\"a\": }", 2, 6, "expected value"),
            ("{\"a\":1} x", 1, 9, "trailing"),
            ("{\"a\":1,\n\"a\":2}", 2, 1, "duplicate key"),
            (deep.as_str(), 1, 65, "levels deep"),
            ("{\"a\": \"\\ud800\"}", 1, 7, "invalid JSON"),
        ] {
            let wrong = parse(text).unwrap_err();
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            assert_eq!(place(text, wrong[0].at), format!("{line}:{column}"), "{wrong:?}");
            assert!(wrong[0].reason.contains(part), "{wrong:?}");
        }
        assert!(parse("\u{feff}{}").is_ok());
    }
}
