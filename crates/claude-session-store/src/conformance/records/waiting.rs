//! Waiting for changes.

use std::time::Duration;

use crate::record::{Record, RecordChange, RecordFilter, RecordWatch};
use tokio::task::JoinSet;

use super::fixture::{
    Failure, Fixture, KIND, Outcome, SCOPE, changed, expect, key, pending, record, wait,
};

/// A wait that takes longer does not end. Far more than a store needs that is asked again and again.
const BOUND: Duration = Duration::from_secs(30);

async fn bounded<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, Failure> {
    let ended = tokio::time::timeout(BOUND, wait).await;
    ended.map_err(|_| Failure(format!("{what} did not end within {BOUND:?}")))
}

pub(super) async fn change_by_another_host_ends_the_wait(fixture: Fixture) -> Outcome {
    let mut known: Vec<Record> = Vec::new();
    for number in 0..8 {
        known.push(fixture.insert(pending(number)).await?);
    }
    // Several changes, so that a store also wakes waiters that it has woken before.
    for round in 0..3 {
        let mut waits = JoinSet::new();
        for (host, known) in (0..).zip(known.clone()) {
            let host = fixture.hosts[host % 2].clone();
            waits.spawn(async move { changed(&*host, &known).await });
        }
        let body = format!("round {round}");
        for record in &mut known {
            tokio::task::yield_now().await;
            let next = [RecordChange::update(record, &*body).open()];
            expect("the change", &fixture.write(&next).await?, &true)?;
            record.version += 1;
        }
        while let Some(found) = bounded("a wait", waits.join_next()).await? {
            expect("the change that was returned", &*found??.body, &*body)?;
        }
    }
    Ok(())
}

pub(super) async fn wait_for_a_known_change_ends(fixture: Fixture) -> Outcome {
    let first = fixture.insert(pending(1)).await?;
    fixture.update(&first, "next").await?;
    for (number, version) in [(1, 0), (1, 1), (1, 3), (2, 1)] {
        let key = key(number);
        for host in 0..2 {
            let watch = RecordWatch::Record { key: &key, version };
            let wait = wait(fixture.host(host), watch);
            bounded("a wait for an earlier change", wait).await??;
        }
    }
    Ok(())
}

pub(super) async fn dropped_wait_has_no_effect(fixture: Fixture) -> Outcome {
    let first = fixture.insert(pending(1)).await?;
    let key = key(1);
    for host in 0..100 {
        let watch = match host % 3 {
            0 => RecordWatch::Kind(KIND),
            1 => RecordWatch::Scope { scope: SCOPE, kind: KIND },
            _ => RecordWatch::Record { key: &key, version: 1 },
        };
        let wait = fixture.host(host).records_changed(watch);
        // Whether it ends does not matter.
        drop(tokio::time::timeout(Duration::from_millis(1), wait).await);
    }
    fixture.update(&first, "next").await?;
    let found = bounded("a wait", changed(fixture.host(1), &first)).await??;
    expect("the change", &&*found.body, &"next")
}

pub(super) async fn watcher_of_a_scope_misses_no_change(fixture: Fixture) -> Outcome {
    for number in 0..6 {
        let mut waits = JoinSet::new();
        let watcher = fixture.clone();
        waits.spawn(async move { opened(&watcher, number).await });
        // The watcher may wait already or not.
        tokio::task::yield_now().await;
        // A new record, and one that is opened by a change.
        if number % 2 == 0 {
            fixture.insert(pending(number)).await?;
        } else {
            let closed = fixture.insert(record(number, 1, "{}")).await?;
            fixture.update(&closed, "opened").await?;
        }
        while let Some(found) = bounded("a wait for a record", waits.join_next()).await? {
            found??;
        }
    }
    Ok(())
}

/// Waits until a record is open.
async fn opened(fixture: &Fixture, number: u32) -> Outcome {
    let watch = if number.is_multiple_of(3) {
        RecordWatch::Kind(KIND)
    } else {
        RecordWatch::Scope { scope: SCOPE, kind: KIND }
    };
    let key = key(number);
    loop {
        // Begins before the list is read, so that a change after that wakes it.
        let host = fixture.host(1);
        let changed = host.records_changed(watch);
        let interval = host.poll_interval();
        let open = fixture.list(RecordFilter::OpenIn(SCOPE), 100).await?;
        if open.iter().any(|record| record.key == key) {
            return Ok(());
        }
        tokio::time::timeout(interval, changed).await.unwrap_or(Ok(()))?;
    }
}
