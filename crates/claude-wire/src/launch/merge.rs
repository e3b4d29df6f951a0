//! Merging JSON objects.

use serde_json::{Map, Value};

/// Merges `over` into `base`: objects key by key; everything else is replaced.
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Merges a sandbox into the one in the settings: by key, but lists of denials are combined, and settings
/// that would undo a restriction of the new sandbox are removed.
pub(super) fn merge_sandbox(base: &mut Value, over: Value) {
    let Value::Object(mut over) = over else { return };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    drop_what_undoes(base, &over);
    for path in ADD_UP {
        add_up(base, &mut over, path);
    }
    for path in REPLACED_WHOLE {
        if at(&over, path).is_some() {
            remove(base, path);
        }
    }
    merge(base, Value::Object(over));
}

/// Lists that are combined.
const ADD_UP: [&[&str]; 5] = [
    &["filesystem", "denyRead"],
    &["filesystem", "denyWrite"],
    &["network", "deniedDomains"],
    &["credentials", "files"],
    &["credentials", "envVars"],
];

/// Objects that are replaced as a whole.
const REPLACED_WHOLE: [&[&str]; 2] = [&["ripgrep"], &["network", "tlsTerminate"]];

fn drop_what_undoes(base: &mut Value, over: &Map<String, Value>) {
    let denies_files = at(over, &["credentials", "files"]).is_some();
    if over.contains_key("filesystem") || denies_files {
        remove(base, &["filesystem", "disabled"]);
    }
    let limits_domains = ["allowedDomains", "deniedDomains", "strictAllowlist"];
    if limits_domains.iter().any(|name| at(over, &["network", name]).is_some()) {
        // A proxy could bypass the domain restrictions.
        remove(base, &["network", "httpProxyPort"]);
        remove(base, &["network", "socksProxyPort"]);
    }
}

/// Inserts the entries of `base` that `over` lacks before those of `over`.
fn add_up(base: &Value, over: &mut Map<String, Value>, path: &[&str]) {
    let Some(Value::Array(before)) = base.as_object().and_then(|base| at(base, path)) else {
        return;
    };
    let Some((name, parents)) = path.split_last() else { return };
    let mut place = Some(over);
    for parent in parents {
        place = place.and_then(|place| place.get_mut(*parent)).and_then(Value::as_object_mut);
    }
    if let Some(Value::Array(entries)) = place.and_then(|place| place.get_mut(*name)) {
        let added: Vec<Value> =
            before.iter().filter(|entry| !entries.contains(entry)).cloned().collect();
        entries.splice(0..0, added);
    }
}

fn at<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, name| value.get(name))
}

fn remove(value: &mut Value, path: &[&str]) {
    let Some((name, parents)) = path.split_last() else { return };
    let mut place = Some(value);
    for parent in parents {
        place = place.and_then(|place| place.get_mut(*parent));
    }
    if let Some(object) = place.and_then(Value::as_object_mut) {
        object.remove(*name);
    }
}
