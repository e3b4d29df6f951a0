//! What the tests of several stores need.

#![allow(dead_code, reason = "not every test uses every function")]

use claude_agent_kit::store::{
    Load, NewEntry, SessionKey, SessionStore, StoreError, StoreErrorKind,
};

pub(crate) fn key(number: u32) -> SessionKey {
    let id = format!("{number:08x}-0000-4000-8000-000000000000");
    SessionKey::new("scope", "project", &*id).unwrap()
}

pub(crate) fn entry(text: &str) -> NewEntry {
    NewEntry::new(None, text, 0).unwrap()
}

/// Returns the texts of a session from which nothing was deleted.
pub(crate) async fn texts(store: &dyn SessionStore, key: &SessionKey) -> Vec<String> {
    let (mut texts, mut load) = (Vec::new(), Load::all());
    loop {
        let page = store.load(key, load).await.unwrap();
        for entry in page.entries {
            assert_eq!(entry.sequence.get(), load.after.get() + 1);
            load.after = entry.sequence;
            texts.push(entry.text.to_string());
        }
        if !page.more {
            return texts;
        }
    }
}

#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
    result.unwrap_err().kind()
}
