//! Concurrent requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Append, Load, StoreErrorKind};
use tokio::task::JoinSet;

use super::fixture::{Failure, Fixture, Outcome, ensure, entries, entry, expect, texts};

const TASKS: u32 = 16;
const APPENDS: u32 = 12;
const ENTRIES: u32 = 3;

/// Appends the batches of one task: entries `[task, append, number]`.
async fn append_batches(fixture: Fixture, task: u32) -> Outcome {
    for append in 0..APPENDS {
        let batch: Vec<_> =
            (0..ENTRIES).map(|number| entry(&format!("[{task},{append},{number}]"))).collect();
        let appended = fixture.append(&batch).await?;
        expect("the skipped entries", &appended.skipped, &0)?;
        ensure!(appended.sequences.is_sorted(), "a batch is not stored in its order");
    }
    Ok(())
}

/// Waits for all tasks and returns the first failure.
async fn join(mut tasks: JoinSet<Outcome>) -> Outcome {
    while let Some(outcome) = tasks.join_next().await {
        outcome??;
    }
    Ok(())
}

/// Checks that every entry of [`append_batches`] occurs once, and in the order of its task.
fn check_order(found: &[String]) -> Outcome {
    let mut by_task: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for text in found {
        let (task, rest) = text.split_once(',').unwrap_or((text, ""));
        by_task.entry(task).or_default().push(rest);
    }
    expect("the number of tasks", &by_task.len(), &(TASKS as usize))?;
    let expected: Vec<String> = (0..APPENDS)
        .flat_map(|append| (0..ENTRIES).map(move |number| format!("{append},{number}]")))
        .collect();
    for found in by_task.values() {
        expect("the entries of a task", found, &expected)?;
    }
    Ok(())
}

pub(super) async fn concurrent_appends_store_every_entry_once(fixture: Fixture) -> Outcome {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(append_batches(fixture.clone(), task));
    }
    join(tasks).await?;
    check_order(&fixture.texts(Load::all()).await?)?;
    check_order(&fixture.texts(Load::main()).await?)
}

pub(super) async fn concurrent_copies_of_a_batch_are_stored_once(fixture: Fixture) -> Outcome {
    for round in 0..5 {
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let fixture = fixture.clone();
            tasks.spawn(async move {
                let texts = [1, 2, 3].map(|number| format!("[{round},{number}]"));
                fixture.append(&entries(&texts.each_ref().map(String::as_str))).await
            });
        }
        let (mut stored, mut found) = (0, Vec::new());
        while let Some(appended) = tasks.join_next().await {
            let appended = appended??;
            stored += 3 - appended.skipped;
            found.push(appended.sequences);
        }
        expect("the entries that were stored", &stored, &3)?;
        found.dedup();
        expect("the number of different sequence numbers", &found.len(), &1)?;
    }
    expect("the entries", &fixture.texts(Load::all()).await?.len(), &15)
}

/// A reader that continues after the last entry it has seen must not miss one: a sequence number may only
/// become visible after all smaller ones.
pub(super) async fn reader_sees_whole_batches_in_their_final_order(fixture: Fixture) -> Outcome {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(append_batches(fixture.clone(), task));
    }
    let mut seen = Vec::new();
    let mut after = Load::all().after;
    loop {
        let is_last = tasks.is_empty();
        let load = Load::all().after(after).limit(100_000);
        let page = fixture.store.load(&fixture.key, load).await?;
        after = page.entries.last().map_or(after, |entry| entry.sequence);
        let found = texts(&page.entries);
        let last_of_batch = format!(",{}]", ENTRIES - 1);
        let ends = found.iter().filter(|text| text.ends_with(&last_of_batch)).count();
        ensure!(
            found.len() == ends * ENTRIES as usize,
            "a reader saw a part of a batch: {} entries of {ends} batches",
            found.len()
        );
        seen.extend(found);
        if is_last {
            break;
        }
        if let Some(outcome) = tasks.try_join_next() {
            outcome??;
        }
        tokio::task::yield_now().await;
    }
    check_order(&seen)
}

