//! Converts a value of a config file, or the text of a variable, to the type of an option.

use std::path::PathBuf;
use std::time::Duration;

use claude_wire::control::PermissionMode;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::launch::{Effort, Secret};
use claude_wire::settings::{ManagedSettings, PermissionPrompts, PreviewFormat};
use claude_wire::{Json, Map};

use super::node::{Entry, Node, Value, Wrong};

/// A converted value, or its problems.
pub(super) type Taken<T> = Result<T, Vec<Wrong>>;

/// A type that can be read from a config file.
pub(super) trait Take: Sized {
    /// A description of the expected value.
    const EXPECTED: &'static str;

    /// Parses the text of a variable. Types with the same format share the function.
    const FROM_VARIABLE: fn(&str) -> Node = text_node;

    fn take(node: &Node) -> Taken<Self>;
}

/// Returns the text of a variable as a string.
pub(super) fn text_node(text: &str) -> Node {
    Node::unplaced(Value::Text(text.to_owned()))
}

/// Returns the problem of a value of another type.
pub(super) fn mismatch(node: &Node, expected: &str) -> Vec<Wrong> {
    node.wrong(&format!("expected {expected}, found {}", node.kind()))
}

/// Returns the text of a string.
pub(super) fn text<'a>(node: &'a Node, expected: &str) -> Taken<&'a str> {
    match &node.value {
        Value::Text(text) => Ok(text),
        _ => Err(mismatch(node, expected)),
    }
}

/// Returns the values of a list.
pub(super) fn items<'a>(node: &'a Node, expected: &str) -> Taken<&'a [Node]> {
    match &node.value {
        Value::List(entries) => Ok(entries),
        _ => Err(mismatch(node, expected)),
    }
}

/// Returns the entries of a table.
pub(super) fn table<'a>(node: &'a Node, expected: &str) -> Taken<&'a [Entry]> {
    match &node.value {
        Value::Table(entries) => Ok(entries),
        _ => Err(mismatch(node, expected)),
    }
}

