//! What requests cost. Not part of the test run: the figures depend on the machine.
//!
//! `cargo test --release -p claude-agent-store --all-features --test s3 -- --ignored figures`

use std::fs;
use std::time::Instant;

use claude_agent_kit::store::{Append, List, Load, NewEntry, SessionStore};
use claude_agent_store::S3Store;
use libtest_mimic::Trial;
use tokio::task::JoinSet;

use super::fixture::{entry, key, long_entry, open, trial};

const APPENDS: u32 = 1_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("figures_of_appends_and_loads", figures_of_appends_and_loads).with_ignored_flag(true),
        trial("figures_of_lists", figures_of_lists).with_ignored_flag(true),
    ]
}

async fn figures_of_appends_and_loads() {
    let store = open().await;
    for (round, writers) in [32, 1, 32].into_iter().enumerate() {
        let requests = store.request_count();
        let per_second = appends(&store, u32::try_from(round).unwrap() * 100, writers).await;
        let requests = store.request_count() - requests;
        println!("{writers} writers: {per_second:.0} appends per second, {requests} requests");
    }
    load(&store).await;
}

/// Appends batches of three entries of 500 bytes, each writer to a session of its own.
async fn appends(store: &S3Store, first: u32, writers: u32) -> f64 {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        tasks.spawn(async move {
            let epoch = store.claim(&key(first + writer)).await.unwrap();
            for number in 0..APPENDS / writers {
                let batch = [0, 1, 2].map(|at| long_entry(number * 3 + at, 490));
                let append = Append::new(&batch).epoch(epoch);
                store.append(&key(first + writer), append).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    f64::from(APPENDS) / start.elapsed().as_secs_f64()
}

/// The memory of this process that is in use, in kilobytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Appends 100 MB in batches of 100 entries of 2 KB, and loads them in default pages by another host.
async fn load(store: &S3Store) {
    let start = Instant::now();
    for batch in 0..500 {
        let entries: Vec<NewEntry> =
            (0..100).map(|at| long_entry(batch * 100 + at, 1_990)).collect();
        store.append(&key(9_999), Append::new(&entries)).await.unwrap();
    }
    println!("100 MB appended in {:.2} s", start.elapsed().as_secs_f64());
    let (before, requests) = (memory(), store.request_count());
    let (start, mut bytes, mut load, mut most) = (Instant::now(), 0, Load::all(), 0);
    loop {
        let page = store.load(&key(9_999), load).await.unwrap();
        bytes += page.entries.iter().map(|entry| entry.text.len()).sum::<usize>();
        load.after = page.entries.last().map_or(load.after, |entry| entry.sequence);
        most = most.max(memory());
        if !page.more {
            break;
        }
    }
    println!(
        "{} MB loaded in {:.2} s, {} requests, {} KB more memory",
        bytes / 1_000_000,
        start.elapsed().as_secs_f64(),
        store.request_count() - requests,
        most.saturating_sub(before)
    );
}

async fn figures_of_lists() {
    let store = open().await;
    let mut tasks = JoinSet::new();
    for writer in 0..16 {
        let store = store.clone();
        tasks.spawn(async move {
            for number in 0..625 {
                let key = key(writer * 625 + number);
                store.append(&key, Append::new(&[entry("1")])).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    for round in ["first", "second"] {
        let (start, requests) = (Instant::now(), store.request_count());
        let first = store.list(key(1).project_key(), List::new()).await.unwrap();
        println!(
            "{round} page of 10,000 sessions: {:.2} s, {} requests",
            start.elapsed().as_secs_f64(),
            store.request_count() - requests
        );
        assert_eq!(first.sessions.len(), 100);
    }
    let (start, mut count, mut cursor) = (Instant::now(), 0, None::<String>);
    loop {
        let list = List::new().limit(1_000);
        let list = cursor.as_deref().map_or(list, |cursor| list.cursor(cursor));
        let page = store.list(key(1).project_key(), list).await.unwrap();
        count += page.sessions.len();
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    println!("all pages of {count} sessions: {:.2} s", start.elapsed().as_secs_f64());
}
