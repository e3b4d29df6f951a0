//! What the store does on a server that works.

use claude_agent_kit::store::{
    Append, List, Load, NewEntry, Sequence, SessionStore, StoreErrorKind, Subpath,
};
use claude_agent_store::{Encrypted, EncryptionKey, Keyring, S3Store};
use claude_session_store::conformance;
use libtest_mimic::Trial;
use tokio::task::JoinSet;

use super::fixture::{entry, key, long_entry, open, options, texts, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("s3_store_conforms", s3_store_conforms),
        trial("encrypted_store_in_s3_conforms", encrypted_store_in_s3_conforms),
        trial("sessions_survive_the_store", sessions_survive_the_store),
        trial("hosts_append_to_one_session", hosts_append_to_one_session),
        trial("long_pages_are_read_from_several_parts", long_pages_are_read_from_several_parts),
        trial("huge_append_is_split_into_parts", huge_append_is_split_into_parts),
        trial("forgotten_sessions_are_read_again", forgotten_sessions_are_read_again),
        trial("lists_read_only_what_has_changed", lists_read_only_what_has_changed),
        trial("summaries_may_contain_nul", summaries_may_contain_nul),
    ]
}

async fn s3_store_conforms() {
    conformance::run(open).await.assert();
}

async fn encrypted_store_in_s3_conforms() {
    let make = async || {
        let current = EncryptionKey::new("key-1", &[1; 32]).unwrap();
        Encrypted::new(open().await, Keyring::new(&[7; 32], current))
    };
    conformance::run(make).await.assert();
}

async fn sessions_survive_the_store() {
    let options = options();
    let store = S3Store::open_with(options.clone()).await.unwrap();
    let old = store.claim(&key(1)).await.unwrap();
    let batch = [entry("1"), entry("2")];
    let append = Append::new(&batch).epoch(old).summary(Sequence::new(0), "{}");
    store.append(&key(1), append).await.unwrap();
    let row = store.list(key(1).project_key(), List::new()).await.unwrap();
    drop(store);

    let store = S3Store::open_with(options).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2"]);
    assert_eq!(store.list(key(1).project_key(), List::new()).await.unwrap(), row);
    assert!(store.claim(&key(1)).await.unwrap() > old);
    assert_eq!(store.append(&key(1), Append::new(&batch)).await.unwrap().skipped, 2);
}

/// 16 writers on four hosts, while a fifth one takes over.
async fn hosts_append_to_one_session() {
    let options = options();
    let reader = S3Store::open_with(options.clone()).await.unwrap();
    let old = reader.claim(&key(1)).await.unwrap();
    let mut writers = JoinSet::new();
    for host in 0..4 {
        let store = S3Store::open_with(options.clone()).await.unwrap();
        for writer in 0..4 {
            let store = store.clone();
            writers.spawn(async move {
                for number in 0..100 {
                    let texts = [0, 1].map(|at| format!("[{host},{writer},{number},{at}]"));
                    let batch = texts.each_ref().map(|text| entry(text));
                    loop {
                        match store.append(&key(1), Append::new(&batch).epoch(old)).await {
                            Ok(_) => break,
                            Err(error) if error.kind() == StoreErrorKind::Superseded => {
                                return number;
                            }
                            // The others may always be faster on a slow machine.
                            Err(error) => assert!(error.is_retryable(), "{error}"),
                        }
                    }
                }
                100
            });
        }
    }
    let load = Load::all().after(Sequence::new(40));
    while reader.load(&key(1), load).await.unwrap().entries.is_empty() {
        tokio::task::yield_now().await;
    }
    while !reader.claim(&key(1)).await.is_ok_and(|epoch| epoch > old) {}
    let at_the_claim = texts(&reader, &key(1)).await;
    let acknowledged: usize = writers.join_all().await.into_iter().sum();
    let found = texts(&reader, &key(1)).await;
    assert_eq!(found.len(), at_the_claim.len());
    assert_eq!(found.len(), acknowledged * 2);
    assert!(found.chunks(2).all(|pair| pair[0].replace(",0]", ",1]") == pair[1]));
}

