use std::collections::BTreeMap;
use std::fs;

use super::super::faulty::FaultyStore;
use super::super::{ProjectKey, StoreFuture};
use super::*;
use claude_session_store::{
    Append, Appended, Epoch, List, NewEntry, SessionList, StoredEntry, Subpath,
};

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

fn key() -> SessionKey {
    SessionKey::new("tenant", "project", ID).unwrap()
}

async fn add(store: &dyn SessionStore, subpath: Option<&str>, texts: &[&str]) {
    let subpath = subpath.map(|subpath| Subpath::new(subpath).unwrap());
    let mut entries = Vec::new();
    for text in texts {
        entries.push(NewEntry::new(subpath.clone(), *text, 0).unwrap());
    }
    store.append(&key(), Append::new(&entries)).await.unwrap();
}

/// A store with a session of two transcripts, in pages of two entries.
async fn store() -> FaultyStore {
    let store = FaultyStore { page: 2, ..FaultyStore::default() };
    add(&store, None, &[r#"{"n":1}"#, r#"{"n":2}"#]).await;
    let metadata = r#"{"type":"agent_metadata","agentType":"Explore"}"#;
    add(&store, Some("subagents/agent-a"), &[metadata, r#"{"n":3}"#]).await;
    add(&store, None, &[r#"{"n":4}"#]).await;
    let metadata = r#"{"agentType":"Explore","type":"agent_metadata","finished":true}"#;
    add(&store, Some("subagents/agent-a"), &[r#"{"n":5}"#, metadata]).await;
    add(&store, Some("subagents/deep/er/agent-b"), &[r#"{"type":"agent_metadata"}"#]).await;
    store
}

/// Returns the files below a folder with their contents.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
                found.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn expected() -> BTreeMap<String, String> {
    let files = [
        (".jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":4}\n"),
        ("/subagents/agent-a.jsonl", "{\"n\":3}\n{\"n\":5}\n"),
        ("/subagents/agent-a.meta.json", r#"{"agentType":"Explore","finished":true}"#),
        ("/subagents/deep/er/agent-b.meta.json", "{}"),
    ];
    files.map(|(name, text)| (format!("{ID}{name}"), text.to_owned())).into()
}

#[tokio::test]
async fn all_transcripts_of_a_session_are_written() {
    let (store, folder) = (store().await, tempfile::tempdir().unwrap());
    let folder = folder.path().join("projects/-srv");
    let written = write_session(&store, &key(), &folder).await.unwrap();
    assert_eq!((written.entries, written.last), (8, Sequence::new(8)));
    assert_eq!(files(&folder), expected());
    // Again: what is there is the same.
    assert_eq!(write_session(&store, &key(), &folder).await.unwrap(), written);
    assert_eq!(files(&folder), expected());
}

#[cfg(unix)]
#[tokio::test]
async fn files_and_folders_are_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let (store, root) = (store().await, tempfile::tempdir().unwrap());
    let folder = root.path().join("projects/-srv");
    write_session(&store, &key(), &folder).await.unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for name in files(&folder).keys() {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    for name in ["", ID, &format!("{ID}/subagents/deep")] {
        assert_eq!(mode(&folder.join(name)), 0o700, "{name}");
    }
}

#[tokio::test]
async fn a_session_without_a_main_transcript_is_not_written() {
    let store = FaultyStore::default();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("projects");
    assert_eq!(write_session(&store, &key(), &folder).await.unwrap(), SessionContents::default());
    assert!(!folder.exists());
    add(&store, Some("subagents/agent-a"), &["{}"]).await;
    assert_eq!(write_session(&store, &key(), &folder).await.unwrap(), SessionContents::default());
    assert!(files(&folder).is_empty());
}

#[tokio::test]
async fn an_existing_transcript_with_other_contents_is_kept() {
    for name in [".jsonl", "/subagents/agent-a.jsonl"] {
        let (store, folder) = (store().await, tempfile::tempdir().unwrap());
        let path = folder.path().join(format!("{ID}{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{\"n\":1}\n").unwrap();
        let error = write_session(&store, &key(), folder.path()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidHistoryChange);
        let kept = [(format!("{ID}{name}"), "{\"n\":1}\n".to_owned())];
        assert_eq!(files(folder.path()), kept.into());
    }
}

#[tokio::test]
async fn an_entry_of_several_lines_becomes_one_line() {
    let (store, folder) = (FaultyStore::default(), tempfile::tempdir().unwrap());
    add(&store, None, &["{\n\"n\":\r\n\"\\n\"}"]).await;
    write_session(&store, &key(), folder.path()).await.unwrap();
    let text = "{ \"n\":  \"\\n\"}\n".to_owned();
    assert_eq!(files(folder.path()), [(format!("{ID}.jsonl"), text)].into());
}

#[tokio::test]
async fn a_failure_of_the_store_leaves_nothing_behind() {
    for requests in 0..4 {
        let (store, folder) = (store().await, tempfile::tempdir().unwrap());
        store.fail_after(requests);
        let error = write_session(&store, &key(), folder.path()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreFailed);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        store.repair();
        write_session(&store, &key(), folder.path()).await.unwrap();
        assert_eq!(files(folder.path()), expected());
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_created_is_an_error() {
    let (store, root) = (store().await, tempfile::tempdir().unwrap());
    let folder = root.path().join("file");
    fs::write(&folder, "").unwrap();
    let error = write_session(&store, &key(), &folder).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HistoryIo);
    assert!(!error.is_retryable(), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed() {
    for name in ["", ".jsonl", "/subagents"] {
        let (store, folder) = (store().await, tempfile::tempdir().unwrap());
        let (outside, link) =
            (tempfile::tempdir().unwrap(), folder.path().join(format!("{ID}{name}")));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert!(write_session(&store, &key(), folder.path()).await.is_err(), "{name}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0, "{name}");
        assert!(!folder.path().join(format!("{ID}.jsonl")).is_file(), "{name}");
    }
}

fn unused() -> StoreError {
    StoreError::new(StoreErrorKind::Rejected, "not used")
}

/// A store whose pages are always the same.
struct Repeating;

impl SessionStore for Repeating {
    fn claim<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async { Ok(Epoch::new(1)) })
    }

    fn append<'a>(&'a self, _: &'a SessionKey, _: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async { Err(unused()) })
    }

    fn load<'a>(&'a self, _: &'a SessionKey, _: Load<'a>) -> StoreFuture<'a, EntryPage> {
        let entry = NewEntry::new(None, "{}", 0).unwrap();
        let stored = StoredEntry::new(Sequence::new(1), None, entry.id().clone(), "{}");
        Box::pin(async { Ok(EntryPage::new(vec![stored], true)) })
    }

    fn list<'a>(&'a self, _: &'a ProjectKey, _: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(async { Err(unused()) })
    }

    fn subpaths<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn delete<'a>(&'a self, _: &'a SessionKey, _: Option<&'a Subpath>) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_store_that_repeats_its_entries_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = write_session(&Repeating, &key(), folder.path()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreFailed);
    assert!(files(folder.path()).is_empty());
}
