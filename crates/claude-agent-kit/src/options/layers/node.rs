//! The values of a config file with their positions, independent of its format.

use serde_json::{Map, Value as JsonValue};

/// A position in a text: line and character, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    /// Returns the position of a byte.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let mut byte = byte.min(text.len());
        while !text.is_char_boundary(byte) {
            byte -= 1;
        }
        let before = &text[..byte];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        Self { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }
}

/// A value and the byte offset at which it begins. Lines are counted only for a problem.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Flag(bool),
    Whole(i128),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key of a table, its offset, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) node: Node,
}

/// A problem and its byte offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) reason: String,
}

impl Wrong {
    pub(super) fn new(at: usize, reason: String) -> Self {
        Self { at, reason }
    }
}

impl Node {
    /// Creates a value without a position.
    pub(super) fn unplaced(value: Value) -> Self {
        Self { at: 0, value }
    }

    /// Describes the type of the value. The value itself may be a secret.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Flag(_) => "a Boolean",
            Value::Whole(_) | Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Returns the value of a key of a table.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
    }

    /// Converts the value to JSON.
    pub(super) fn json(&self) -> Result<JsonValue, Vec<Wrong>> {
        Ok(match &self.value {
            Value::Null => JsonValue::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Whole(whole) => match (i64::try_from(*whole), u64::try_from(*whole)) {
                (Ok(small), _) => small.into(),
                (_, Ok(large)) => large.into(),
                _ => return Err(self.wrong("the number is too large")),
            },
            Value::Number(number) => match serde_json::Number::from_f64(*number) {
                Some(number) => number.into(),
                None => return Err(self.wrong("JSON cannot represent this number")),
            },
            Value::Text(text) => text.as_str().into(),
            Value::List(entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for entry in entries {
                    values.push(entry.json()?);
                }
                JsonValue::Array(values)
            }
            Value::Table(entries) => {
                let mut fields = Map::new();
                for entry in entries {
                    fields.insert(entry.name.clone(), entry.node.json()?);
                }
                JsonValue::Object(fields)
            }
        })
    }

    /// Returns a problem of this value.
    pub(super) fn wrong(&self, reason: &str) -> Vec<Wrong> {
        vec![Wrong::new(self.at, reason.to_owned())]
    }
}
