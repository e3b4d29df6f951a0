//! The metadata of a subagent: a file beside its transcript, and an entry of it in a store.
//!
//! The CLI reports `{"type":"agent_metadata",…}` as an entry, which is not a line of the transcript: on disk,
//! the other members are in a file of their own.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

const TYPE: &str = "agent_metadata";

/// The start of an entry, as the CLI writes it.
const ENTRY_START: &str = r#"{"type":"agent_metadata""#;

/// Returns whether an entry is metadata, as the CLI reports it.
pub fn is_metadata_entry(entry: &str) -> bool {
    entry.starts_with(ENTRY_START)
}

/// Returns the entry for the contents of a file; `None` if they are damaged.
pub fn metadata_entry(file: &[u8]) -> Option<String> {
    let members = std::str::from_utf8(file).ok()?.trim().strip_prefix('{')?;
    let separator = if members.trim_start().starts_with('}') { "" } else { "," };
    let entry = format!("{ENTRY_START}{separator}{members}");
    serde_json::from_str::<IgnoredAny>(&entry).is_ok().then_some(entry)
}

/// Returns the contents of a file for an entry; `None` if the entry is not metadata.
pub fn metadata_file(entry: &str) -> Option<Cow<'_, str>> {
    if let Some(rest) = entry.strip_prefix(ENTRY_START) {
        return Some(match rest.trim_start().strip_prefix(',') {
            Some(members) => Cow::Owned(format!("{{{members}")),
            None => Cow::Borrowed("{}"),
        });
    }
    // Whoever else writes to a store may put the members in another order.
    if !entry.contains(TYPE) {
        return None;
    }
    let mut members: Map<String, Value> = serde_json::from_str(entry).ok()?;
    let kind = members.remove("type")?;
    (kind == TYPE).then(|| Cow::Owned(Value::Object(members).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_an_entry_in_a_store_and_a_file_on_disk() {
        for (file, entry) in [
            ("{}", r#"{"type":"agent_metadata"}"#),
            (r#"{"agentType":"x"}"#, r#"{"type":"agent_metadata","agentType":"x"}"#),
        ] {
            assert_eq!(metadata_entry(file.as_bytes()).as_deref(), Some(entry));
            assert_eq!(metadata_file(entry).as_deref(), Some(file));
            assert!(is_metadata_entry(entry));
        }
        let reordered = r#"{"agentType":"x","type":"agent_metadata","finished":true}"#;
        let file = r#"{"agentType":"x","finished":true}"#;
        assert_eq!(metadata_file(reordered).as_deref(), Some(file));
        let spaces = metadata_entry(b" { \"a\" : 1 }\n").unwrap();
        assert_eq!(spaces, r#"{"type":"agent_metadata", "a" : 1 }"#);
    }

    #[test]
    fn other_texts_are_not_metadata() {
        for entry in ["", "{}", r#"{"type":"user"}"#, r#"{"a":"agent_metadata"}"#, "agent_metadata"]
        {
            assert_eq!(metadata_file(entry), None, "{entry}");
        }
        for file in ["", "[]", "{broken", "{\"a\":1", "\"x\""] {
            assert_eq!(metadata_entry(file.as_bytes()), None, "{file}");
        }
        assert_eq!(metadata_entry(b"{\"a\":\"\xff\"}"), None);
    }
}
