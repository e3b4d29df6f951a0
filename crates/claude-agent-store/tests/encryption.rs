//! Encryption of the entries of another store.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use claude_agent_kit::approval::{Approval, Approvals};
use claude_agent_kit::store::{
    Append, EntryId, List, Load, MemoryStore, NewEntry, Record, RecordChange, RecordFilter,
    RecordKey, RecordKind, RecordList, RecordStore, RecordWrite, Sequence, SessionKey,
    SessionStore, StoreError, StoreErrorKind, StoredEntry, Subpath,
};
use claude_agent_store::{Encrypted, EncryptionKey, Keyring, SqliteStore};
use claude_session_store::conformance;
use serde_json::Value;

const IDENTITY: [u8; 32] = [7; 32];

fn encryption_key(number: u8) -> EncryptionKey {
    EncryptionKey::new(&format!("key-{number}"), &[number; 32]).unwrap()
}

fn keyring(current: u8) -> Keyring {
    Keyring::new(&IDENTITY, encryption_key(current))
}

fn key_of(scope: &str, number: u32) -> SessionKey {
    let id = format!("{number:08x}-0000-4000-8000-000000000000");
    SessionKey::new(scope, "project", &*id).unwrap()
}

fn key() -> SessionKey {
    key_of("scope", 1)
}

fn entry(text: &str) -> NewEntry {
    NewEntry::new(None, text, 0).unwrap()
}

async fn stored(store: &impl SessionStore, key: &SessionKey) -> Vec<StoredEntry> {
    store.load(key, Load::all()).await.unwrap().entries
}

async fn loaded(store: &impl SessionStore) -> Result<Vec<String>, StoreError> {
    let page = store.load(&key(), Load::all()).await?;
    Ok(page.entries.iter().map(|entry| entry.text.to_string()).collect())
}

/// Puts an entry of a store at another place, as a store with bad intentions could.
async fn place(
    store: &MemoryStore,
    key: &SessionKey,
    subpath: Option<Subpath>,
    id: &EntryId,
    text: &str,
) {
    let entry = NewEntry::with_id(subpath, id.clone(), text).unwrap();
    store.append(key, Append::new(&[entry])).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_store_conforms() {
    let make = async || Encrypted::new(MemoryStore::new(), keyring(1));
    conformance::run(make).await.assert();
}

#[tokio::test]
async fn encrypted_store_is_located_where_its_entries_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let store = Arc::new(Encrypted::new(SqliteStore::open(&path).await.unwrap(), keyring(1)));
    let location = format!("SQLite \"{}\"", path.display());
    assert_eq!(store.location().unwrap(), location);
    assert_eq!(store.records_location().unwrap(), location);
    assert_eq!(Encrypted::new(MemoryStore::new(), keyring(1)).location(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_store_in_sqlite_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let count = AtomicU32::new(0);
    let make = async || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let path = directory.path().join(format!("{number}.db"));
        Encrypted::new(SqliteStore::open(path).await.unwrap(), keyring(1))
    };
    conformance::run(make).await.assert();
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_records_conform() {
    let hosts = async || {
        let store = MemoryStore::new();
        [Encrypted::new(store.clone(), keyring(1)), Encrypted::new(store, keyring(1))]
    };
    conformance::run_records(hosts).await.assert();
}

/// Returns an approval that was requested, decided and started.
fn approval(number: u32, version: u64) -> Approval {
    let text = format!(
        r#"{{"request":{{"id":"{number:08x}-0000-4000-8000-000000000000","scope":"scope",
             "session_id":"{}","project":"secret","cwd":"/secret","tool_use_id":"toolu_secret",
             "tool_name":"secret","input":{{"command":"secret"}},"agent_id":"secret",
             "requested_at_ms":1}},"status":"started",
             "decision":{{"by":"secret","verdict":"allow","input":{{"a":"secret"}}}},
             "decided_at_ms":7654321,"is_parked":true,"started_in":7654321,"started_for":"secret",
             "version":{version}}}"#,
        key().session()
    );
    serde_json::from_str(&text).unwrap()
}

