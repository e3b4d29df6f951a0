//! Claims and epochs.

use crate::{Append, Epoch, Load, StoreErrorKind};

use super::fixture::{Fixture, Outcome, ensure, entries, expect, expect_error, project, session};

pub(super) async fn claims_return_increasing_epochs(fixture: Fixture) -> Outcome {
    let mut before = Epoch::new(0);
    for _ in 0..10 {
        let epoch = fixture.store.claim(&fixture.key).await?;
        ensure!(epoch > before, "epochs do not increase: {epoch} after {before}");
        fixture.append_as(epoch, &entries(&[&epoch.to_string()])).await?;
        before = epoch;
    }
    expect("the number of entries", &fixture.texts(Load::all()).await?.len(), &10)
}

pub(super) async fn earlier_epoch_is_rejected_without_a_change(fixture: Fixture) -> Outcome {
    let old = fixture.store.claim(&fixture.key).await?;
    let first = fixture.append_as(old, &entries(&["1"])).await?;
    let new = fixture.store.claim(&fixture.key).await?;
    let row = fixture.row().await?;
    let batch = entries(&["1", "2", "3"]);
    let append = Append::new(&batch).epoch(old).summary(first.last, "{}");
    let rejected = fixture.store.append(&fixture.key, append).await;
    expect_error("an append of an earlier owner", rejected, StoreErrorKind::Superseded)?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1"])?;
    expect("the session in the list", &fixture.row().await?, &row)?;
    let appended = fixture.append_as(new, &batch).await?;
    expect("the skipped entries", &appended.skipped, &1)?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2", "3"])
}

pub(super) async fn unknown_epoch_is_rejected(fixture: Fixture) -> Outcome {
    let batch = entries(&["1"]);
    for epoch in [Epoch::new(1), Epoch::new(u64::MAX)] {
        let rejected = fixture.append_as(epoch, &batch).await;
        expect_error("an epoch without a claim", rejected, StoreErrorKind::Superseded)?;
    }
    let epoch = fixture.store.claim(&fixture.key).await?;
    for epoch in [0, epoch.get() + 1, u64::MAX] {
        let rejected = fixture.append_as(Epoch::new(epoch), &batch).await;
        expect_error("an unknown epoch", rejected, StoreErrorKind::Superseded)?;
    }
    expect("the entries", &fixture.texts(Load::all()).await?.len(), &0)
}

pub(super) async fn append_without_an_epoch_is_not_fenced(fixture: Fixture) -> Outcome {
    let epoch = fixture.store.claim(&fixture.key).await?;
    fixture.append(&entries(&["1"])).await?;
    fixture.append_as(epoch, &entries(&["2"])).await?;
    fixture.append(&entries(&["3"])).await?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2", "3"])
}

pub(super) async fn empty_append_checks_the_epoch(fixture: Fixture) -> Outcome {
    let old = fixture.store.claim(&fixture.key).await?;
    fixture.append_as(old, &[]).await?;
    let new = fixture.store.claim(&fixture.key).await?;
    let rejected = fixture.append_as(old, &[]).await;
    expect_error("an empty append", rejected, StoreErrorKind::Superseded)?;
    fixture.append_as(new, &[]).await?;
    Ok(())
}

pub(super) async fn claimed_session_without_entries_is_not_listed(fixture: Fixture) -> Outcome {
    let epoch = fixture.store.claim(&fixture.key).await?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?.len(), &0)?;
    expect("the subpaths", &fixture.store.subpaths(&fixture.key).await?, &[])?;
    fixture.append_as(epoch, &entries(&["1"])).await?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?.len(), &1)
}

pub(super) async fn delete_keeps_the_fence(fixture: Fixture) -> Outcome {
    let old = fixture.store.claim(&fixture.key).await?;
    let new = fixture.store.claim(&fixture.key).await?;
    fixture.append_as(new, &entries(&["1"])).await?;
    fixture.store.delete(&fixture.key, None).await?;
    let rejected = fixture.append_as(old, &entries(&["2"])).await;
    expect_error("an append of an earlier owner", rejected, StoreErrorKind::Superseded)?;
    expect("the entries", &fixture.texts(Load::all()).await?.len(), &0)?;
    let next = fixture.store.claim(&fixture.key).await?;
    ensure!(next > new, "epochs start again after a delete: {next} after {new}");
    Ok(())
}

pub(super) async fn claims_are_per_session(fixture: Fixture) -> Outcome {
    let epoch = fixture.store.claim(&fixture.key).await?;
    fixture.store.claim(&fixture.session(2)).await?;
    fixture.store.claim(&session(&project("scope", "other"), 1)).await?;
    fixture.store.claim(&session(&project("other", "project"), 1)).await?;
    fixture.append_as(epoch, &entries(&["1"])).await?;
    Ok(())
}
