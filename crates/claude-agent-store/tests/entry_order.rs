//! Encrypted entries in another order than that in which they were appended.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use claude_agent_kit::store::{
    Append, Appended, EntryId, EntryPage, Epoch, List, Load, LoadScope, MemoryStore, NewEntry,
    ProjectKey, Sequence, SessionKey, SessionList, SessionStore, StoreError, StoreErrorKind,
    StoreFuture, StoredEntry, Subpath,
};
use claude_agent_store::{Encrypted, EncryptionKey, Keyring};
use support::{entry, key};

fn keyring() -> Keyring {
    Keyring::new(&[7; 32], EncryptionKey::new("key-1", &[1; 32]).unwrap())
}

fn encrypted<S>(inner: S) -> Encrypted<S> {
    Encrypted::new(inner, keyring())
}

fn subpath() -> Subpath {
    Subpath::new("subagents/a").unwrap()
}

/// What a store does with the next append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    LosesRequest,
    LosesAcknowledgement,
    /// Executes the request when the test says so.
    DelaysRequest,
}

/// Returns chosen entries in place of the stored ones, and fails if asked to.
#[derive(Clone, Default)]
struct Hostile {
    inner: MemoryStore,
    forged: Arc<Mutex<Option<Vec<StoredEntry>>>>,
    faults: Arc<Mutex<Vec<Fault>>>,
    delayed: Arc<Mutex<Vec<NewEntry>>>,
}

impl Hostile {
    /// Returns all stored entries of the session.
    async fn stored(&self) -> Vec<StoredEntry> {
        self.inner.load(&key(1), Load::all().max_bytes(usize::MAX)).await.unwrap().entries
    }

    /// Returns the stored entries at these positions from now on, numbered again.
    async fn show(&self, positions: &[usize]) {
        let stored = self.stored().await;
        let shown = (1..).zip(positions).map(|(number, at)| {
            let entry = stored[*at].clone();
            StoredEntry::new(Sequence::new(number), entry.subpath, entry.id, entry.text)
        });
        *self.forged.lock().unwrap() = Some(shown.collect());
    }
}

impl SessionStore for Hostile {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        self.inner.claim(key)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let fault = self.faults.lock().unwrap().pop();
            tokio::task::yield_now().await;
            let lost = || Err(StoreError::new(StoreErrorKind::Unavailable, "lost"));
            match fault {
                Some(Fault::LosesRequest) => return lost(),
                Some(Fault::DelaysRequest) => {
                    *self.delayed.lock().unwrap() = append.entries.to_vec();
                    return lost();
                }
                Some(Fault::LosesAcknowledgement) | None => {}
            }
            let appended = self.inner.append(key, append).await;
            if fault.is_some() { lost() } else { appended }
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async move {
            let Some(mut entries) = self.forged.lock().unwrap().clone() else {
                return self.inner.load(key, load).await;
            };
            entries.retain(|entry| {
                entry.sequence > load.after
                    && match load.subpath {
                        LoadScope::All => true,
                        LoadScope::Main => entry.subpath.is_none(),
                        LoadScope::Subpath(subpath) => entry.subpath.as_ref() == Some(subpath),
                    }
            });
            let more = entries.len() > load.limit;
            entries.truncate(load.limit);
            Ok(EntryPage::new(entries, more))
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        self.inner.list(project, list)
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        self.inner.subpaths(key)
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        self.inner.delete(key, subpath)
    }
}

async fn try_append(
    store: &dyn SessionStore,
    epoch: Epoch,
    texts: &[&str],
) -> Result<Appended, StoreError> {
    let entries: Vec<NewEntry> = texts.iter().map(|text| entry(text)).collect();
    store.append(&key(1), Append::new(&entries).epoch(epoch)).await
}

async fn append(store: &dyn SessionStore, epoch: Epoch, texts: &[&str]) {
    try_append(store, epoch, texts).await.unwrap();
}

async fn load(store: &dyn SessionStore, load: Load<'_>) -> Result<Vec<String>, StoreError> {
    let page = store.load(&key(1), load).await?;
    Ok(page.entries.iter().map(|entry| entry.text.to_string()).collect())
}