/// Takes each of several values, or returns the problems of all.
pub(super) fn each<'a, T>(entries: &'a [T], take: &mut dyn FnMut(&'a T) -> Taken<()>) -> Taken<()> {
    let mut wrong = Vec::new();
    for entry in entries {
        if let Err(more) = take(entry) {
            wrong.extend(more);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Reads a list of values of one type.
pub(super) fn values<T: Take>(node: &Node, expected: &str) -> Taken<Vec<T>> {
    let mut values = Vec::new();
    each(items(node, expected)?, &mut |entry| {
        values.push(T::take(entry)?);
        Ok(())
    })?;
    Ok(values)
}

/// Returns the text of a variable as a list of strings.
pub(super) fn names_node(text: &str) -> Node {
    let mut entries = Vec::new();
    for part in split(text) {
        entries.push(text_node(part));
    }
    Node::unplaced(Value::List(entries))
}

/// Returns the text of a variable as a list of paths.
fn paths_node(text: &str) -> Node {
    let mut entries = Vec::new();
    for path in std::env::split_paths(text) {
        if !path.as_os_str().is_empty() {
            entries.push(text_node(&path.to_string_lossy()));
        }
    }
    Node::unplaced(Value::List(entries))
}

/// Splits at commas, except inside the parentheses of a rule.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    // The last part ends like one before a comma.
    for (at, letter) in text.bytes().chain([b',']).enumerate() {
        match letter {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if at == text.len() || (letter == b',' && depth == 0) {
            let part = text[start..at].trim();
            if !part.is_empty() {
                parts.push(part);
            }
            start = at + 1;
        }
    }
    parts
}

/// Implements `Take` for types that are read from a string.
macro_rules! of_text {
    ($($type:ty: $what:literal),+ $(,)?) => {$(
        impl Take for $type {
            const EXPECTED: &'static str = $what;

            fn take(node: &Node) -> Taken<Self> {
                text(node, Self::EXPECTED).map(Self::from)
            }
        }
    )+};
}

of_text! {
    String: "a string",
    Secret: "a string",
    PathBuf: "a path",
    SessionId: "an ID",
    MessageId: "an ID",
    PermissionMode: "a permission mode",
    Effort: "an effort",
    PermissionPrompts: "`host` or `none`",
    PreviewFormat: "`markdown` or `html`",
}

/// Implements `Take` for integers.
macro_rules! of_whole {
    ($($type:ty),+) => {$(
        impl Take for $type {
            const EXPECTED: &'static str = "an integer";
            const FROM_VARIABLE: fn(&str) -> Node = whole_node;

            fn take(node: &Node) -> Taken<Self> {
                match node.value {
                    Value::Whole(number) => Self::try_from(number)
                        .map_err(|_| node.wrong("the number is negative or too large")),
                    _ => Err(mismatch(node, Self::EXPECTED)),
                }
            }
        }
    )+};
}

of_whole!(u32, u64, usize);

fn whole_node(text: &str) -> Node {
    match text.trim().parse() {
        Ok(number) => Node::unplaced(Value::Whole(number)),
        Err(_) => text_node(text),
    }
}

impl Take for f64 {
    const EXPECTED: &'static str = "a number";
    const FROM_VARIABLE: fn(&str) -> Node = number_node;

    fn take(node: &Node) -> Taken<Self> {
        match node.value {
            Value::Number(number) => Ok(number),
            #[expect(clippy::cast_precision_loss, reason = "amounts of money are small")]
            Value::Whole(number) => Ok(number as Self),
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

fn number_node(text: &str) -> Node {
    match text.trim().parse() {
        Ok(number) => Node::unplaced(Value::Number(number)),
        Err(_) => text_node(text),
    }
}

impl Take for bool {
    const EXPECTED: &'static str = "a Boolean";
    const FROM_VARIABLE: fn(&str) -> Node = flag_node;

    fn take(node: &Node) -> Taken<Self> {
        match node.value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

fn flag_node(text: &str) -> Node {
    let is = |words: [&str; 4]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    if is(["1", "true", "yes", "on"]) {
        Node::unplaced(Value::Flag(true))
    } else if is(["0", "false", "no", "off"]) {
        Node::unplaced(Value::Flag(false))
    } else {
        text_node(text)
    }
}

impl Take for Duration {
    const EXPECTED: &'static str = "a duration such as `500ms`, `30s`, `10min` or `2h`";

    fn take(node: &Node) -> Taken<Self> {
        match duration(text(node, Self::EXPECTED)?.trim()) {
            Some(duration) => Ok(duration),
            None => Err(node.wrong(&format!("expected {}", Self::EXPECTED))),
        }
    }
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit())?);
    let number: u64 = number.parse().ok()?;
    match unit.trim_start() {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "min" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(60 * 60).map(Duration::from_secs),
        _ => None,
    }
}

impl<T: Take> Take for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const FROM_VARIABLE: fn(&str) -> Node = T::FROM_VARIABLE;

    fn take(node: &Node) -> Taken<Self> {
        T::take(node).map(Some)
    }
}

impl<T: Take> Take for Box<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn take(node: &Node) -> Taken<Self> {
        T::take(node).map(Self::new)
    }
}

impl Take for Vec<String> {
    const EXPECTED: &'static str = "a list of strings";
    const FROM_VARIABLE: fn(&str) -> Node = names_node;

    fn take(node: &Node) -> Taken<Self> {
        values(node, Self::EXPECTED)
    }
}

impl Take for Vec<Secret> {
    const EXPECTED: &'static str = Vec::<String>::EXPECTED;
    const FROM_VARIABLE: fn(&str) -> Node = names_node;

    fn take(node: &Node) -> Taken<Self> {
        values(node, Self::EXPECTED)
    }
}

impl Take for Vec<PathBuf> {
    const EXPECTED: &'static str = "a list of paths";
    const FROM_VARIABLE: fn(&str) -> Node = paths_node;

    fn take(node: &Node) -> Taken<Self> {
        values(node, Self::EXPECTED)
    }
}

impl<T: Take> Take for Map<T> {
    const EXPECTED: &'static str = "a table of strings";

    fn take(node: &Node) -> Taken<Self> {
        let mut map = Self::new();
        each(table(node, Self::EXPECTED)?, &mut |entry| {
            map.insert(entry.name.as_str(), T::take(&entry.node)?);
            Ok(())
        })?;
        Ok(map)
    }
}

impl Take for Json {
    const EXPECTED: &'static str = "a table";

    fn take(node: &Node) -> Taken<Self> {
        match node.value {
            Value::Table(_) => Ok(node.json()?.into()),
            _ => Err(mismatch(node, Self::EXPECTED)),
        }
    }
}

impl Take for ManagedSettings {
    const EXPECTED: &'static str = Json::EXPECTED;

    fn take(node: &Node) -> Taken<Self> {
        Json::take(node).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, expected) in [
            ("500ms", Some(Duration::from_millis(500))),
            ("30s", Some(Duration::from_secs(30))),
            ("2 min", Some(Duration::from_secs(120))),
            ("1h", Some(Duration::from_secs(3600))),
            ("30", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("1d", None),
            ("", None),
            ("99999999999999999999s", None),
            ("9999999999999999999h", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn a_comma_inside_a_rule_does_not_separate() {
        let rules = split("Read, Bash(git log, all:*),,WebFetch(domain:a,b)");
        assert_eq!(rules, ["Read", "Bash(git log, all:*)", "WebFetch(domain:a,b)"]);
        assert_eq!(split(" , "), [""; 0]);
    }
}
