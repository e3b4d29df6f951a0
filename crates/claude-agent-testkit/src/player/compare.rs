//! Whether the client says what was recorded.

use serde_json::Value;

use super::ids::Ids;

/// What a line is about, for a player that looks at nothing else.
///
/// A line that is no JSON has a kind of its own. An answer is known by what it answers.
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

/// The id of a control request.
pub(super) fn request_id(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    (line["type"] == "control_request").then(|| line["request_id"].as_str().map(str::to_owned))?
}

/// The id of the request that a line responds to.
pub(super) fn responds_to(line: &[u8]) -> Option<String> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let id = &line["response"]["request_id"];
    (line["type"] == "control_response").then(|| id.as_str().map(str::to_owned))?
}

/// Ties the ids of two lines.
pub(super) fn tie(recorded: &[u8], said: &[u8], ids: &mut Ids) {
    if let (Ok(recorded), Ok(said)) =
        (serde_json::from_slice::<Value>(recorded), serde_json::from_slice::<Value>(said))
    {
        let line_type = recorded["type"].as_str().unwrap_or_default();
        tie_values("", line_type, &recorded, &said, ids);
    }
}

/// Where two lines differ after their ids were tied.
///
/// # Errors
///
/// The place and the difference, if both are JSON.
pub(super) fn same(recorded: &[u8], said: &[u8], ids: &Ids) -> Result<(), Option<String>> {
    let (Ok(left), Ok(right)) =
        (serde_json::from_slice::<Value>(recorded), serde_json::from_slice::<Value>(said))
    else {
        let same = recorded.trim_ascii_end() == said.trim_ascii_end();
        return if same { Ok(()) } else { Err(None) };
    };
    let line_type = left["type"].as_str().unwrap_or_default();
    let comparison = Comparison { ids, line_type };
    comparison.values("", &left, &right).map_err(|difference| Some(difference.to_string()))
}

fn tie_values(key: &str, line_type: &str, recorded: &Value, said: &Value, ids: &mut Ids) {
    match (recorded, said) {
        (Value::String(recorded), Value::String(said)) => ids.tie(key, line_type, recorded, said),
        (Value::Array(recorded), Value::Array(said)) => {
            for (recorded, said) in recorded.iter().zip(said) {
                tie_values(key, line_type, recorded, said, ids);
            }
        }
        (Value::Object(recorded), Value::Object(said)) => {
            for (key, recorded) in recorded {
                if let Some(said) = said.get(key) {
                    tie_values(key, line_type, recorded, said, ids);
                }
            }
        }
        _ => {}
    }
}

struct Comparison<'a> {
    ids: &'a Ids,
    line_type: &'a str,
}

struct Difference {
    /// The keys to the place, the innermost first.
    path: Vec<String>,
    what: String,
}

impl Comparison<'_> {
    fn values(&self, key: &str, recorded: &Value, said: &Value) -> Result<(), Difference> {
        match (recorded, said) {
            (Value::Object(recorded), Value::Object(said)) => self.objects(recorded, said),
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                left.iter().zip(right).enumerate().try_for_each(|(index, (left, right))| {
                    self.values(key, left, right).map_err(|inner| inner.below(index.to_string()))
                })
            }
            (Value::String(recorded), Value::String(said)) => {
                let recorded = self.ids.text(key, self.line_type, recorded);
                if recorded == said.as_str() {
                    return Ok(());
                }
                Err(Difference::between(&Value::from(recorded), &Value::from(said.as_str())))
            }
            _ if recorded == said || same_number(recorded, said) => Ok(()),
            _ => Err(Difference::between(recorded, said)),
        }
    }

    fn objects(
        &self,
        recorded: &serde_json::Map<String, Value>,
        said: &serde_json::Map<String, Value>,
    ) -> Result<(), Difference> {
        // A line of another type differs in most fields; its type says it best.
        let kind = recorded.get_key_value("type");
        for (key, value) in kind.into_iter().chain(recorded) {
            let said = said.get(key).ok_or_else(|| Difference::new("is missing").below(key));
            self.values(key, value, said?).map_err(|inner| inner.below(key))?;
        }
        match said.keys().find(|key| !recorded.contains_key(*key)) {
            Some(key) => Err(Difference::new("was not recorded").below(key)),
            None => Ok(()),
        }
    }
}

/// `1` and `1.0` are one number. Integers are not compared as floats, which would round them.
fn same_number(left: &Value, right: &Value) -> bool {
    (left.is_f64() || right.is_f64()) && left.is_number() && left.as_f64() == right.as_f64()
}

impl Difference {
    fn new(what: impl Into<String>) -> Self {
        Self { path: Vec::new(), what: what.into() }
    }

    fn between(recorded: &Value, said: &Value) -> Self {
        Self::new(format!("should be {}, is {}", short(recorded), short(said)))
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
        write!(f, "` {}", self.what)
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
        None => format!("`{text}`"),
    }
}