/// Loads the session with a new handle.
async fn fresh(inner: &Hostile) -> Result<Vec<String>, StoreError> {
    load(&encrypted(inner.clone()), Load::all()).await
}

/// Shows entries in this order, which has to be noticed at this position.
async fn assert_corrupt(inner: &Hostile, positions: &[usize], at: usize) {
    inner.show(positions).await;
    let error = fresh(inner).await.expect_err(&format!("{positions:?}"));
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{positions:?}");
    let (message, session) = (error.to_string(), key(1).session().to_string());
    assert!(message.contains(&format!("entry {at} ")) && message.contains(&session), "{message}");
}

async fn assert_accepted(inner: &Hostile, positions: &[usize]) {
    inner.show(positions).await;
    assert_eq!(fresh(inner).await.unwrap().len(), positions.len(), "{positions:?}");
}

#[tokio::test]
async fn swapped_repeated_and_missing_entries_are_corrupt() {
    // In one append, and in several.
    for batches in [&[&["0", "1", "2", "3", "4"][..]][..], &[&["0", "1"], &["2"], &["3", "4"]]] {
        let inner = Hostile::default();
        let store = encrypted(inner.clone());
        let epoch = store.claim(&key(1)).await.unwrap();
        for batch in batches {
            append(&store, epoch, batch).await;
        }
        assert_eq!(fresh(&inner).await.unwrap(), ["0", "1", "2", "3", "4"]);
        for (positions, at) in [
            (&[1, 0, 2, 3, 4][..], 2),
            (&[0, 2, 1, 3, 4], 2),
            (&[0, 1, 2, 4, 3], 4),
            (&[0, 1, 1, 2, 3, 4], 3),
            (&[0, 1, 2, 3, 4, 0], 6),
            (&[4, 3, 2, 1, 0], 2),
            (&[3, 4, 0, 1, 2], 3),
            (&[0, 1, 3, 4], 3),
        ] {
            assert_corrupt(&inner, positions, at).await;
        }
        // An earlier state cannot be told from the current one.
        assert_accepted(&inner, &[0, 1, 2]).await;
        assert_accepted(&inner, &[]).await;
    }
}

#[tokio::test]
async fn entries_of_several_epochs_stay_in_their_order() {
    let inner = Hostile::default();
    for texts in [["0", "1"], ["2", "3"], ["4", "5"]] {
        // Each run has its own handle, and not all load the session first.
        let store = encrypted(inner.clone());
        if texts[0] == "4" {
            load(&store, Load::all()).await.unwrap();
        }
        let epoch = store.claim(&key(1)).await.unwrap();
        append(&store, epoch, &texts).await;
    }
    assert_eq!(fresh(&inner).await.unwrap(), ["0", "1", "2", "3", "4", "5"]);
    assert_corrupt(&inner, &[2, 3, 0, 1, 4, 5], 3).await;
    assert_corrupt(&inner, &[0, 2, 1, 3, 4, 5], 3).await;
    assert_corrupt(&inner, &[0, 1, 2, 3, 0, 4, 5], 5).await;
    // A run that has loaded the session notices that its end is missing.
    assert_corrupt(&inner, &[0, 1, 2, 4, 5], 4).await;
}

#[tokio::test]
async fn pages_in_the_middle_are_checked_from_their_first_entry_on() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    append(&store, epoch, &["0", "1", "2", "3", "4", "5"]).await;
    let from = |number: u64| Load::all().after(Sequence::new(number));
    let middle = load(&encrypted(inner.clone()), from(3)).await.unwrap();
    assert_eq!(middle, ["3", "4", "5"]);
    inner.show(&[0, 1, 2, 3, 5, 4]).await;
    let error = load(&encrypted(inner.clone()), from(3)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);

    // Pages of one handle are checked together, also after a failed one.
    for positions in [[2, 3, 0, 1, 4, 5], [0, 1, 4, 5, 2, 3], [0, 1, 3, 2, 4, 5]] {
        inner.show(&positions).await;
        let store = encrypted(inner.clone());
        let (mut pages, mut errors) = (Vec::new(), 0);
        for after in [0, 2, 2, 4, 4] {
            match load(&store, from(after).limit(2)).await {
                Ok(page) => pages.push(page),
                Err(error) => {
                    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
                    errors += 1;
                }
            }
        }
        assert!(errors >= 2, "{positions:?}: {pages:?}");
    }
    // The right order has right pages.
    inner.show(&[0, 1, 2, 3, 4, 5]).await;
    let store = encrypted(inner.clone());
    for (after, page) in [(0, ["0", "1"]), (2, ["2", "3"]), (2, ["2", "3"]), (4, ["4", "5"])] {
        assert_eq!(load(&store, from(after).limit(2)).await.unwrap(), page);
    }
}

