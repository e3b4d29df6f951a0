//! Epochs.

use crate::record::{OwnerKey, RecordWrite};
use crate::{Epoch, StoreErrorKind};

use super::fixture::{
    Fixture, Outcome, ensure, expect, expect_error, expect_record, id, owner, pending, record,
    update_of,
};

pub(super) async fn record_claims_return_increasing_epochs(fixture: Fixture) -> Outcome {
    let mut last = Epoch::default();
    for number in 0..5 {
        let epoch = fixture.host(number).claim_records(&owner(1)).await?;
        ensure!(epoch > last, "the epoch {epoch} follows {last}");
        last = epoch;
    }
    Ok(())
}

pub(super) async fn record_claims_are_per_scope_and_owner(fixture: Fixture) -> Outcome {
    let own = fixture.claim(1).await?;
    fixture.claim(2).await?;
    fixture.claim(2).await?;
    let elsewhere = OwnerKey::new("other", &id(1))?;
    fixture.host(0).claim_records(&elsewhere).await?;
    fixture.host(0).claim_records(&elsewhere).await?;
    let first = [pending(1)];
    let is_written = fixture.write_as(0, &first, 1, own).await?;
    expect("whether the owner stored a record", &is_written, &true)?;
    let other = [pending(2)];
    let write = RecordWrite::new(&other).fence(&elsewhere, own);
    let written = fixture.host(0).write_records(write).await;
    expect_error("the epoch of another scope", written, StoreErrorKind::Superseded)?;
    let written = fixture.write_as(0, &other, 2, own).await;
    expect_error("the epoch of another owner", written, StoreErrorKind::Superseded)
}

pub(super) async fn write_with_an_earlier_epoch_changes_nothing(fixture: Fixture) -> Outcome {
    let old = fixture.claim(1).await?;
    let first = pending(1);
    fixture.write_as(0, std::slice::from_ref(&first), 1, old).await?;
    let new = fixture.host(1).claim_records(&owner(1)).await?;
    let next = update_of(&first, Some(1), "next");
    for change in [
        next.clone(),
        // Would not be stored with the current epoch either.
        update_of(&first, None, "again"),
        pending(2),
    ] {
        for host in 0..2 {
            let written = fixture.write_as(host, std::slice::from_ref(&change), 1, old).await;
            expect_error("an earlier epoch", written, StoreErrorKind::Superseded)?;
        }
    }
    expect_record(fixture.get(1).await?.as_ref(), &first)?;
    expect("the other record", &fixture.get(2).await?, &None)?;
    let is_written = fixture.write_as(1, &[next], 1, new).await?;
    expect("whether the new owner stored the change", &is_written, &true)
}

pub(super) async fn write_with_an_unknown_epoch_changes_nothing(fixture: Fixture) -> Outcome {
    let first = [pending(1)];
    for epoch in [1, 2, u64::MAX] {
        let written = fixture.write_as(0, &first, 1, Epoch::new(epoch)).await;
        expect_error("an unclaimed owner", written, StoreErrorKind::Superseded)?;
    }
    let epoch = fixture.claim(1).await?;
    for epoch in [0, epoch.get() + 1, u64::MAX] {
        let written = fixture.write_as(0, &first, 1, Epoch::new(epoch)).await;
        expect_error("an unknown epoch", written, StoreErrorKind::Superseded)?;
    }
    expect("the record", &fixture.get(1).await?, &None)
}

pub(super) async fn write_without_an_epoch_is_not_fenced(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(first.clone()).await?;
    fixture.claim(1).await?;
    fixture.claim(1).await?;
    let next = update_of(&first, Some(1), "next");
    let is_written = fixture.write(std::slice::from_ref(&next)).await?;
    expect("whether the change was stored", &is_written, &true)?;
    expect_record(fixture.get(1).await?.as_ref(), &next)
}

/// An owner may write records of others, such as budgets.
pub(super) async fn fence_of_one_owner_covers_records_of_others(fixture: Fixture) -> Outcome {
    let old = fixture.claim(1).await?;
    let changes = [pending(1), record(2, 2, "two")];
    expect("the write of the owner", &fixture.write_as(0, &changes, 1, old).await?, &true)?;
    // The claim of the other owner does not matter.
    fixture.claim(2).await?;
    let next = [update_of(&changes[1], Some(1), "next")];
    expect("the write of the owner", &fixture.write_as(1, &next, 1, old).await?, &true)?;
    fixture.claim(1).await?;
    let late = [update_of(&changes[1], Some(2), "late")];
    let written = fixture.write_as(1, &late, 1, old).await;
    expect_error("an earlier owner", written, StoreErrorKind::Superseded)?;
    expect_record(fixture.get(2).await?.as_ref(), &next[0])
}