async fn long_pages_are_read_from_several_parts() {
    let store = open().await;
    let a = Subpath::new("subagents/a").unwrap();
    let mut all = Vec::new();
    for number in 0..300_u32 {
        let bytes = if number % 50 == 0 { 700_000 } else { 3_000 };
        let text = format!("[{number},{:?}]", "x".repeat(bytes));
        let subpath = (number % 3 == 0).then(|| a.clone());
        all.push(NewEntry::new(subpath, text, 0).unwrap());
    }
    for batch in all.chunks(7) {
        store.append(&key(1), Append::new(batch)).await.unwrap();
    }
    for scope in [Load::all(), Load::main(), Load::subpath(&a)] {
        for (after, limit, max_bytes) in [
            (0, usize::MAX, usize::MAX),
            (0, 1, usize::MAX),
            (0, 100, usize::MAX),
            (0, usize::MAX, 0),
            (0, usize::MAX, 1_000_000),
            (150, 20, 800_000),
            (299, 1, 1),
            (300, 1, 1),
        ] {
            let load = scope.after(Sequence::new(after)).limit(limit).max_bytes(max_bytes);
            let page = store.load(&key(1), load).await.unwrap();
            let wanted: Vec<&NewEntry> = (1..)
                .zip(&all)
                .filter(|(sequence, _)| *sequence > after)
                .map(|(_, entry)| entry)
                .filter(|entry| match load.subpath {
                    claude_agent_kit::store::LoadScope::All => true,
                    claude_agent_kit::store::LoadScope::Main => entry.subpath().is_none(),
                    claude_agent_kit::store::LoadScope::Subpath(_) => entry.subpath().is_some(),
                })
                .collect();
            let mut bytes = 0;
            let fits = wanted.iter().take(limit.max(1)).take_while(|entry| {
                bytes += entry.text().len();
                bytes <= max_bytes
            });
            let expected = fits.count().max(1).min(wanted.len());
            assert_eq!(page.entries.len(), expected, "{load:?}");
            assert_eq!(page.more, expected < wanted.len(), "{load:?}");
            assert!(page.entries.iter().zip(wanted).all(|(found, new)| found.text == *new.text()));
        }
    }
}

async fn huge_append_is_split_into_parts() {
    let store = open().await;
    let batch: Vec<NewEntry> = (0..40_000).map(|number| long_entry(number, 500)).collect();
    store.append(&key(1), Append::new(&batch)).await.unwrap();
    let found = texts(&store, &key(1)).await;
    assert_eq!(found.len(), batch.len());
    assert!(found.iter().zip(&batch).all(|(found, new)| **found == **new.text()));
    let again = store.append(&key(1), Append::new(&batch)).await.unwrap();
    assert_eq!(again.skipped, 40_000);
}

/// With a cache for one session, two hosts in turn.
async fn forgotten_sessions_are_read_again() {
    let options = options().cache_bytes(1);
    let store = S3Store::open_with(options.clone()).await.unwrap();
    let other = S3Store::open_with(options).await.unwrap();
    for number in 0..30 {
        for session in 1..=2 {
            let store = if number % 3 == 0 { &other } else { &store };
            let batch = [long_entry(number, 30_000), long_entry(number + 1, 30_000)];
            let appended = store.append(&key(session), Append::new(&batch)).await.unwrap();
            assert_eq!(appended.skipped, u64::from(number > 0));
        }
    }
    for session in 1..=2 {
        assert_eq!(texts(&store, &key(session)).await.len(), 31);
    }
}

async fn lists_read_only_what_has_changed() {
    let options = options();
    let store = S3Store::open_with(options.clone()).await.unwrap();
    let other = S3Store::open_with(options).await.unwrap();
    for number in 0..30 {
        let batch = [entry("1")];
        let append = Append::new(&batch).summary(Sequence::new(0), "{}");
        store.append(&key(number), append).await.unwrap();
    }
    let project = key(1).project_key().clone();
    let requests = async |limit: usize| {
        let before = other.request_count();
        let list = other.list(&project, List::new().limit(limit)).await.unwrap();
        (list, other.request_count() - before)
    };
    assert_eq!(requests(5).await.1, 1 + 30 + 5);
    assert_eq!(requests(5).await.1, 1 + 5);
    store.append(&key(7), Append::new(&[entry("2")])).await.unwrap();
    store.delete(&key(8), None).await.unwrap();
    let (list, count) = requests(5).await;
    assert_eq!(count, 1 + 2 + 5);
    assert_eq!(list.sessions[0].session, *key(7).session());
    // Between two pages, a session is modified and another one is deleted.
    store.append(&key(20), Append::new(&[entry("2")])).await.unwrap();
    store.delete(&key(21), None).await.unwrap();
    let mut found: Vec<_> = list.sessions.into_iter().map(|row| row.session).collect();
    let mut cursor = list.next;
    while let Some(at) = cursor {
        let page = other.list(&project, List::new().limit(5).cursor(&at)).await.unwrap();
        assert!(page.sessions.iter().all(|row| row.summary.is_some()));
        found.extend(page.sessions.into_iter().map(|row| row.session));
        cursor = page.next;
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 27);
    assert!(![8, 20, 21].iter().any(|number| found.contains(key(*number).session())));
}

async fn summaries_may_contain_nul() {
    let store = open().await;
    let long = format!("a\0b{}", "x".repeat(50_000));
    let batch = [entry("1")];
    let append = Append::new(&batch).summary(Sequence::new(0), &long);
    store.append(&key(1), append).await.unwrap();
    let list = store.list(key(1).project_key(), List::new()).await.unwrap();
    assert_eq!(list.sessions[0].summary.as_ref().unwrap().data, long);
}