#[tokio::test]
async fn short_pages_of_a_store_do_not_hide_the_order() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    append(&store, epoch, &["0", "1", "2"]).await;
    // A page of the store ends at its own limit; the handle asks for the rest.
    let moved = Load::all().max_bytes(1);
    inner.show(&[1, 0, 2]).await;
    let store = encrypted(inner.clone());
    assert_eq!(load(&store, moved).await.unwrap(), ["1"]);
    let error = load(&store, moved.after(Sequence::new(1))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn lost_acknowledgements_do_not_break_the_chain() {
    for fault in [Fault::LosesRequest, Fault::LosesAcknowledgement] {
        let inner = Hostile::default();
        let store = encrypted(inner.clone());
        let epoch = store.claim(&key(1)).await.unwrap();
        append(&store, epoch, &["0"]).await;
        *inner.faults.lock().unwrap() = vec![fault, fault];
        for _ in 0..2 {
            let error = try_append(&store, epoch, &["1", "2"]).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        }
        if fault == Fault::LosesAcknowledgement {
            // A host that finds the entries in the store goes on after them.
            assert_eq!(load(&store, Load::all()).await.unwrap(), ["0", "1", "2"]);
            append(&store, epoch, &["3"]).await;
        }
        append(&store, epoch, &["1", "2", "3", "4"]).await;
        append(&store, epoch, &["5"]).await;
        assert_eq!(fresh(&inner).await.unwrap(), ["0", "1", "2", "3", "4", "5"], "{fault:?}");
        assert_eq!(load(&store, Load::all()).await.unwrap().len(), 6);
        for positions in [[0, 2, 1, 3, 4, 5], [1, 0, 2, 3, 4, 5], [0, 1, 2, 3, 5, 4]] {
            inner.show(&positions).await;
            let error = fresh(&inner).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{fault:?} {positions:?}");
        }
    }
}

#[tokio::test]
async fn delayed_requests_do_not_break_the_chain() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    *inner.faults.lock().unwrap() = vec![Fault::DelaysRequest];
    try_append(&store, epoch, &["0", "1", "2"]).await.unwrap_err();
    append(&store, epoch, &["0"]).await;
    let delayed = inner.delayed.lock().unwrap().clone();
    inner.inner.append(&key(1), Append::new(&delayed).epoch(epoch)).await.unwrap();
    append(&store, epoch, &["1", "2", "3"]).await;
    assert_eq!(fresh(&inner).await.unwrap(), ["0", "1", "2", "3"]);
    assert_corrupt(&inner, &[0, 2, 1, 3], 2).await;
    assert_corrupt(&inner, &[0, 1, 3, 2], 3).await;
}

