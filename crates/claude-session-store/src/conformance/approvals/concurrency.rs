//! Concurrent requests of two hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::approval::{Approval, ApprovalWrite};
use crate::{Epoch, StoreErrorKind};
use tokio::task::JoinSet;

use super::fixture::{
    Failure, Fixture, Outcome, SCOPE, approval_id, decided, expect, pending, session,
};

const TASKS: u32 = 16;
const ROUNDS: u32 = 10;

/// Writes competing records, and returns the one that was stored.
async fn compete(
    fixture: &Fixture,
    record: impl Fn(u32) -> Approval,
    write: fn(&Approval) -> ApprovalWrite<'_>,
) -> Result<Approval, Failure> {
    let mut tasks = JoinSet::new();
    for number in 0..TASKS {
        let (fixture, record) = (fixture.clone(), record(number));
        tasks.spawn(async move {
            let is_written = fixture.host(number).write_approval(write(&record)).await?;
            Ok::<_, Failure>(is_written.then_some(record))
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
        let record = |number| {
            let mut record = pending(round);
            record.request.tool_name = format!("tool {number}");
            record
        };
        let winner = compete(&fixture, record, |record| ApprovalWrite::insert(record)).await?;
        expect("the approval", &fixture.get(&approval_id(round)).await?, &Some(winner))?;
    }
    Ok(())
}

pub(super) async fn concurrent_updates_have_one_winner(fixture: Fixture) -> Outcome {
    let mut current = pending(1);
    fixture.insert(&current).await?;
    for _ in 0..ROUNDS {
        let record = |number| decided(&current, &format!("approver {number}"));
        let winner = compete(&fixture, record, |record| ApprovalWrite::update(record)).await?;
        expect("the approval", &fixture.get(&approval_id(1)).await?, &Some(winner.clone()))?;
        current = winner;
    }
    Ok(())
}

pub(super) async fn concurrent_approval_claims_have_one_winner(fixture: Fixture) -> Outcome {
    for round in 0..ROUNDS {
        let mut tasks = JoinSet::new();
        for number in 0..TASKS {
            let fixture = fixture.clone();
            tasks.spawn(
                async move { fixture.host(number).claim_approvals(SCOPE, &session(1)).await },
            );
        }
        let mut epochs = Vec::new();
        while let Some(epoch) = tasks.join_next().await {
            epochs.push(epoch??);
        }
        epochs.sort();
        epochs.dedup();
        expect("the number of different epochs", &epochs.len(), &(TASKS as usize))?;
        let record = pending(round);
        for (number, epoch) in (1..).zip(&epochs) {
            let write = ApprovalWrite::insert(&record).epoch(*epoch);
            match fixture.host(number).write_approval(write).await {
                Ok(is_written) => expect("the winner", &(number, is_written), &(TASKS, true))?,
                Err(error) => expect("the error", &error.kind(), &StoreErrorKind::Superseded)?,
            }
        }
    }
    Ok(())
}

/// Changes an approval until the epoch is rejected, and returns the last version that was stored.
async fn write_as(
    fixture: Fixture,
    epoch: Epoch,
    mut current: Approval,
    is_claimed: Arc<AtomicBool>,
) -> Result<u64, Failure> {
    for number in 0.. {
        // How many writes precede the claim depends on the machine; none may follow it.
        let is_late = is_claimed.load(Ordering::SeqCst);
        let next = decided(&current, "owner");
        let write = ApprovalWrite::update(&next).epoch(epoch);
        match fixture.host(number).write_approval(write).await {
            Ok(true) if is_late => break,
            Ok(true) => current = next,
            Ok(false) => {
                return Err(Failure("a version was stored without another writer".to_owned()));
            }
            Err(error) if error.kind() == StoreErrorKind::Superseded => {
                return Ok(current.version());
            }
            Err(error) => return Err(error.into()),
        }
        tokio::task::yield_now().await;
    }
    Err(Failure("the earlier owner was not rejected".to_owned()))
}

/// A new owner reads the approvals after its claim. A write of the earlier owner that was in flight during the claim
/// must be part of that, or fail.
pub(super) async fn nothing_of_an_earlier_owner_is_written_after_a_claim(
    fixture: Fixture,
) -> Outcome {
    for round in 0..ROUNDS {
        let first = pending(round);
        fixture.insert(&first).await?;
        let epoch = fixture.claim(1).await?;
        let is_claimed = Arc::new(AtomicBool::new(false));
        // A set ends the owner with the check.
        let mut owner = JoinSet::new();
        owner.spawn(write_as(fixture.clone(), epoch, first, Arc::clone(&is_claimed)));
        let version = async || {
            let found = fixture.get(&approval_id(round)).await?;
            found.map(|found| found.version()).ok_or_else(|| Failure("it is gone".to_owned()))
        };
        while version().await? < 4 {
            if let Some(ended) = owner.try_join_next() {
                ended??;
                return Err(Failure("the owner was rejected before the claim".to_owned()));
            }
            tokio::task::yield_now().await;
        }
        fixture.host(1).claim_approvals(SCOPE, &session(1)).await?;
        is_claimed.store(true, Ordering::SeqCst);
        let at_the_claim = version().await?;
        let ended = owner.join_next().await;
        let last = ended.ok_or_else(|| Failure("the owner has no result".to_owned()))???;
        expect("the version after a claim", &version().await?, &at_the_claim)?;
        expect("the last acknowledged version", &last, &at_the_claim)?;
    }
    Ok(())
}