async fn insert(store: &dyn RecordStore, change: &RecordChange) {
    assert!(store.write_records(RecordWrite::new(std::slice::from_ref(change))).await.unwrap());
}

async fn records(store: &dyn RecordStore) -> Vec<Record> {
    let list = RecordList::new(RecordKind::Approval, RecordFilter::In("scope"));
    store.list_records(list).await.unwrap().records
}

#[tokio::test]
async fn stores_see_only_what_they_need_of_an_approval() {
    let store = Encrypted::new(MemoryStore::new(), keyring(1));
    let plain = approval(1, 1);
    insert(&store, &plain.to_change().unwrap()).await;
    let shown = format!("{:?}", records(store.inner()).await);
    assert!(shown.contains(plain.request.id.as_str()), "{shown}");
    assert!(!shown.contains("secret") && !shown.contains("7654321"), "{shown}");
    let id = &plain.request.id;
    assert_eq!(Approvals::new("scope", store).get(id).await.unwrap(), Some(plain));
}

#[tokio::test]
async fn changed_records_are_not_decrypted() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keyring(1));
    let plain = approval(1, 1);
    let id = plain.request.id.clone();
    insert(&store, &plain.to_change().unwrap()).await;
    let hidden = records(&inner).await.remove(0);
    let other = "00000002-0000-4000-8000-000000000000";
    let key = |scope, kind, id| RecordKey::new(scope, kind, id).unwrap();
    let edits: [&dyn Fn(&mut RecordChange); 7] = [
        &|change| change.is_open = false,
        &|change| change.due_at_ms = Some(7),
        &|change| change.owner = other.into(),
        &|change| change.key = key("scope", RecordKind::Approval, other),
        &|change| change.key = key("other", RecordKind::Approval, id.as_str()),
        &|change| change.key = key("scope", RecordKind::Budget, id.as_str()),
        &|change| change.body = change.body.replacen("\"c\":\"", "\"c\":\"AAAA", 1).into(),
    ];
    for edit in edits {
        let mut changed = plain.to_change().unwrap();
        changed.body = hidden.body.clone();
        edit(&mut changed);
        let inner = MemoryStore::new();
        insert(&inner, &changed).await;
        let store = Encrypted::new(inner, keyring(1));
        let filter = RecordFilter::Id { scope: changed.key.scope(), id: changed.key.id() };
        let list = RecordList::new(changed.key.kind(), filter);
        let error = store.list_records(list).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{changed:?}");
    }
    // So is the text of an earlier version.
    let mut next = plain.to_change().unwrap();
    (next.replaces, next.body) = (Some(1), hidden.body.clone());
    insert(&inner, &next).await;
    let error = Approvals::new("scope", store).get(&id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn rotated_keys_decrypt_records() {
    let inner = MemoryStore::new();
    let plain = approval(1, 1);
    insert(&Encrypted::new(inner.clone(), keyring(1)), &plain.to_change().unwrap()).await;
    // A keyring without the key tells which one is missing.
    let id = &plain.request.id;
    let other = Encrypted::new(inner.clone(), keyring(2));
    let error = Approvals::new("scope", other).get(id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("key-1"), "{error}");
    let rotated = keyring(2).previous(encryption_key(1)).unwrap();
    let rotated = Approvals::new("scope", Encrypted::new(inner, rotated));
    assert_eq!(rotated.get(id).await.unwrap(), Some(plain));
}

/// The record of the approval that [`approval`] returns, with version 3, as the version of this crate without other records
/// has encrypted it with the first key.
const FIRST_FORMAT: &str = include_str!("support/encrypted_approval_2.json");

/// Stores the record of an approval in the first format, as an update of a database does.
async fn store_first_format(store: &MemoryStore, body: &str, version: u64) {
    let mut change = approval(1, 1).to_change().unwrap();
    change.body = body.into();
    insert(store, &change).await;
    for replaced in 1..version {
        change.replaces = Some(replaced);
        insert(store, &change).await;
    }
}

#[tokio::test]
async fn approvals_in_the_first_format_are_read() {
    let inner = MemoryStore::new();
    store_first_format(&inner, FIRST_FORMAT.trim(), 3).await;
    let plain = approval(1, 3);
    let id = &plain.request.id;
    let approvals = Approvals::new("scope", Encrypted::new(inner, keyring(1)));
    assert_eq!(approvals.get(id).await.unwrap(), Some(plain.clone()));
    // It is bound to what a store can read of it.
    for (part, other) in [
        (r#""requested_at_ms":1"#, r#""requested_at_ms":2"#),
        (r#""status":"started""#, r#""status":"decided""#),
        (r#""version":3"#, r#""version":4"#),
        (r#""scope":"scope""#, r#""scope":"other""#),
        (r#""id":"00000001"#, r#""id":"00000002"#),
    ] {
        let changed = FIRST_FORMAT.trim().replacen(part, other, 1);
        assert_ne!(changed, FIRST_FORMAT.trim(), "{part}");
        let inner = MemoryStore::new();
        store_first_format(&inner, &changed, 3).await;
        let approvals = Approvals::new("scope", Encrypted::new(inner, keyring(1)));
        let error = approvals.get(id).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{part}");
    }
    // A store cannot list it as closed, or as due.
    for edit in [
        (&|change: &mut RecordChange| change.is_open = false) as &dyn Fn(&mut RecordChange),
        &|change| change.due_at_ms = Some(1),
    ] {
        let inner = MemoryStore::new();
        let mut change = approval(1, 1).to_change().unwrap();
        change.body = FIRST_FORMAT.trim().into();
        insert(&inner, &change).await;
        for replaced in 1..3 {
            change.replaces = Some(replaced);
            edit(&mut change);
            insert(&inner, &change).await;
        }
        let approvals = Approvals::new("scope", Encrypted::new(inner, keyring(1)));
        assert_eq!(approvals.get(id).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
    // Nor can it be another version of its record.
    let inner = MemoryStore::new();
    store_first_format(&inner, FIRST_FORMAT.trim(), 4).await;
    let approvals = Approvals::new("scope", Encrypted::new(inner, keyring(1)));
    assert_eq!(approvals.get(id).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn entries_and_ids_are_returned_as_they_were_appended() {
    let store = Encrypted::new(MemoryStore::new(), keyring(1));
    let uuid = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";
    let batch = [
        entry(&format!(r#"{{"uuid":"{uuid}"}}"#)),
        NewEntry::new(Some(Subpath::new("subagents/a").unwrap()), "{}", 3).unwrap(),
        NewEntry::with_id(None, EntryId::unique(), "{}").unwrap(),
        NewEntry::with_id(None, EntryId::new(&"x".repeat(128)).unwrap(), "{}").unwrap(),
    ];
    store.append(&key(), Append::new(&batch)).await.unwrap();
    let (plain, hidden) = (stored(&store, &key()).await, stored(store.inner(), &key()).await);
    for ((plain, hidden), new) in plain.iter().zip(&hidden).zip(&batch) {
        assert_eq!((&plain.id, &*plain.text), (new.id(), &**new.text()));
        assert_eq!((plain.sequence, &plain.subpath), (hidden.sequence, &hidden.subpath));
    }
    // UUIDs, occurrence numbers and random IDs stay readable, and digests do not.
    let digest =
        |id: &EntryId| id.as_str().split('.').find(|part| part.len() == 32).unwrap().to_owned();
    for number in [0, 1] {
        assert_ne!(digest(&hidden[number].id), digest(batch[number].id()));
    }
    assert!(hidden[0].id.as_str().starts_with(&format!("{uuid}.")));
    assert!(hidden[1].id.as_str().ends_with(".3"));
    assert_eq!((&hidden[2].id, &hidden[3].id), (batch[2].id(), batch[3].id()));
}

#[tokio::test]
async fn equal_entries_have_different_ids_and_texts_in_every_place() {
    let store = Encrypted::new(MemoryStore::new(), keyring(1));
    let (a, b) = (Subpath::new("a").unwrap(), Subpath::new("b").unwrap());
    let mut seen = Vec::new();
    for key in [key(), key_of("scope", 2), key_of("other", 1)] {
        let batch = [None, Some(a.clone()), Some(b.clone())]
            .map(|subpath| NewEntry::new(subpath, "{}", 0).unwrap());
        store.append(&key, Append::new(&batch)).await.unwrap();
        for entry in stored(store.inner(), &key).await {
            seen.extend([entry.id.to_string(), entry.text.to_string()]);
        }
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((count, seen.len()), (18, 18));
}

#[tokio::test]
async fn rotated_keys_decrypt_and_deduplicate() {
    let inner = MemoryStore::new();
    let old = Encrypted::new(inner.clone(), keyring(1));
    let append = |after: u64| Append::new(&[]).summary(Sequence::new(after), "\"old\"");
    let batch = [entry("1"), entry("2")];
    let mut first = append(0);
    first.entries = &batch;
    old.append(&key(), first).await.unwrap();

    let new = Encrypted::new(inner.clone(), keyring(2).previous(encryption_key(1)).unwrap());
    let batch = [entry("2"), entry("3")];
    let appended = new.append(&key(), Append::new(&batch)).await.unwrap();
    assert_eq!(appended.skipped, 1);
    assert_eq!(loaded(&new).await.unwrap(), ["1", "2", "3"]);
    let page = new.list(key().project_key(), List::new()).await.unwrap();
    assert_eq!(page.sessions[0].summary.as_ref().unwrap().data, "\"old\"");

    // Without the new key, only its entries are unreadable, and the error names the key.
    let error = loaded(&old).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("\"key-2\""), "{error}");
    let page = old.load(&key(), Load::all().limit(2)).await.unwrap();
    assert_eq!((page.entries.len(), page.more), (2, true));

    // Without the old key, the summary is omitted, and the session is listed.
    let later = Encrypted::new(inner, keyring(2));
    let page = later.list(key().project_key(), List::new()).await.unwrap();
    assert_eq!((page.sessions.len(), &page.sessions[0].summary), (1, &None));
}

#[tokio::test]
async fn changed_entries_are_corrupt() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keyring(1));
    store.append(&key(), Append::new(&[entry("\"secret\"")])).await.unwrap();
    let original = stored(&inner, &key()).await.remove(0);
    let envelope: Value = serde_json::from_str(&original.text).unwrap();
    let mut changed = Vec::new();
    for name in ["n", "c"] {
        let text = envelope[name].as_str().unwrap();
        for at in [0, text.len() / 2, text.len() - 2] {
            let mut text = text.to_owned();
            let letter = if &text[at..=at] == "A" { "B" } else { "A" };
            text.replace_range(at..=at, letter);
            let mut envelope = envelope.clone();
            envelope[name] = text.into();
            changed.push(envelope.to_string());
        }
        for text in ["", "A", "*", &text[..text.len() / 2]] {
            let mut envelope = envelope.clone();
            envelope[name] = text.into();
            changed.push(envelope.to_string());
        }
    }
    // Texts without encryption are not accepted either.
    changed.extend(["{}", "1", r#"{"v":"1"}"#, r#"{"type":"user"}"#].map(str::to_owned));
    for text in changed {
        inner.delete(&key(), None).await.unwrap();
        place(&inner, &key(), None, &original.id, &text).await;
        let error = loaded(&store).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{text}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    for (field, value) in [("v", serde_json::json!(3)), ("k", "key-9".into())] {
        let mut envelope = envelope.clone();
        envelope[field] = value;
        inner.delete(&key(), None).await.unwrap();
        place(&inner, &key(), None, &original.id, &envelope.to_string()).await;
        assert_eq!(loaded(&store).await.unwrap_err().kind(), StoreErrorKind::Rejected, "{field}");
    }
    // The unchanged entry is readable at its place.
    inner.delete(&key(), None).await.unwrap();
    place(&inner, &key(), None, &original.id, &original.text).await;
    assert_eq!(loaded(&store).await.unwrap(), ["\"secret\""]);
}

#[tokio::test]
async fn exchanged_entries_are_corrupt() {
    let source = MemoryStore::new();
    let batch = [entry("1"), entry("2")];
    let append = Append::new(&batch).summary(Sequence::new(0), "3");
    Encrypted::new(source.clone(), keyring(1)).append(&key(), append).await.unwrap();
    let originals = stored(&source, &key()).await;
    let (one, two) = (&originals[0], &originals[1]);
    let row = source.list(key().project_key(), List::new()).await.unwrap().sessions.remove(0);
    let summary = row.summary.unwrap().data;
    let (other_scope, other_session) = (key_of("other", 1), key_of("scope", 2));
    let subpath = || Some(Subpath::new("subagents/a").unwrap());
    for (key, subpath, id, text) in [
        (key(), None, &one.id, &*two.text),
        (key(), None, batch[0].id(), &*one.text),
        (key(), subpath(), &one.id, &*one.text),
        (other_session, None, &one.id, &*one.text),
        (other_scope, None, &one.id, &*one.text),
        (key(), None, &one.id, &*summary),
    ] {
        let inner = MemoryStore::new();
        place(&inner, &key, subpath.clone(), id, text).await;
        let store = Encrypted::new(inner, keyring(1));
        let error = store.load(&key, Load::all()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{key:?} {subpath:?} {id:?}");
    }
}

#[tokio::test]
async fn exchanged_summaries_are_omitted() {
    let inner = MemoryStore::new();
    let store = Encrypted::new(inner.clone(), keyring(1));
    let batch = [entry("1")];
    let append = Append::new(&batch).summary(Sequence::new(0), "1");
    store.append(&key(), append).await.unwrap();
    let rows = inner.list(key().project_key(), List::new()).await.unwrap().sessions;
    let summary = rows[0].summary.clone().unwrap().data;
    let append = Append::new(&batch).summary(Sequence::new(0), &summary);
    inner.append(&key_of("scope", 2), append).await.unwrap();
    let rows = store.list(key().project_key(), List::new()).await.unwrap().sessions;
    for row in rows {
        let expected = (row.session == *key().session()).then(|| "1".to_owned());
        assert_eq!(row.summary.map(|summary| summary.data), expected);
    }
}

#[tokio::test]
async fn secrets_are_not_in_the_file_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let secret = "planted-secret-4711";
    let contains = |store: &SqliteStore| {
        let files = fs::read_dir(store.path().parent().unwrap()).unwrap();
        let bytes: Vec<u8> =
            files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        assert!(bytes.len() > 1_000);
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    };
    let text = format!(r#"{{"text":"{secret}"}}"#);
    let batch = [entry(&text)];
    let append = Append::new(&batch).summary(Sequence::new(0), &text);

    let inner = SqliteStore::open(directory.path().join("encrypted.db")).await.unwrap();
    let store = Encrypted::new(inner.clone(), keyring(1));
    store.append(&key(), append).await.unwrap();
    assert_eq!(loaded(&store).await.unwrap(), [&*text]);
    assert!(!contains(&inner));
    // The digest of the text would confirm a guess.
    let digest = batch[0].id().as_str().split('.').next().unwrap().to_owned();
    assert!(!stored(&inner, &key()).await[0].id.as_str().contains(&digest));

    // Without encryption, the same search finds the secret.
    inner.append(&key_of("scope", 2), append).await.unwrap();
    assert!(contains(&inner));
}

#[test]
fn keys_are_not_shown_and_have_valid_ids() {
    let ring = Keyring::new(&[201; 32], EncryptionKey::new("current", &[202; 32]).unwrap());
    let ring = ring.previous(EncryptionKey::new("earlier", &[203; 32]).unwrap()).unwrap();
    let shown = format!("{:?} {:?}", Encrypted::new((), ring.clone()), encryption_key(9));
    assert!(shown.contains("current") && shown.contains("earlier"), "{shown}");
    assert!(!shown.contains("20"), "{shown}");
    assert!(ring.previous(EncryptionKey::new("current", &[1; 32]).unwrap()).is_err());
    for id in ["", "a\nb", &"x".repeat(65)] {
        assert_eq!(EncryptionKey::new(id, &[1; 32]).unwrap_err().kind(), StoreErrorKind::Rejected);
    }
}