#[tokio::test]
async fn recovery_with_the_epoch_of_an_ended_run_is_in_the_chain() {
    let inner = Hostile::default();
    let run = encrypted(inner.clone());
    let epoch = run.claim(&key(1)).await.unwrap();
    append(&run, epoch, &["0", "1"]).await;
    let recovery = encrypted(inner.clone());
    assert_eq!(load(&recovery, Load::all()).await.unwrap(), ["0", "1"]);
    append(&recovery, epoch, &["0", "1", "2"]).await;
    append(&recovery, epoch, &["3"]).await;
    assert_eq!(fresh(&inner).await.unwrap(), ["0", "1", "2", "3"]);
    for positions in [[0, 2, 1, 3], [2, 3, 0, 1], [0, 1, 3, 2]] {
        inner.show(&positions).await;
        assert_eq!(fresh(&inner).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
    // The run was not at its end after all, and both write.
    *inner.forged.lock().unwrap() = None;
    append(&run, epoch, &["4"]).await;
    append(&recovery, epoch, &["5"]).await;
    append(&run, epoch, &["6"]).await;
    assert_eq!(fresh(&inner).await.unwrap(), ["0", "1", "2", "3", "4", "5", "6"]);
}

#[tokio::test]
async fn transcripts_of_a_session_have_their_own_chains() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    let sub = |text: &str| NewEntry::new(Some(subpath()), text, 0).unwrap();
    for number in [0, 10] {
        let text = |at: u32| (number + at).to_string();
        let batch = [entry(&text(0)), sub(&text(1)), entry(&text(2)), sub(&text(3))];
        store.append(&key(1), Append::new(&batch).epoch(epoch)).await.unwrap();
    }
    assert_eq!(fresh(&inner).await.unwrap().len(), 8);
    let only = subpath();
    for (scope, count) in [(Load::main(), 4), (Load::subpath(&only), 4)] {
        assert_eq!(load(&encrypted(inner.clone()), scope).await.unwrap().len(), count);
    }
    // Only the order within a transcript counts, and each is checked.
    assert_accepted(&inner, &[1, 3, 0, 2, 4, 6, 5, 7]).await;
    assert_corrupt(&inner, &[0, 3, 2, 1, 4, 5, 6, 7], 4).await;
    assert_corrupt(&inner, &[2, 1, 0, 3, 4, 5, 6, 7], 3).await;
    let error = load(&encrypted(inner.clone()), Load::main()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

/// Entries of a transcript other than the requested one are not returned.
#[tokio::test]
async fn entries_of_another_transcript_are_corrupt() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let entries = [entry("0"), NewEntry::new(Some(subpath()), "1", 0).unwrap()];
    store.append(&key(1), Append::new(&entries)).await.unwrap();
    let stored = inner.stored().await;
    let only = subpath();
    for (requested, returned) in [(Load::main(), &stored[1]), (Load::subpath(&only), &stored[0])] {
        let page = EntryPage::new(vec![returned.clone()], false);
        let error = load(&encrypted(Always(page)), requested).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{requested:?}");
    }
    // Nor is an entry before the requested ones.
    let page = EntryPage::new(vec![stored[0].clone()], false);
    let after = Load::all().after(Sequence::new(7));
    let error = load(&encrypted(Always(page)), after).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
}

/// Returns the same page to every load.
struct Always(EntryPage);

impl SessionStore for Always {
    fn claim<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        unreachable!()
    }

    fn append<'a>(&'a self, _: &'a SessionKey, _: Append<'a>) -> StoreFuture<'a, Appended> {
        unreachable!()
    }

    fn load<'a>(&'a self, _: &'a SessionKey, _: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async { Ok(self.0.clone()) })
    }

    fn list<'a>(&'a self, _: &'a ProjectKey, _: List<'a>) -> StoreFuture<'a, SessionList> {
        unreachable!()
    }

    fn subpaths<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        unreachable!()
    }

    fn delete<'a>(&'a self, _: &'a SessionKey, _: Option<&'a Subpath>) -> StoreFuture<'a, ()> {
        unreachable!()
    }
}

#[tokio::test]
async fn deletions_and_copies_do_not_break_the_chain() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    append(&store, epoch, &["0", "1"]).await;
    // By another host, while the run goes on.
    inner.inner.delete(&key(1), None).await.unwrap();
    store.append(&key(1), Append::new(&[entry("\"title\"")])).await.unwrap();
    append(&store, epoch, &["2", "3"]).await;
    assert_eq!(fresh(&inner).await.unwrap(), ["\"title\"", "2", "3"]);
    // By the same handle.
    store.delete(&key(1), None).await.unwrap();
    append(&store, epoch, &["0", "4"]).await;
    assert_eq!(load(&store, Load::all()).await.unwrap(), ["0", "4"]);

    // In a copy of the stored texts, epochs start again.
    let later = store.claim(&key(1)).await.unwrap();
    append(&store, later, &["5"]).await;
    let copy = Hostile::default();
    for stored in inner.stored().await {
        let copied = NewEntry::with_id(stored.subpath, stored.id, stored.text).unwrap();
        copy.inner.append(&key(1), Append::new(&[copied])).await.unwrap();
    }
    let store = encrypted(copy.clone());
    assert_eq!(load(&store, Load::all()).await.unwrap(), ["0", "4", "5"]);
    let first = store.claim(&key(1)).await.unwrap();
    assert!(first < later);
    append(&store, first, &["6", "7"]).await;
    assert_eq!(fresh(&copy).await.unwrap(), ["0", "4", "5", "6", "7"]);
    assert_corrupt(&copy, &[0, 1, 3, 2, 4], 3).await;
}

