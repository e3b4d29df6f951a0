//! Parts, their compaction, and the number of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use claude_agent_kit::store::{Append, Load, NewEntry, SessionStore, Subpath};
use claude_agent_store::S3Store;
use libtest_mimic::Trial;

use super::fixture::{
    entry, key, long_entry, new_prefix, objects, options_at, parts_of, texts, trial, with_server,
};
use super::relay::{Action, Relay};
use tests_servers::s3::Server;

/// An append of this length is always a part of its own.
const PART: usize = 600 << 10;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("turns_take_at_most_three_requests", turns_take_at_most_three_requests),
        trial("number_of_parts_is_bounded", number_of_parts_is_bounded),
        trial(
            "readers_see_all_entries_during_compactions",
            readers_see_all_entries_during_compactions,
        ),
        trial(
            "host_can_be_killed_at_every_request_of_a_compaction",
            host_can_be_killed_at_every_request_of_a_compaction,
        ),
        trial("deletions_remove_all_objects", deletions_remove_all_objects),
        trial(
            "deleted_transcript_is_removed_from_all_parts",
            deleted_transcript_is_removed_from_all_parts,
        ),
    ]
}

/// 100 turns of several sizes, by a host that has just been started for each size.
async fn turns_take_at_most_three_requests() {
    for (number, bytes) in [100, 3_000, 20_000, 80_000, 300_000, 900_000].into_iter().enumerate() {
        let relay = Relay::start(with_server(Server::port)).await;
        let prefix = new_prefix();
        let store = S3Store::open_with(options_at(relay.port(), &prefix)).await.unwrap();
        relay.take();
        let key = key(u32::try_from(number).unwrap());
        let epoch = store.claim(&key).await.unwrap();
        let mut last = claude_agent_kit::store::Sequence::new(0);
        for turn in 0..100 {
            let batch = [0, 1, 2].map(|at| long_entry(turn * 3 + at, bytes / 3));
            let append = Append::new(&batch).epoch(epoch).summary(last, r#"{"title":"x"}"#);
            last = store.append(&key, append).await.unwrap().last;
        }
        let requests = relay.take();
        let lists = requests.iter().filter(|it| it.path.contains("list-type")).count();
        println!("turns of {bytes} bytes: {} requests for 100, {lists} lists", requests.len());
        assert!(requests.len() <= 300, "{}", requests.len());
        // Only compactions list anything.
        assert!(lists <= 10, "{lists}");
        assert_eq!(store.request_count() - 6, requests.len() as u64);
    }
}

async fn number_of_parts_is_bounded() {
    let prefix = new_prefix();
    let store = S3Store::open_with(options_at(with_server(Server::port), &prefix)).await.unwrap();
    let mut bytes = 0;
    for turn in 0..60 {
        // Large parts between small ones.
        let size = if turn % 7 == 0 { 3 << 20 } else { PART };
        store.append(&key(1), Append::new(&[long_entry(turn, size)])).await.unwrap();
        bytes += size;
        if turn % 10 == 9 {
            let parts = parts_of(&prefix);
            assert!(parts <= 16 + bytes / (2 << 20) + 1, "{parts} parts of {bytes} bytes");
        }
    }
    assert_eq!(texts(&store, &key(1)).await.len(), 60);
}

async fn readers_see_all_entries_during_compactions() {
    let prefix = new_prefix();
    let options = options_at(with_server(Server::port), &prefix);
    let writer = S3Store::open_with(options.clone()).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, is_done) = (S3Store::open_with(options).await.unwrap(), is_done.clone());
        tokio::spawn(async move {
            let (mut count, mut passes) = (0, 0);
            loop {
                let is_last = is_done.load(Ordering::SeqCst);
                // Dense, as `texts` checks.
                let found = texts(&store, &key(1)).await.len();
                assert!(found >= count, "{found} after {count}");
                (count, passes) = (found, passes + 1);
                if is_last {
                    return (count, passes);
                }
            }
        })
    };
    for turn in 0..60 {
        writer.append(&key(1), Append::new(&[long_entry(turn, PART)])).await.unwrap();
    }
    is_done.store(true, Ordering::SeqCst);
    let (count, passes) = reader.await.unwrap();
    assert_eq!(count, 60);
    assert!(passes > 3, "{passes}");
}

/// Appends until the next append compacts, and returns the number of entries.
async fn fill(store: &S3Store) -> u32 {
    for turn in 0..22 {
        store.append(&key(1), Append::new(&[long_entry(turn, PART)])).await.unwrap();
    }
    22
}

