//! Lists the public API: one line per item, read from the JSON output of rustdoc.

mod render;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use self::render::{bounds, function, generics, resolved, type_of, where_clause};
use crate::workspace;

/// The crates whose API is listed.
pub const CRATES: [&str; 6] = [
    "claude-wire",
    "claude-session-store",
    "claude-agent-core",
    "claude-agent-testkit",
    "claude-agent-kit",
    "claude-agent-store",
];

/// Returns the path of the listing of a crate.
pub fn path(name: &str) -> PathBuf {
    workspace::root().join("docs/api").join(format!("{name}.txt"))
}

/// Returns every name in the stored listings, with all suffixes of its path: `kit::Options::model` is also
/// `Options::model` and `model`.
///
/// # Errors
///
/// Returns an error when a listing cannot be read.
pub fn stored_names() -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for name in CRATES {
        let listing = fs::read_to_string(path(name))?;
        for (path, _) in listing.lines().filter_map(|line| line.split_once(": ")) {
            names.insert(path.to_owned());
            names.extend(path.match_indices("::").map(|(at, _)| path[at + 2..].to_owned()));
        }
    }
    Ok(names)
}

/// Returns one line per public item of a crate, from the JSON output of rustdoc: the path, a colon and the declaration.
/// Items with several paths are listed at the shortest.
///
/// # Errors
///
/// Returns an error when the JSON is not the documentation of a crate.
pub fn lines(documentation: &Value) -> Result<BTreeSet<String>, String> {
    let index = &documentation["index"];
    let root = &documentation["root"];
    let name =
        index[key(root)]["name"].as_str().ok_or("the JSON is not the documentation of a crate")?;
    let mut listing =
        Listing { index, seen: HashMap::new(), lines: BTreeSet::new(), modules: VecDeque::new() };
    listing.modules.push_back((root, name.to_owned()));
    // Items near the root first, because that is where users look.
    while let Some((module, path)) = listing.modules.pop_front() {
        for item in array(&index[key(module)]["inner"]["module"]["items"]) {
            listing.item(item, &path);
        }
    }
    Ok(listing.lines)
}

struct Listing<'a> {
    index: &'a Value,
    /// Where each item was listed.
    seen: HashMap<String, String>,
    lines: BTreeSet<String>,
    modules: VecDeque<(&'a Value, String)>,
}

impl<'a> Listing<'a> {
    fn add(&mut self, path: &str, what: &str) {
        self.lines.insert(format!("{path}: {what}"));
    }

    /// Adds an item of a module.
    fn item(&mut self, id: &'a Value, parent: &str) {
        let index = self.index;
        let item = &index[key(id)];
        if item["visibility"] != "public" {
            return;
        }
        let used = &item["inner"]["use"];
        if !used.is_object() {
            let name = item["name"].as_str().unwrap_or_default();
            return self.named(id, &format!("{parent}::{name}"));
        }
        let target = &index[key(&used["id"])];
        if used["is_glob"] == true {
            for item in array(&target["inner"]["module"]["items"]) {
                self.item(item, parent);
            }
            return;
        }
        let path = format!("{parent}::{}", used["name"].as_str().unwrap_or_default());
        if target.is_object() {
            self.named(&used["id"], &path);
        } else {
            self.add(&path, &format!("pub use {}", used["source"].as_str().unwrap_or_default()));
        }
    }

