//! Concurrent requests of two hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::record::{Record, RecordChange, RecordWrite};
use crate::{Epoch, StoreErrorKind};
use tokio::task::JoinSet;

use super::fixture::{
    Failure, Fixture, Outcome, expect, expect_record, key, owner, pending, record, update_of,
};

const TASKS: u32 = 16;
const ROUNDS: u32 = 10;

/// Writes competing changes, and returns those that were stored.
async fn compete(
    fixture: &Fixture,
    changes: impl Fn(u32) -> Vec<RecordChange>,
) -> Result<Vec<RecordChange>, Failure> {
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let (fixture, changes) = (fixture.clone(), changes(number));
        tasks.spawn(async move {
            let write = RecordWrite::new(&changes);
            let is_written = fixture.host(number).write_records(write).await?;
            Ok::<_, Failure>(is_written.then_some(changes))
        });
    }
    let mut winners = Vec::new();
    while let Some(result) = tasks.join_next().await {
        winners.extend(result??);
    }
    expect("the number of writes that were stored", &winners.len(), &1)?;
    winners.pop().ok_or_else(|| Failure("no write was stored".to_owned()))
}

pub(super) async fn concurrent_inserts_have_one_winner(fixture: Fixture) -> Outcome {
    for round in 0..ROUNDS {
        let changes = |number| vec![record(round, 1, &format!("host {number}"))];
        let winner = compete(&fixture, changes).await?;
        expect_record(fixture.get(round).await?.as_ref(), &winner[0])?;
    }
    Ok(())
}

pub(super) async fn concurrent_updates_have_one_winner(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(first.clone()).await?;
    for round in 1..=ROUNDS {
        let body = |number| format!("host {number} in round {round}");
        let changes = |number| vec![update_of(&first, Some(round.into()), &body(number))];
        let winner = compete(&fixture, changes).await?;
        expect_record(fixture.get(1).await?.as_ref(), &winner[0])?;
    }
    Ok(())
}

/// The changes are in different orders, so that a store which locks records one by one could wait for itself.
pub(super) async fn concurrent_writes_of_several_records_have_one_winner(
    fixture: Fixture,
) -> Outcome {
    let first: Vec<RecordChange> = (0..4).map(pending).collect();
    expect("the first write", &fixture.write(&first).await?, &true)?;
    for round in 1..=ROUNDS {
        let changes = |number: u32| {
            let body = format!("host {number} in round {round}");
            let mut changes: Vec<RecordChange> =
                first.iter().map(|it| update_of(it, Some(round.into()), &body)).collect();
            changes.push(record(100 + round, 1, &body));
            changes.rotate_left(number as usize % 5);
            changes
        };
        for change in compete(&fixture, changes).await? {
            expect_record(fixture.read(&change.key).await?.as_ref(), &change)?;
        }
    }
    Ok(())
}

pub(super) async fn concurrent_record_claims_have_one_winner(fixture: Fixture) -> Outcome {
    for round in 0..ROUNDS {
        let mut tasks = JoinSet::new();
        for number in 0..TASKS {
            let fixture = fixture.clone();
            tasks.spawn(async move { fixture.host(number).claim_records(&owner(1)).await });
        }
        let mut epochs = Vec::new();
        while let Some(epoch) = tasks.join_next().await {
            epochs.push(epoch??);
        }
        epochs.sort();
        epochs.dedup();
        expect("the number of different epochs", &epochs.len(), &(TASKS as usize))?;
        let changes = [pending(round)];
        for (number, epoch) in (1..).zip(&epochs) {
            match fixture.write_as(number, &changes, 1, *epoch).await {
                Ok(is_written) => expect("the winner", &(number, is_written), &(TASKS, true))?,
                Err(error) => expect("the error", &error.kind(), &StoreErrorKind::Superseded)?,
            }
        }
    }
    Ok(())
}

/// Changes a record until the epoch is rejected, and returns the last version that was stored.
async fn write_until_rejected(
    fixture: Fixture,
    epoch: Epoch,
    mut current: Record,
    is_claimed: Arc<AtomicBool>,
) -> Result<u64, Failure> {
    for number in 0.. {
        // How many writes precede the claim depends on the machine; none may follow it.
        let is_late = is_claimed.load(Ordering::SeqCst);
        let next = [RecordChange::update(&current, "owner").open()];
        match fixture.write_as(number, &next, 1, epoch).await {
            Ok(true) if is_late => break,
            Ok(true) => current.version += 1,
            Ok(false) => {
                return Err(Failure("a version was stored without another writer".to_owned()));
            }
            Err(error) if error.kind() == StoreErrorKind::Superseded => return Ok(current.version),
            Err(error) => return Err(error.into()),
        }
        tokio::task::yield_now().await;
    }
    Err(Failure("the earlier owner was not rejected".to_owned()))
}

/// A new owner reads the records after its claim. A write of the earlier owner that was in flight during the claim
/// must be part of that, or fail.
pub(super) async fn nothing_of_an_earlier_owner_is_written_after_a_claim(
    fixture: Fixture,
) -> Outcome {
    for round in 0..ROUNDS {
        let first = fixture.insert(pending(round)).await?;
        let epoch = fixture.claim(1).await?;
        let is_claimed = Arc::new(AtomicBool::new(false));
        // A set ends the owner with the check.
        let mut earlier = JoinSet::new();
        earlier.spawn(write_until_rejected(fixture.clone(), epoch, first, Arc::clone(&is_claimed)));
        let version = async || {
            let found = fixture.read(&key(round)).await?;
            found.map(|found| found.version).ok_or_else(|| Failure("it is gone".to_owned()))
        };
        while version().await? < 4 {
            if let Some(ended) = earlier.try_join_next() {
                ended??;
                return Err(Failure("the owner was rejected before the claim".to_owned()));
            }
            tokio::task::yield_now().await;
        }
        fixture.host(1).claim_records(&owner(1)).await?;
        is_claimed.store(true, Ordering::SeqCst);
        let at_the_claim = version().await?;
        let ended = earlier.join_next().await;
        let last = ended.ok_or_else(|| Failure("the owner has no result".to_owned()))???;
        expect("the version after a claim", &version().await?, &at_the_claim)?;
        expect("the last acknowledged version", &last, &at_the_claim)?;
    }
    Ok(())
}
