//! Brings the results of the SDKs into one form, and compares them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use claude_wire::transcript::{is_uuid, parse_timestamp, project_folder_name};
use serde_json::{Map, Value, json};

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
    results: &[Value],
    at: usize,
    other: Subject,
    start: SystemTime,
) -> Value {
    let result = &results[at];
    let start = start.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let start = i64::try_from(start).unwrap();
    let Some(value) = result.get("ok") else { return json!("an error") };
    match job.call {
        "rename" | "tag" => transcripts(job),
        "archive" | "unarchive" => json!(sidecars(job, start)),
        "delete" => names(job, start),
        "fork" => {
            let earlier = job.again.and_then(|again| results[at - again]["ok"].as_str());
            let mut lines = fork(job, earlier, value.as_str().unwrap(), start);
            if other == Subject::Python {
                for line in items(&mut lines) {
                    // Python always writes the one and does not know the other.
                    line.as_object_mut().unwrap().retain(|name, value| {
                        name != "requestSessionId"
                            && (name != "logicalParentUuid" || !value.is_null())
                    });
                }
            }
            lines
        }
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
    // JavaScript counts fractions of milliseconds.
    let modified = object.get("lastModified").map(Value::to_string).unwrap_or_default();
    let whole = modified.split('.').next().and_then(|millis| millis.parse().ok());
    if whole.is_some_and(|millis: i64| millis >= start) {
        object.insert("lastModified".to_owned(), json!("now"));
    }
}

/// Returns the transcripts of a session, line by line.
fn transcripts(job: &Job) -> Value {
    let all = paths(&job.config, &job.session).into_iter();
    all.map(|path| (name(job, &path), json!(lines(&path)))).collect()
}

/// Returns the files and folders beside the transcripts of a session, with their contents.
fn sidecars(job: &Job, start: i64) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let folders = fs::read_dir(job.config.join("projects")).unwrap();
    let mut open: Vec<PathBuf> =
        folders.map(|folder| folder.unwrap().path().join(&job.session)).collect();
    while let Some(path) = open.pop() {
        if let Ok(entries) = fs::read_dir(&path) {
            found.insert(name(job, &path), json!("a directory"));
            open.extend(entries.map(|entry| entry.unwrap().path()));
        } else if let Ok(bytes) = fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let mut value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
            rename(&mut value, &BTreeMap::new(), start);
            found.insert(name(job, &path), value);
        }
    }
    found
}

/// Returns the names of all files of a session that every SDK writes.
fn names(job: &Job, start: i64) -> Value {
    let sidecars = sidecars(job, start).into_keys().filter(|name| !name.ends_with("archived.json"));
    let transcripts = paths(&job.config, &job.session);
    transcripts.iter().map(|path| name(job, path)).chain(sidecars).collect()
}

fn name(job: &Job, path: &Path) -> String {
    path.strip_prefix(&job.config).unwrap().to_str().unwrap().to_owned()
}

fn lines(transcript: &Path) -> Vec<String> {
    let bytes = fs::read(transcript).unwrap();
    bytes.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into()).collect()
}

/// Returns the lines of a transcript, as text: of a copy, the one in the project of the job. Empty if
/// the transcript was deleted later.
fn transcript(job: &Job, session: &str) -> Vec<String> {
    let all = paths(&job.config, session);
    let name = job.directory.as_ref().map(|project| project_folder_name(project.to_str().unwrap()));
    let is_own = |path: &&PathBuf| {
        path.parent().and_then(Path::file_name).map(OsStr::to_str) == Some(name.as_deref())
    };
    all.iter().find(is_own).or(all.first()).map(|path| lines(path)).unwrap_or_default()
}

/// Returns the path of a transcript, in whatever project.
pub(crate) fn path(config: &Path, session: &str) -> PathBuf {
    paths(config, session).remove(0)
}

/// Returns the paths of a transcript and its copies, sorted.
fn paths(config: &Path, session: &str) -> Vec<PathBuf> {
    let folders = fs::read_dir(config.join("projects")).unwrap();
    let paths = folders.map(|folder| folder.unwrap().path().join(format!("{session}.jsonl")));
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// Returns the entries of a fork, and the names of its IDs: those of the entries they are copied from.
fn entries(job: &Job, id: &str) -> (Vec<Value>, BTreeMap<String, String>) {
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
    (lines, names)
}

/// Returns the lines of a fork with every new ID replaced by that of the entry it was copied from.
/// `earlier` is the fork that it is a fork of.
fn fork(job: &Job, earlier: Option<&str>, id: &str, start: i64) -> Value {
    let (lines, mut names) = entries(job, id);
    let source = transcript(job, &job.session).join("\n");
    if let Some(earlier) = earlier {
        let (_, earlier_names) = entries(job, earlier);
        for name in names.values_mut() {
            if let Some(of) = name.strip_prefix("copy of ").and_then(|of| earlier_names.get(of)) {
                *name = format!("copy of {of}");
            }
        }
        names.extend(earlier_names);
        names.insert(earlier.to_owned(), "the first fork".to_owned());
    }
    let is_new = |id: &str| is_uuid(id) && !source.contains(id);
    let lines = lines.into_iter().map(|mut line| {
        // An entry that is not copied has a new ID too, where others refer to it.
        for member in ["logicalParentUuid", "compactMetadata"] {
            if let Some(value) = line.get_mut(member) {
                replace_texts(value, &|id| !names.contains_key(id) && is_new(id), "not copied");
            }
        }
        if line.get("forkedFrom").is_none() && line.get("uuid").is_some() {
            line["uuid"] = json!("new");
        }
        rename(&mut line, &names, start);
        line
    });
    lines.collect()
}

/// Replaces the texts for which `is_meant`, also inside of lists and objects.
fn replace_texts(value: &mut Value, is_meant: &dyn Fn(&str) -> bool, by: &str) {
    match value {
        Value::String(text) if is_meant(text) => by.clone_into(text),
        Value::Array(items) => {
            for item in items {
                replace_texts(item, is_meant, by);
            }
        }
        Value::Object(members) => {
            for item in members.values_mut() {
                replace_texts(item, is_meant, by);
            }
        }
        _ => {}
    }
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

/// A difference between two results: the path to it, and both values there.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) path: String,
    pub(crate) ours: Value,
    pub(crate) theirs: Value,
}

/// Returns where two values differ: in lists of one length every place, otherwise the first.
pub(crate) fn differences(ours: &Value, theirs: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(ours, theirs, String::new(), &mut found);
    found
}

fn collect(ours: &Value, theirs: &Value, path: String, found: &mut Vec<Difference>) {
    let absent = || json!("(absent)");
    match (ours, theirs) {
        (Value::Array(one), Value::Array(other)) => {
            let get = |items: &[Value], at| items.get(at).cloned().unwrap_or_else(absent);
            for at in 0..one.len().max(other.len()) {
                collect(&get(one, at), &get(other, at), format!("{path}[{at}]"), found);
                if one.len() != other.len() && !found.is_empty() {
                    return;
                }
            }
        }
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let get =
                    |object: &Map<String, Value>| object.get(name).cloned().unwrap_or_else(absent);
                collect(&get(one), &get(other), format!("{path}.{name}"), found);
            }
        }
        _ if ours == theirs || is_same_number(ours, theirs) => {}
        _ => found.push(Difference { path, ours: ours.clone(), theirs: theirs.clone() }),
    }
}

/// JavaScript writes `1.0` as `1`.
fn is_same_number(one: &Value, other: &Value) -> bool {
    one.as_f64().is_some_and(|one| other.as_f64() == Some(one))
}
