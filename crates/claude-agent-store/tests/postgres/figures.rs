//! What requests cost. Not part of the test run: the figures depend on the machine.
//!
//! `cargo test --release -p claude-agent-store --all-features --test postgres -- --ignored figures`

use std::fmt::Write as _;
use std::time::Instant;

use claude_agent_kit::store::{Append, Load, NewEntry, SessionStore};
use claude_agent_store::{PostgresOptions, PostgresStore};
use libtest_mimic::Trial;
use tokio::task::JoinSet;

use super::fixture::{key, trial};
use super::server::{PASSWORD, Server};

const APPENDS: u32 = 2_000;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("figures_of_appends_and_loads", figures_of_appends_and_loads).with_ignored_flag(true),
    ]
}

/// A server with the defaults of PostgreSQL, which syncs every commit to the disk.
async fn figures_of_appends_and_loads() {
    let server = Server::start_with(&["fsync=on", "synchronous_commit=on"]).unwrap();
    let options = PostgresOptions::new(&server.url()).unwrap().password(PASSWORD);
    let store = PostgresStore::open_with(options.max_connections(32)).await.unwrap();
    // The first round opens the connections.
    for (round, writers) in [32, 1, 32].into_iter().enumerate() {
        let per_second = appends(&store, u32::try_from(round).unwrap() * 100, writers).await;
        println!("{writers} writers: {per_second:.0} appends per second");
    }
    load(&store).await;
}

/// Appends batches of three entries of 500 bytes, each writer to a session of its own.
async fn appends(store: &PostgresStore, first: u32, writers: u32) -> f64 {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        tasks.spawn(async move {
            let epoch = store.claim(&key(first + writer)).await.unwrap();
            for number in 0..APPENDS / writers {
                let batch = [0, 1, 2].map(|at| entry(500, number * 3 + at));
                let append = Append::new(&batch).epoch(epoch);
                store.append(&key(first + writer), append).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    f64::from(APPENDS) / start.elapsed().as_secs_f64()
}

fn entry(bytes: usize, number: u32) -> NewEntry {
    // Not longer and longer runs of one letter, which PostgreSQL would compress.
    let mut text = String::with_capacity(bytes + 40);
    let mut state = u64::from(number) + 1;
    while text.len() < bytes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        write!(text, "{state:x} ").unwrap();
    }
    NewEntry::new(None, format!("{text:?}"), 0).unwrap()
}

/// Appends 100 MB in batches of 100 entries of 2 KB, and loads them in default pages.
async fn load(store: &PostgresStore) {
    let start = Instant::now();
    for batch in 0..500 {
        let entries: Vec<NewEntry> = (0..100).map(|at| entry(2_000, batch * 100 + at)).collect();
        store.append(&key(9_999), Append::new(&entries)).await.unwrap();
    }
    println!("100 MB appended in {:.2} s", start.elapsed().as_secs_f64());
    let (start, mut bytes, mut load) = (Instant::now(), 0, Load::all());
    loop {
        let page = store.load(&key(9_999), load).await.unwrap();
        bytes += page.entries.iter().map(|entry| entry.text.len()).sum::<usize>();
        load.after = page.entries.last().map_or(load.after, |entry| entry.sequence);
        if !page.more {
            break;
        }
    }
    println!("{} MB loaded in {:.2} s", bytes / 1_000_000, start.elapsed().as_secs_f64());
}
