//! Parses config files in TOML.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Entry, Node, Value, Wrong};
use crate::sort;

/// Parses a TOML text, or returns every syntax error.
pub(super) fn parse(text: &str) -> Result<Node, Vec<Wrong>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let start = |span: Option<Range<usize>>| span.map_or(0, |span| span.start);
    let mut wrong = Vec::new();
    for error in &errors {
        let reason = format!("invalid TOML: {}", error.message());
        wrong.push(Wrong::new(start(error.span()), reason));
    }
    // In the order of the text.
    sort::sort_by_key(&mut wrong, |wrong| wrong.at);
    if wrong.is_empty() {
        let value = Value::Table(entries(table.get_ref(), &mut wrong));
        if wrong.is_empty() {
            return Ok(Node { at: 0, value });
        }
    }
    Err(wrong)
}

fn entries(table: &DeTable<'_>, wrong: &mut Vec<Wrong>) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let (name, at) = (key.get_ref().to_string(), key.span().start);
        entries.push(Entry { name, at, node: node(value, wrong) });
    }
    // Problems are reported in the order of the text.
    sort::sort_by_key(&mut entries, |entry| entry.at);
    entries
}

fn node(value: &Spanned<DeValue<'_>>, wrong: &mut Vec<Wrong>) -> Node {
    let at = value.span().start;
    let mut too_large = || {
        wrong.push(Wrong::new(at, "the number is too large".to_owned()));
        Value::Null
    };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| too_large(), Value::Whole),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| too_large(), Value::Number)
        }
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(values) => {
            let mut nodes = Vec::with_capacity(values.len());
            for value in values {
                nodes.push(node(value, wrong));
            }
            Value::List(nodes)
        }
        DeValue::Table(table) => Value::Table(entries(table, wrong)),
    };
    Node { at, value }
}

#[cfg(test)]
mod tests {
    use super::super::node::Position;
    use super::*;

    fn place(text: &str, at: usize) -> (usize, usize) {
        let Position { line, column } = Position::of(text, at);
        (line, column)
    }

    #[test]
    fn toml_keys_and_values_have_positions_in_the_order_of_the_text() {
        let text = "# hello\nz = 0x10\n[env]\nB = \"ü\"\nA = [1.5, true]\n";
        let node = parse(text).unwrap();
        let Value::Table(entries) = node.value else { panic!() };
        let places: Vec<_> = entries
            .iter()
            .map(|entry| (entry.name.as_str(), place(text, entry.at), place(text, entry.node.at)))
            .collect();
        assert_eq!(places, [("z", (2, 1), (2, 5)), ("env", (3, 2), (3, 1))]);
        assert_eq!(entries[0].node.value, Value::Whole(16));
        let b = entries[1].node.get("B").unwrap();
        assert_eq!((place(text, b.at), &b.value), ((4, 5), &Value::Text("ü".into())));
    }

    #[test]
    fn every_syntax_error_is_reported_with_its_position() {
        let text = "model = \nmax_turns = 1\nmax_turns = 2\n[x\n";
        let wrong = parse(text).unwrap_err();
        let lines: Vec<usize> = wrong.iter().map(|wrong| place(text, wrong.at).0).collect();
        assert_eq!(lines, [1, 3, 4], "{wrong:?}");
        let large = parse("a = 99999999999999999999999999999999999999999999").unwrap_err();
        assert_eq!(large[0].at, 4);
        let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse(&deep).is_err());
    }
}