async fn host_can_be_killed_at_every_request_of_a_compaction() {
    let server = with_server(Server::port);
    let relay = Relay::start(server).await;
    let store = S3Store::open_with(options_at(relay.port(), &new_prefix())).await.unwrap();
    let number = fill(&store).await;
    relay.take();
    store.append(&key(1), Append::new(&[long_entry(number, PART)])).await.unwrap();
    let methods: Vec<String> = relay.take().into_iter().map(|it| it.method).collect();
    assert!(methods.len() > 10, "{methods:?}");
    // Of the reads, one is like the others.
    let first_read = methods.iter().skip(2).position(|it| it == "GET").map(|at| at + 2);
    let kills = (0..methods.len()).filter(|at| methods[*at] != "GET" || Some(*at) == first_read);
    for at in kills.collect::<Vec<_>>() {
        for action in [Action::Close, Action::LoseResponse] {
            let prefix = new_prefix();
            let relay = Relay::start(server).await;
            let store = S3Store::open_with(options_at(relay.port(), &prefix)).await.unwrap();
            let number = fill(&store).await;
            let mut count = 0;
            relay.set(move |_| {
                count += 1;
                match (count - 1_usize).cmp(&at) {
                    std::cmp::Ordering::Less => Action::Pass,
                    std::cmp::Ordering::Equal => action,
                    std::cmp::Ordering::Greater => Action::Close,
                }
            });
            let last = [long_entry(number, PART)];
            let result = store.append(&key(1), Append::new(&last)).await;
            let is_acknowledged = result.is_ok();
            drop(store);
            check_after_kill(&prefix, number, is_acknowledged, &format!("{at} {action:?}")).await;
        }
    }
}

/// Another host continues, and its compaction removes what the dead one has left.
async fn check_after_kill(prefix: &str, number: u32, is_acknowledged: bool, case: &str) {
    let store = S3Store::open_with(options_at(with_server(Server::port), prefix)).await.unwrap();
    let before = texts(&store, &key(1)).await.len();
    let expected = usize::try_from(number).unwrap() + usize::from(is_acknowledged);
    assert!(before >= expected, "{case}: {before} of {expected}");
    let last = [long_entry(number, PART)];
    let appended = store.append(&key(1), Append::new(&last)).await.unwrap();
    assert_eq!(appended.last.get(), u64::from(number) + 1, "{case}");
    for turn in number + 1..number + 22 {
        store.append(&key(1), Append::new(&[long_entry(turn, PART)])).await.unwrap();
    }
    let found = texts(&store, &key(1)).await;
    for (at, text) in found.iter().enumerate() {
        assert!(text.starts_with(&format!("[{at},")), "{case}: {}", &text[..8]);
    }
    assert_eq!(found.len(), usize::try_from(number).unwrap() + 22, "{case}");
    let parts = parts_of(prefix);
    assert!(parts <= 16 + found.len() * PART / (2 << 20), "{case}: {parts}");
}

async fn deletions_remove_all_objects() {
    let server = with_server(Server::port);
    let (prefix, relay) = (new_prefix(), Relay::start(server).await);
    let store = S3Store::open_with(options_at(relay.port(), &prefix)).await.unwrap();
    let epoch = store.claim(&key(1)).await.unwrap();
    let batch = [long_entry(1, PART), entry("2")];
    store.append(&key(1), Append::new(&batch)).await.unwrap();
    // A part whose head was never written.
    relay.set(|request| if request.is_head_write() { Action::Close } else { Action::Pass });
    store.append(&key(1), Append::new(&[long_entry(3, PART)])).await.unwrap_err();
    relay.set(|_| Action::Pass);
    assert_eq!(parts_of(&prefix), 2);
    store.delete(&key(1), None).await.unwrap();
    assert_eq!(objects(&prefix).len(), 1, "{:?}", objects(&prefix));
    assert_eq!(store.load(&key(1), Load::all()).await.unwrap().entries, []);
    // The head stays, for the epoch and the sequence numbers.
    assert!(store.claim(&key(1)).await.unwrap() > epoch);
    let appended = store.append(&key(1), Append::new(&batch)).await.unwrap();
    assert_eq!((appended.skipped, appended.sequences[0].get()), (0, 3));
}

async fn deleted_transcript_is_removed_from_all_parts() {
    let prefix = new_prefix();
    let options = options_at(with_server(Server::port), &prefix);
    let store = S3Store::open_with(options.clone()).await.unwrap();
    let other = S3Store::open_with(options).await.unwrap();
    let a = Subpath::new("subagents/a").unwrap();
    let of_a = |text: String| NewEntry::new(Some(a.clone()), text, 0).unwrap();
    for turn in 0..6 {
        let secret = of_a(format!("[{turn},\"planted {}\"]", "y".repeat(PART)));
        let batch = [long_entry(turn, PART), secret, long_entry(turn + 100, 10)];
        store.append(&key(1), Append::new(&batch)).await.unwrap();
    }
    store
        .append(&key(1), Append::new(&[of_a("\"planted\"".to_owned()), entry("7")]))
        .await
        .unwrap();
    assert_eq!(other.load(&key(1), Load::subpath(&a)).await.unwrap().entries.len(), 7);
    other.delete(&key(1), Some(&a)).await.unwrap();
    for path in objects(&prefix) {
        let text = with_server(|server| server.filer("GET", &path, "")).unwrap();
        assert!(!text.contains("planted"), "{path}");
    }
    for store in [&store, &other] {
        let page = store.load(&key(1), Load::all().max_bytes(usize::MAX)).await.unwrap();
        assert_eq!(page.entries.len(), 13);
        assert_eq!(store.subpaths(&key(1)).await.unwrap(), []);
    }
    // The entries are new ones for the host that had stored them.
    let again = [of_a("\"planted\"".to_owned()), entry("7")];
    let appended = store.append(&key(1), Append::new(&again)).await.unwrap();
    assert_eq!((appended.skipped, appended.sequences[0].get()), (1, 21));
}
