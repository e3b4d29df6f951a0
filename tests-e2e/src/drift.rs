//! Compares the shape of a new recording with the stored one.
//!
//! The shape of a kind of message is the set of its JSON paths with the types of their values. IDs, times and texts
//! differ in every run and are ignored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use claude_agent_testkit::recording::{EntryKind, Recording};
use serde_json::Value;

/// The shapes of everything that a CLI wrote, by kind of message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shapes {
    /// Kind of message, then JSON path and type, then a scenario that contains it.
    kinds: BTreeMap<String, BTreeMap<String, String>>,
}

/// One difference between two sets of shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Whether it was added; otherwise it was removed.
    pub appeared: bool,
    /// The kind of message, such as `type/subtype`.
    pub kind: String,
    /// The path and type; `None` for the whole kind.
    pub path: Option<String>,
    /// A scenario that contains it.
    pub scenario: String,
}

impl Shapes {
    /// Adds what the CLI wrote in this recording.
    pub fn add(&mut self, recording: &Recording) {
        for (kind, found) in lines_by_kind(recording) {
            let paths = self.kinds.entry(kind).or_default();
            for path in found {
                paths.entry(path).or_insert_with(|| recording.header.scenario.clone());
            }
        }
    }

    /// Returns what was added and removed in `newer`.
    pub fn differences(&self, newer: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        one_way(self, newer, true, &mut differences);
        one_way(newer, self, false, &mut differences);
        differences.sort_by(|a, b| (&a.kind, &a.path).cmp(&(&b.kind, &b.path)));
        differences
    }
}

/// Returns the kind of each line of the CLI, with its paths and the types of their values.
pub(crate) fn lines_by_kind(recording: &Recording) -> Vec<(String, BTreeSet<String>)> {
    let mut asked = HashMap::new();
    let mut lines = Vec::new();
    for entry in &recording.entries {
        match &entry.kind {
            EntryKind::Sent(line) => note_request(line, &mut asked),
            EntryKind::Received(line) => {
                if let Ok(message) = serde_json::from_slice(line) {
                    let mut found = BTreeSet::new();
                    collect(&message, "", &mut found);
                    lines.push((kind(&message, &asked), found));
                }
            }
            _ => {}
        }
    }
    lines
}

fn one_way(without: &Shapes, with: &Shapes, appeared: bool, differences: &mut Vec<Difference>) {
    for (kind, paths) in &with.kinds {
        let mut differ = |path: Option<&String>, scenario: &String| {
            let (kind, path, scenario) = (kind.clone(), path.cloned(), scenario.clone());
            differences.push(Difference { appeared, kind, path, scenario });
        };
        match without.kinds.get(kind) {
            None => paths.values().take(1).for_each(|scenario| differ(None, scenario)),
            Some(known) => {
                for (path, scenario) in paths.iter().filter(|(path, _)| !known.contains_key(*path))
                {
                    differ(Some(path), scenario);
                }
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.appeared { '+' } else { '-' };
        let path = self.path.as_deref().unwrap_or("(the whole message)");
        write!(f, "{sign} {} {path}  [{}]", self.kind, self.scenario)
    }
}

/// Remembers the operation of a request ID, to name the response after it.
fn note_request(line: &[u8], asked: &mut HashMap<String, String>) {
    let Ok(frame) = serde_json::from_slice::<Value>(line) else { return };
    if let (Some(id), Some(subtype)) =
        (frame["request_id"].as_str(), frame["request"]["subtype"].as_str())
    {
        asked.insert(id.to_owned(), subtype.to_owned());
    }
}

fn kind(message: &Value, asked: &HashMap<String, String>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let name = text(&message["type"]);
    let detail = match name.as_str() {
        "control_request" => {
            let request = &message["request"];
            let event = request["input"]["hook_event_name"].as_str();
            let event = event.map(|event| format!("/{event}")).unwrap_or_default();
            Some(text(&request["subtype"]) + &event)
        }
        "control_response" => {
            let response = &message["response"];
            let id = response["request_id"].as_str().unwrap_or_default();
            let operation = asked.get(id).map_or("?", String::as_str);
            Some(format!("{operation}/{}", text(&response["subtype"])))
        }
        "stream_event" => Some(text(&message["event"]["type"])),
        _ => message["subtype"].as_str().map(str::to_owned),
    };
    detail.map_or_else(|| name.clone(), |detail| format!("{name}/{detail}"))
}

/// Collects `path: type` of everything below a value.
fn collect(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !path.is_empty() {
        found.insert(format!("{path}: {name}"));
    }
    match value {
        Value::Array(elements) => {
            for element in elements {
                // Elements of different types have different fields.
                let tag = element["type"].as_str().unwrap_or_default();
                collect(element, &format!("{path}[{tag}]"), found);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                collect(field, &format!("{path}.{}", general(key)), found);
            }
        }
        _ => {}
    }
}

/// Replaces keys that are model names, IDs or paths with `*`.
fn general(key: &str) -> &str {
    let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if is_name { key } else { "*" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(lines: &[&str]) -> Shapes {
        let file = format!("## {{\"format\":1,\"scenario\":\"s\"}}\n{}\n", lines.join("\n"));
        let mut shapes = Shapes::default();
        shapes.add(&Recording::parse(file.as_bytes()).unwrap());
        shapes
    }

    #[track_caller]
    fn check(old: &[&str], new: &[&str], expected: &[&str]) {
        let differences = shapes(old).differences(&shapes(new));
        let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn values_ids_and_model_names_are_ignored() {
        check(
            &[
                r#"<< 0.1 {"type":"result","subtype":"success","uuid":"a","ms":1,"m":{"model-1":{"n":1}}}"#,
            ],
            &[
                r#"<< 0.2 {"ms":2.5,"uuid":"b","type":"result","subtype":"success","m":{"model-2":{"n":9}}}"#,
            ],
            &[],
        );
    }

    #[test]
    fn added_and_removed_fields_types_and_kinds_are_listed() {
        check(
            &[
                r#"<< 0.1 {"type":"user","a":1,"list":[{"type":"text","text":""}]}"#,
                r#"<< 0.1 {"type":"old"}"#,
            ],
            &[r#"<< 0.1 {"type":"user","a":"1","list":[{"type":"text","text":"","b":null}]}"#],
            &[
                "- old (the whole message)  [s]",
                "- user .a: number  [s]",
                "+ user .a: string  [s]",
                "+ user .list[text].b: null  [s]",
            ],
        );
    }

    #[test]
    fn responses_are_named_after_their_requests() {
        let ask = r#">> 0.1 {"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}"#;
        let answer = r#"<< 0.2 {"type":"control_response","response":{"subtype":"success","request_id":"r"}}"#;
        check(
            &[ask],
            &[ask, answer],
            &["+ control_response/interrupt/success (the whole message)  [s]"],
        );
    }
}