#[tokio::test]
async fn entries_without_an_epoch_may_be_anywhere_but_only_once() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    append(&store, epoch, &["0", "1"]).await;
    store.append(&key(1), Append::new(&[entry("\"title\"")])).await.unwrap();
    append(&store, epoch, &["3"]).await;
    assert_accepted(&inner, &[0, 1, 2, 3]).await;
    assert_accepted(&inner, &[2, 0, 1, 3]).await;
    assert_corrupt(&inner, &[0, 1, 2, 3, 2], 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_appends_are_in_the_chain() {
    let inner = Hostile::default();
    let store = encrypted(inner.clone());
    let epoch = store.claim(&key(1)).await.unwrap();
    let mut appends = tokio::task::JoinSet::new();
    for number in 0..50 {
        let store = store.clone();
        appends.spawn(async move {
            append(&store, epoch, &[&number.to_string(), &(100 + number).to_string()]).await;
        });
    }
    appends.join_all().await;
    assert_eq!(fresh(&inner).await.unwrap().len(), 100);
}

/// The texts of a session that a version without the chain has stored, with an epoch.
const FIRST_FORMAT: [(&str, &str); 2] = [
    (
        "2778aa5525074e311c94462a9490adb5.0",
        r#"{"v":1,"k":"key-1","n":"nXPBtJDNadVX0/atqEf5s8lByP7o3Njk","c":"3aDmGoNDQMUO77xKsJAdDET/hBUGh+NrN8WJRthKYmnBi0JQl6TzM0bhv5d5duQJOKUFoznjbcmTDQ"}"#,
    ),
    (
        "5c77034e160297361d89ff1cb9247399.0",
        r#"{"v":1,"k":"key-1","n":"6PBMA054rad8uwJN5zKxvw1DhJ4s40A3","c":"iNsNGNqWvgtEvVVTOGIKdg/LJHk5KVASPHY8Oa/+AOv0DhtZaQP4CZeyioGfW3EhtTnRtknQeb68fQ"}"#,
    ),
];

#[tokio::test]
async fn entries_of_the_first_format_are_read_without_the_chain() {
    let inner = Hostile::default();
    for (id, text) in FIRST_FORMAT {
        let old = NewEntry::with_id(None, EntryId::new(id).unwrap(), text).unwrap();
        inner.inner.append(&key(1), Append::new(&[old])).await.unwrap();
    }
    let store = encrypted(inner.clone());
    assert_eq!(load(&store, Load::all()).await.unwrap(), ["\"old 0\"", "\"old 1\""]);
    // A session goes on in the new format, and known entries are recognized.
    let epoch = store.claim(&key(1)).await.unwrap();
    append(&store, epoch, &["\"old 1\"", "2", "3"]).await;
    assert_eq!(fresh(&inner).await.unwrap(), ["\"old 0\"", "\"old 1\"", "2", "3"]);
    assert_accepted(&inner, &[1, 0, 2, 3]).await;
    assert_corrupt(&inner, &[0, 1, 3, 2], 4).await;
    // The format is bound to the entry.
    for at in [0, 2] {
        let mut changed = inner.stored().await;
        let text = changed[at].text.replace(r#"{"v":1"#, r#"{"v":9"#);
        let text = text.replace(r#"{"v":2"#, r#"{"v":1"#).replace(r#"{"v":9"#, r#"{"v":2"#);
        changed[at].text = text.into();
        *inner.forged.lock().unwrap() = Some(changed);
        assert_eq!(fresh(&inner).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    }
}