pub(super) async fn concurrent_claims_have_one_winner(fixture: Fixture) -> Outcome {
    for _ in 0..10 {
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let fixture = fixture.clone();
            tasks.spawn(async move { fixture.store.claim(&fixture.key).await });
        }
        let mut epochs = Vec::new();
        while let Some(epoch) = tasks.join_next().await {
            epochs.push(epoch??);
        }
        epochs.sort();
        epochs.dedup();
        expect("the number of different epochs", &epochs.len(), &(TASKS as usize))?;
        let mut accepted = Vec::new();
        for epoch in &epochs {
            match fixture.append_as(*epoch, &entries(&[&epoch.to_string()])).await {
                Ok(_) => accepted.push(*epoch),
                Err(error) => {
                    expect("the error", &error.kind(), &StoreErrorKind::Superseded)?;
                }
            }
        }
        expect("the accepted epochs", &accepted.as_slice(), &&epochs[epochs.len() - 1..])?;
    }
    Ok(())
}

/// A new owner loads the session after its claim. An append of the earlier owner that was in flight during the
/// claim must be part of that, or fail.
pub(super) async fn nothing_of_an_earlier_owner_is_stored_after_a_claim(
    fixture: Fixture,
) -> Outcome {
    let mut number = 0_u32;
    for _ in 0..10 {
        let epoch = fixture.store.claim(&fixture.key).await?;
        let is_claimed = Arc::new(AtomicBool::new(false));
        let (start, owner, claimed) = (number, fixture.clone(), is_claimed.clone());
        // A set ends the owner with the check.
        let mut writer = JoinSet::new();
        writer.spawn(async move {
            for number in start.. {
                // How many appends precede the claim depends on the machine; none may follow it.
                let is_late = claimed.load(Ordering::SeqCst);
                match owner.append_as(epoch, &entries(&[&number.to_string()])).await {
                    Ok(_) if is_late => break,
                    Ok(_) => tokio::task::yield_now().await,
                    Err(error) if error.kind() == StoreErrorKind::Superseded => return Ok(number),
                    Err(error) => return Err(Failure::from(error)),
                }
            }
            Err(Failure("the earlier owner was not rejected".to_owned()))
        });
        while fixture.texts(Load::all()).await?.len() < start as usize + 3 {
            if let Some(ended) = writer.try_join_next() {
                ended??;
                return Err(Failure("the entries of the owner are not stored".to_owned()));
            }
            tokio::task::yield_now().await;
        }
        fixture.store.claim(&fixture.key).await?;
        is_claimed.store(true, Ordering::SeqCst);
        let at_the_claim = fixture.texts(Load::all()).await?;
        let ended = writer.join_next().await;
        number = ended.ok_or_else(|| Failure("the owner has no result".to_owned()))???;
        let afterwards = fixture.texts(Load::all()).await?;
        expect("the entries after a claim", &afterwards.len(), &at_the_claim.len())?;
        expect("the acknowledged entries", &afterwards.len(), &(number as usize))?;
    }
    Ok(())
}

pub(super) async fn concurrent_sessions_do_not_affect_each_other(fixture: Fixture) -> Outcome {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let fixture = fixture.clone();
        tasks.spawn(async move {
            let key = fixture.session(100 + task);
            let epoch = fixture.store.claim(&key).await?;
            for number in 0..APPENDS {
                let batch = entries(&[&number.to_string()]);
                fixture.store.append(&key, Append::new(&batch).epoch(epoch)).await?;
            }
            let found = fixture.texts_of(&key).await?;
            let expected: Vec<String> = (0..APPENDS).map(|number| number.to_string()).collect();
            expect("the entries", &found, &expected)
        });
    }
    join(tasks).await?;
    let listed = fixture.listed(&fixture.project).await?;
    expect("the number of sessions", &listed.len(), &(TASKS as usize))
}
