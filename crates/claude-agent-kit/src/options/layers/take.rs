//! Converts a value of a config file, or the text of a variable, to the type of an option.

use std::path::PathBuf;
use std::time::Duration;

use claude_wire::control::PermissionMode;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::launch::{Effort, Secret};
use claude_wire::settings::{ManagedSettings, PermissionPrompts, PreviewFormat};
use claude_wire::{Json, Map};

use super::node::{Node, Value, Wrong};

/// A converted value, or its problems.
pub(super) type Taken<T> = Result<T, Vec<Wrong>>;

/// A type that can be read from a config file.
pub(super) trait Take: Sized {
    /// A description of the expected value.
    const EXPECTED: &'static str;

    fn take(node: &Node) -> Taken<Self>;

    /// Parses the text of a variable.
    fn from_variable(text: &str) -> Node {
        Node::unplaced(Value::Text(text.to_owned()))
    }
}

/// Returns the problem of a value of another type.
pub(super) fn type_mismatch<T: Take>(node: &Node) -> Vec<Wrong> {
    mismatch(node, T::EXPECTED)
}

fn mismatch(node: &Node, expected: &str) -> Vec<Wrong> {
    vec![Wrong::new(node.at, format!("expected {expected}, found {}", node.kind()))]
}

/// Returns all values, or the problems of all.
pub(super) fn all<T>(taken: impl IntoIterator<Item = Taken<T>>) -> Taken<Vec<T>> {
    let (mut values, mut wrong) = (Vec::new(), Vec::new());
    for taken in taken {
        match taken {
            Ok(value) => values.push(value),
            Err(more) => wrong.extend(more),
        }
    }
    if wrong.is_empty() { Ok(values) } else { Err(wrong) }
}

/// Splits at commas, except inside the parentheses of a rule.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Implements `Take` for types that are read from a string.
macro_rules! of_text {
    ($($type:ty: $what:literal),+ $(,)?) => {$(
        impl Take for $type {
            const EXPECTED: &'static str = $what;

            fn take(node: &Node) -> Taken<Self> {
                match &node.value {
                    Value::Text(text) => Ok(Self::from(text.clone())),
                    _ => Err(type_mismatch::<Self>(node)),
                }
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

            fn take(node: &Node) -> Taken<Self> {
                let Value::Whole(number) = node.value else { return Err(type_mismatch::<Self>(node)) };
                Self::try_from(number)
                    .map_err(|_| vec![Wrong::new(node.at, "the number is negative or too large")])
            }

            fn from_variable(text: &str) -> Node {
                let number = text.trim().parse().map(Value::Whole);
                Node::unplaced(number.unwrap_or_else(|_| Value::Text(text.to_owned())))
            }
        }
    )+};
}

of_whole!(u32, u64, usize);

impl Take for f64 {
    const EXPECTED: &'static str = "a number";

    fn take(node: &Node) -> Taken<Self> {
        match node.value {
            Value::Number(number) => Ok(number),
            #[expect(clippy::cast_precision_loss, reason = "amounts of money are small")]
            Value::Whole(number) => Ok(number as Self),
            _ => Err(type_mismatch::<Self>(node)),
        }
    }

    fn from_variable(text: &str) -> Node {
        let number = text.trim().parse().map(Value::Number);
        Node::unplaced(number.unwrap_or_else(|_| Value::Text(text.to_owned())))
    }
}

impl Take for bool {
    const EXPECTED: &'static str = "a Boolean";

    fn take(node: &Node) -> Taken<Self> {
        match node.value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(type_mismatch::<Self>(node)),
        }
    }

    fn from_variable(text: &str) -> Node {
        let is = |words: [&str; 4]| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word));
        Node::unplaced(if is(["1", "true", "yes", "on"]) {
            Value::Flag(true)
        } else if is(["0", "false", "no", "off"]) {
            Value::Flag(false)
        } else {
            Value::Text(text.to_owned())
        })
    }
}

impl Take for Duration {
    const EXPECTED: &'static str = "a duration such as `500ms`, `30s`, `10min` or `2h`";

    fn take(node: &Node) -> Taken<Self> {
        let Value::Text(text) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        duration(text.trim())
            .ok_or_else(|| vec![Wrong::new(node.at, format!("expected {}", Self::EXPECTED))])
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

    fn take(node: &Node) -> Taken<Self> {
        T::take(node).map(Some)
    }

    fn from_variable(text: &str) -> Node {
        T::from_variable(text)
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

    fn take(node: &Node) -> Taken<Self> {
        let Value::List(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        all(entries.iter().map(String::take))
    }

    fn from_variable(text: &str) -> Node {
        let entries = split(text).into_iter().map(|entry| Node::unplaced(Value::Text(entry)));
        Node::unplaced(Value::List(entries.collect()))
    }
}

impl Take for Vec<Secret> {
    const EXPECTED: &'static str = Vec::<String>::EXPECTED;

    fn take(node: &Node) -> Taken<Self> {
        Vec::<String>::take(node).map(|texts| texts.into_iter().map(Secret::from).collect())
    }

    fn from_variable(text: &str) -> Node {
        Vec::<String>::from_variable(text)
    }
}

impl Take for Vec<PathBuf> {
    const EXPECTED: &'static str = "a list of paths";

    fn take(node: &Node) -> Taken<Self> {
        let Value::List(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        all(entries.iter().map(PathBuf::take))
    }

    fn from_variable(text: &str) -> Node {
        let paths = std::env::split_paths(text).map(|path| path.to_string_lossy().into_owned());
        let paths = paths.filter(|path| !path.is_empty());
        Node::unplaced(Value::List(paths.map(|path| Node::unplaced(Value::Text(path))).collect()))
    }
}

impl<T: Take> Take for Map<T> {
    const EXPECTED: &'static str = "a table of strings";

    fn take(node: &Node) -> Taken<Self> {
        let Value::Table(entries) = &node.value else { return Err(type_mismatch::<Self>(node)) };
        let taken = entries.iter().map(|entry| Ok((entry.name.clone(), T::take(&entry.node)?)));
        Ok(all(taken)?.into())
    }
}

impl Take for Json {
    const EXPECTED: &'static str = "a table";

    fn take(node: &Node) -> Taken<Self> {
        match node.value {
            Value::Table(_) => Ok(node.json().map_err(|wrong| vec![wrong])?.into()),
            _ => Err(type_mismatch::<Self>(node)),
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
