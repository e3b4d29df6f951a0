//! Brings the results of the SDKs into one form, and compares them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use claude_wire::transcript::parse_timestamp;
use serde_json::{Value, json};

use crate::jobs::Job;
use crate::subjects::Subject;

/// The members of a session or a message that are compared.
const MEMBERS: &[&str] = &[
    "sessionId",
    "summary",
    "lastModified",
    "fileSize",
    "customTitle",
    "firstPrompt",
    "gitBranch",
    "cwd",
    "tag",
    "createdAt",
    "archived",
    "type",
    "uuid",
    "session_id",
    "message",
    "timestamp",
    "parent_tool_use_id",
    "parent_agent_id",
    "isQueuedCommand",
    "isCompletedLocalCommand",
];

/// Members that the Python SDK does not have.
const NOT_IN_PYTHON: &[&str] =
    &["archived", "timestamp", "isQueuedCommand", "isCompletedLocalCommand"];

/// Returns the result of a job in a form that can be compared. Times after `start` are those of
/// changes, and differ.
pub(crate) fn normalized(
    job: &Job,
    result: &Value,
    other: Subject,
    start: SystemTime,
) -> Value {
    let start = start.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let start = i64::try_from(start).unwrap();
    let Some(value) = result.get("ok") else { return json!("an error") };
    match job.call {
        "rename" | "tag" => json!(transcript(job, &job.session)),
        "fork" => fork(job, value.as_str().unwrap(), start),
        _ => {
            let mut value = value.clone();
            for item in items(&mut value) {
                members(item, other, start);
            }
            value
        }
    }
}

fn items(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().collect(),
        other => vec![other],
    }
}

fn members(item: &mut Value, other: Subject, start: i64) {
    let Some(object) = item.as_object_mut() else { return };
    object.retain(|name, value| {
        let is_compared = other != Subject::Python || !NOT_IN_PYTHON.contains(&name.as_str());
        is_compared && MEMBERS.contains(&name.as_str()) && !value.is_null()
    });
    if object.get("lastModified").and_then(Value::as_f64).is_some_and(|time| time >= start as f64) {
        object.insert("lastModified".to_owned(), json!("now"));
    }
}

/// Returns the lines of a transcript, as text.
fn transcript(job: &Job, session: &str) -> Vec<String> {
    let bytes = fs::read(path(&job.config, session)).unwrap();
    bytes.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into()).collect()
}

/// Returns the path of a transcript, in whatever project.
pub(crate) fn path(config: &Path, session: &str) -> PathBuf {
    let folders = fs::read_dir(config.join("projects")).unwrap();
    let mut paths = folders.map(|folder| folder.unwrap().path().join(format!("{session}.jsonl")));
    paths.find(|path| path.is_file()).unwrap()
}

/// Returns the lines of a fork with every new ID replaced by that of the entry it was copied from.
fn fork(job: &Job, id: &str, start: i64) -> Value {
    let lines: Vec<Value> = transcript(job, id)
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut names = BTreeMap::from([(id.to_owned(), "the fork".to_owned())]);
    for line in &lines {
        if let (Some(new), Some(old)) =
            (line["uuid"].as_str(), line["forkedFrom"]["messageUuid"].as_str())
        {
            names.insert(new.to_owned(), format!("copy of {old}"));
        }
    }
    let lines = lines.into_iter().map(|mut line| {
        if line.get("forkedFrom").is_none() && line.get("uuid").is_some() {
            line["uuid"] = json!("new");
        }
        rename(&mut line, &names, start);
        line
    });
    lines.collect()
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>, start: i64) {
    match value {
        Value::String(text) => {
            if let Some(name) = names.get(text) {
                text.clone_from(name);
            } else if parse_timestamp(text).is_some_and(|time| time >= start) {
                "now".clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names, start)),
        Value::Object(members) => members.values_mut().for_each(|item| rename(item, names, start)),
        _ => {}
    }
}

/// Returns where two values differ first: the path, and both values there.
pub(crate) fn difference(one: &Value, other: &Value) -> Option<(String, Value, Value)> {
    match (one, other) {
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            let pairs = ones.iter().zip(others).enumerate();
            let mut found = pairs.filter_map(|(at, (one, other))| {
                let (path, one, other) = difference(one, other)?;
                Some((format!("[{at}]{path}"), one, other))
            });
            found.next()
        }
        (Value::Object(ones), Value::Object(others)) => {
            let mut names: Vec<&String> = ones.keys().chain(others.keys()).collect();
            names.sort();
            names.dedup();
            names.into_iter().find_map(|name| {
                let get = |object: &serde_json::Map<String, Value>| {
                    object.get(name).cloned().unwrap_or(json!("(absent)"))
                };
                let (path, one, other) = difference(&get(ones), &get(others))?;
                Some((format!(".{name}{path}"), one, other))
            })
        }
        _ if numbers_equal(one, other) => None,
        _ => (one != other).then(|| (String::new(), one.clone(), other.clone())),
    }
}

/// JavaScript writes `1.0` as `1`.
fn numbers_equal(one: &Value, other: &Value) -> bool {
    one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}
