//! Compares the lines of the client with the recorded ones.

use serde_json::Value;

use super::id_map::IdMap;

/// Returns the kind of a line, which is all that a lenient player compares.
///
/// Lines that are not JSON share one kind. The kind of a response includes its request id.
pub(super) fn kind(line: &[u8]) -> String {
    let Ok(line) = serde_json::from_slice::<Value>(line) else { return String::new() };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match line["type"].as_str().unwrap_or_default() {
        "control_request" => format!("control_request/{}", text(&line["request"]["subtype"])),
        "control_response" => {
            format!("control_response to {}", text(&line["response"]["request_id"]))
        }
        "control_cancel_request" => "control_cancel_request".to_owned(),
        other => format!("{other}/{}", text(&line["subtype"])),
    }
}

/// Returns the id of a control request.
pub(super) fn request_id(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    (line["type"] == "control_request").then(|| line["request_id"].as_str().map(str::to_owned))?
}

/// Returns the id of the request that a line responds to.
pub(super) fn responds_to(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let id = &line["response"]["request_id"];
    (line["type"] == "control_response").then(|| id.as_str().map(str::to_owned))?
}

/// Binds the ids of two lines.
pub(super) fn bind(recorded: &[u8], sent: &[u8], ids: &mut IdMap) {
    if let (Ok(recorded), Ok(sent)) =
        (serde_json::from_slice::<Value>(recorded), serde_json::from_slice::<Value>(sent))
    {
        let line_type = recorded["type"].as_str().unwrap_or_default();
        bind_values("", line_type, &recorded, &sent, ids);
    }
}

/// Compares two lines whose ids have been bound.
///
/// # Errors
///
/// Returns a description of the first difference if both lines are JSON, and `None` otherwise.
pub(super) fn same(recorded: &[u8], sent: &[u8], ids: &IdMap) -> Result<(), Option<String>> {
    let (Ok(left), Ok(right)) =
        (serde_json::from_slice::<Value>(recorded), serde_json::from_slice::<Value>(sent))
    else {
        let same = recorded.trim_ascii_end() == sent.trim_ascii_end();
        return if same { Ok(()) } else { Err(None) };
    };
    let line_type = left["type"].as_str().unwrap_or_default();
    let comparison = Comparison { ids, line_type };
    comparison.values("", &left, &right).map_err(|difference| Some(difference.to_string()))
}

fn bind_values(key: &str, line_type: &str, recorded: &Value, sent: &Value, ids: &mut IdMap) {
    match (recorded, sent) {
        (Value::String(recorded), Value::String(sent)) => ids.bind(key, line_type, recorded, sent),
        (Value::Array(recorded), Value::Array(sent)) => {
            for (recorded, sent) in recorded.iter().zip(sent) {
                bind_values(key, line_type, recorded, sent, ids);
            }
        }
        (Value::Object(recorded), Value::Object(sent)) => {
            for (key, recorded) in recorded {
                if let Some(sent) = sent.get(key) {
                    bind_values(key, line_type, recorded, sent, ids);
                }
            }
        }
        _ => {}
    }
}

struct Comparison<'a> {
    ids: &'a IdMap,
    line_type: &'a str,
}

struct Difference {
    /// The keys that lead to the difference, innermost first.
    path: Vec<String>,
    description: String,
}

impl Comparison<'_> {
    fn values(&self, key: &str, recorded: &Value, sent: &Value) -> Result<(), Difference> {
        match (recorded, sent) {
            (Value::Object(recorded), Value::Object(sent)) => self.objects(recorded, sent),
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                left.iter().zip(right).enumerate().try_for_each(|(index, (left, right))| {
                    self.values(key, left, right).map_err(|inner| inner.below(index.to_string()))
                })
            }
            (Value::String(recorded), Value::String(sent)) => {
                let recorded = self.ids.map_text(key, self.line_type, recorded);
                if recorded == sent.as_str() {
                    return Ok(());
                }
                Err(Difference::between(&Value::from(recorded), &Value::from(sent.as_str())))
            }
            _ if recorded == sent || same_number(recorded, sent) => Ok(()),
            _ => Err(Difference::between(recorded, sent)),
        }
    }

    fn objects(
        &self,
        recorded: &serde_json::Map<String, Value>,
        sent: &serde_json::Map<String, Value>,
    ) -> Result<(), Difference> {
        // A line of another type differs in most fields; the type is the clearest difference.
        let kind = recorded.get_key_value("type");
        for (key, value) in kind.into_iter().chain(recorded) {
            let sent = sent.get(key).ok_or_else(|| Difference::new("is missing").below(key));
            self.values(key, value, sent?).map_err(|inner| inner.below(key))?;
        }
        match sent.keys().find(|key| !recorded.contains_key(*key)) {
            Some(key) => Err(Difference::new("was not recorded").below(key)),
            None => Ok(()),
        }
    }
}

/// Returns whether two numbers are equal, such as `1` and `1.0`. Two integers are never compared as
/// floats, which would round them.
fn same_number(left: &Value, right: &Value) -> bool {
    (left.is_f64() || right.is_f64()) && left.is_number() && left.as_f64() == right.as_f64()
}

impl Difference {
    fn new(description: impl Into<String>) -> Self {
        Self { path: Vec::new(), description: description.into() }
    }

    fn between(recorded: &Value, sent: &Value) -> Self {
        Self::new(format!("should be {}, is {}", short(recorded), short(sent)))
    }

    fn below(mut self, key: impl Into<String>) -> Self {
        self.path.push(key.into());
        self
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`")?;
        for key in self.path.iter().rev() {
            write!(f, "/{key}")?;
        }
        write!(f, "` {}", self.description)
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
        None => format!("`{text}`"),
    }
}