    /// Adds an item under the name by which it is reached.
    fn named(&mut self, id: &'a Value, path: &str) {
        let index = self.index;
        let item = &index[key(id)];
        if let Some(first) = self.seen.get(&key(id)).cloned() {
            return self.add(path, &format!("pub use {first}"));
        }
        self.seen.insert(key(id), path.to_owned());
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next())
        else {
            return;
        };
        let open = array(&item["attrs"]).iter().any(|attribute| attribute == "non_exhaustive");
        let open = if open { "#[non_exhaustive] " } else { "" };
        match kind.as_str() {
            "module" => {
                self.add(path, "pub mod");
                self.modules.push_back((id, path.to_owned()));
            }
            "struct" | "enum" | "union" => {
                let implemented = self.implemented(inner);
                let generics = generics(&inner["generics"]);
                let fields = self.fields(path, inner);
                self.add(path, &format!("{open}pub {kind}{generics}{fields}{implemented}"));
                for variant in array(&inner["variants"]) {
                    self.variant(variant, path);
                }
                self.methods(path, inner);
            }
            "trait" => {
                let generics = generics(&inner["generics"]);
                let bounds = bounds(&inner["bounds"]);
                let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                self.add(path, &format!("pub trait{generics}{bounds}"));
                for item in array(&inner["items"]) {
                    self.member(item, path, "");
                }
            }
            _ => self.member(id, path.rsplit_once("::").map_or("", |(parent, _)| parent), "pub "),
        }
    }

    /// Returns the traits that a type implements, without blanket implementations.
    fn implemented(&self, inner: &Value) -> String {
        let impls = array(&inner["impls"]).iter().map(|id| &self.index[key(id)]["inner"]["impl"]);
        let own = impls.filter(|found| {
            found["trait"].is_object()
                && found["blanket_impl"].is_null()
                && found["is_synthetic"] == false
                && found["is_negative"] == false
        });
        let names = own.map(|found| {
            format!("{}{}", resolved(&found["trait"]), where_clause(&found["generics"]))
        });
        let names: BTreeSet<String> = names.filter(|name| name != "StructuralPartialEq").collect();
        if names.is_empty() {
            String::new()
        } else {
            format!(": {}", Vec::from_iter(names).join(" + "))
        }
    }

    /// Adds named fields of a struct or a variant as lines, and returns those of tuples as text.
    fn fields(&mut self, path: &str, inner: &'a Value) -> String {
        let kind = &inner["kind"];
        let named = if kind["plain"].is_object() { &kind["plain"] } else { &kind["struct"] };
        for field in array(&named["fields"]) {
            self.member(field, path, "pub ");
        }
        let hidden = named["has_stripped_fields"] == true;
        let tuple = array(&kind["tuple"]);
        if hidden {
            " { .. }".to_owned()
        } else if tuple.is_empty() {
            String::new()
        } else {
            let types =
                tuple.iter().map(|id| match &self.index[key(id)]["inner"]["struct_field"] {
                    Value::Null => "_".to_owned(),
                    field => type_of(field),
                });
            format!("({})", types.collect::<Vec<_>>().join(", "))
        }
    }

    fn variant(&mut self, id: &'a Value, parent: &str) {
        let item = &self.index[key(id)];
        let path = format!("{parent}::{}", item["name"].as_str().unwrap_or_default());
        let fields = self.fields(&path, &item["inner"]["variant"]);
        self.add(&path, &format!("variant{fields}"));
    }

    /// Adds the inherent methods and constants of a type.
    fn methods(&mut self, path: &str, inner: &'a Value) {
        let index = self.index;
        for id in array(&inner["impls"]) {
            let found = &index[key(id)]["inner"]["impl"];
            if found["trait"].is_null() {
                for item in array(&found["items"]) {
                    if index[key(item)]["visibility"] == "public" {
                        self.member(item, path, "pub ");
                    }
                }
            }
        }
    }

    /// Adds a member of another item.
    fn member(&mut self, id: &'a Value, parent: &str, visible: &str) {
        let item = &self.index[key(id)];
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next())
        else {
            return;
        };
        let path = format!("{parent}::{}", item["name"].as_str().unwrap_or_default());
        let what = match kind.as_str() {
            "function" => format!("{visible}{}", function(inner)),
            "struct_field" => format!("{visible}{}", type_of(inner)),
            "constant" | "assoc_const" | "static" => {
                format!("{visible}const {}", type_of(&inner["type"]))
            }
            "type_alias" => format!(
                "{visible}type{} = {}",
                generics(&inner["generics"]),
                type_of(&inner["type"])
            ),
            "assoc_type" => format!("type: {}", bounds(&inner["bounds"]))
                .trim_end_matches([' ', ':'])
                .to_owned(),
            other => format!("{visible}{other}"),
        };
        self.add(&path, &what);
    }
}

/// Returns an ID as a key of the index.
fn key(id: &Value) -> String {
    id.to_string()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn public_items_are_listed_once_with_their_signatures() {
        let text = json!({"resolved_path": {"path": "std::string::String", "args": null}});
        let function = |inputs: Value, output: Value| {
            json!({"function": {
                "sig": {"inputs": inputs, "output": output},
                "generics": {"params": [], "where_predicates": []},
                "header": {"is_async": true},
            }})
        };
        let item = |name: &str, inner: Value| json!({"name": name, "visibility": "public", "attrs": [], "inner": inner});
        let myself = json!({"borrowed_ref": {"lifetime": null, "is_mutable": false, "type": {"generic": "Self"}}});
        let documentation = json!({"root": 0, "index": {
            "0": item("kit", json!({"module": {"items": [1, 2, 3, 9]}})),
            "1": {"visibility": "public", "inner": {"use": {"source": "a::Options", "name": "Options", "id": 5, "is_glob": false}}},
            "2": item("a", json!({"module": {"items": [5]}})),
            "3": {"visibility": "public", "inner": {"use": {"source": "wire::Mode", "name": "Mode", "id": 77, "is_glob": false}}},
            "5": {"name": "Options", "visibility": "public", "attrs": ["non_exhaustive"], "inner": {"struct": {
                "kind": {"plain": {"fields": [6], "has_stripped_fields": true}},
                "generics": {"params": [], "where_predicates": []}, "impls": [7, 8],
            }}},
            "6": item("model", json!({"struct_field": text.clone()})),
            "7": {"inner": {"impl": {"trait": {"path": "Clone", "args": null}, "blanket_impl": null, "is_synthetic": false, "is_negative": false, "items": [], "generics": {}}}},
            "8": {"inner": {"impl": {"trait": null, "items": [10], "generics": {}}}},
            "9": {"name": "hidden", "visibility": "default", "inner": {"module": {"items": []}}},
            "10": item("name", function(json!([["self", myself], ["a", text.clone()]]), text)),
        }});
        let listed = Vec::from_iter(lines(&documentation).unwrap());
        assert_eq!(
            listed,
            [
                "kit::Mode: pub use wire::Mode",
                "kit::Options: #[non_exhaustive] pub struct { .. }: Clone",
                "kit::Options::model: pub String",
                "kit::Options::name: pub async fn(&self, a: String) -> String",
                "kit::a: pub mod",
                "kit::a::Options: pub use kit::Options",
            ]
        );
        assert!(lines(&json!({})).is_err());
    }
}
