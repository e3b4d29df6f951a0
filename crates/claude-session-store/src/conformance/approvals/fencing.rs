//! Epochs.

use crate::approval::{ApprovalStatus, ApprovalWrite};
use crate::{Epoch, StoreErrorKind};

use super::fixture::{
    Fixture, Outcome, SCOPE, approval, approval_id, decided, ensure, expect, expect_error, pending,
    session,
};

pub(super) async fn approval_claims_return_increasing_epochs(fixture: Fixture) -> Outcome {
    let mut last = Epoch::default();
    for number in 0..5 {
        let epoch = fixture.host(number).claim_approvals(SCOPE, &session(1)).await?;
        ensure!(epoch > last, "the epoch {epoch} follows {last}");
        last = epoch;
    }
    Ok(())
}

pub(super) async fn approval_claims_are_per_scope_and_session(fixture: Fixture) -> Outcome {
    let own = fixture.claim(1).await?;
    fixture.claim(2).await?;
    fixture.claim(2).await?;
    fixture.host(0).claim_approvals("other", &session(1)).await?;
    fixture.host(0).claim_approvals("other", &session(1)).await?;
    let first = pending(1);
    let is_written = fixture.write(ApprovalWrite::insert(&first).epoch(own)).await?;
    expect("whether the owner stored an approval", &is_written, &true)?;
    let other = approval("other", 1, 1, 1_000, ApprovalStatus::Pending, 1);
    let written = fixture.write(ApprovalWrite::insert(&other).epoch(own)).await;
    expect_error("the epoch of another scope", written, StoreErrorKind::Superseded)?;
    let other = approval(SCOPE, 2, 2, 1_000, ApprovalStatus::Pending, 1);
    let written = fixture.write(ApprovalWrite::insert(&other).epoch(own)).await;
    expect_error("the epoch of another session", written, StoreErrorKind::Superseded)
}

pub(super) async fn write_with_an_earlier_epoch_changes_nothing(fixture: Fixture) -> Outcome {
    let old = fixture.claim(1).await?;
    let first = pending(1);
    fixture.write(ApprovalWrite::insert(&first).epoch(old)).await?;
    let new = fixture.host(1).claim_approvals(SCOPE, &session(1)).await?;
    let next = decided(&first, "ana");
    let other = pending(2);
    for write in [
        ApprovalWrite::update(&next).epoch(old),
        // Would not be stored with the current epoch either.
        ApprovalWrite::insert(&next).epoch(old),
        ApprovalWrite::insert(&other).epoch(old),
    ] {
        for host in 0..2 {
            let written = fixture.host(host).write_approval(write).await;
            expect_error("an earlier epoch", written, StoreErrorKind::Superseded)?;
        }
    }
    expect("the approval", &fixture.get(&approval_id(1)).await?, &Some(first))?;
    expect("the other approval", &fixture.get(&approval_id(2)).await?, &None)?;
    let is_written = fixture.write(ApprovalWrite::update(&next).epoch(new)).await?;
    expect("whether the new owner stored the change", &is_written, &true)
}

pub(super) async fn write_with_an_unknown_epoch_changes_nothing(fixture: Fixture) -> Outcome {
    let first = pending(1);
    for epoch in [1, 2, u64::MAX] {
        let written = fixture.write(ApprovalWrite::insert(&first).epoch(Epoch::new(epoch))).await;
        expect_error("an unclaimed session", written, StoreErrorKind::Superseded)?;
    }
    let epoch = fixture.claim(1).await?;
    for epoch in [0, epoch.get() + 1, u64::MAX] {
        let written = fixture.write(ApprovalWrite::insert(&first).epoch(Epoch::new(epoch))).await;
        expect_error("an unknown epoch", written, StoreErrorKind::Superseded)?;
    }
    expect("the approval", &fixture.get(&approval_id(1)).await?, &None)
}

pub(super) async fn write_without_an_epoch_is_not_fenced(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(&first).await?;
    fixture.claim(1).await?;
    fixture.claim(1).await?;
    let next = decided(&first, "ana");
    let is_written = fixture.write(ApprovalWrite::update(&next)).await?;
    expect("whether the decision was stored", &is_written, &true)?;
    expect("the approval", &fixture.get(&approval_id(1)).await?, &Some(next))
}
