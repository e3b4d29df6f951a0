//! Deletion by age, by owner and by scope.

use crate::record::{
    OwnerKey, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordSelection,
};

use super::fixture::{
    Fixture, KIND, Outcome, SCOPE, ensure, expect, id, numbers, owner, pending, record,
};

/// Inserts a record of another scope, and one of another kind.
async fn insert_others(fixture: &Fixture) -> Outcome {
    let elsewhere = OwnerKey::new("other", &id(1))?;
    let key = RecordKey::new("other", KIND, &id(90))?;
    fixture.insert(RecordChange::insert(key, &elsewhere, "{}")?).await?;
    let key = RecordKey::new(SCOPE, RecordKind::StepReport, &id(91))?;
    fixture.insert(RecordChange::insert(key, &owner(1), "{}")?).await.map(drop)
}

async fn count(
    fixture: &Fixture,
    scope: &str,
    kind: RecordKind,
) -> Result<usize, super::fixture::Failure> {
    Ok(fixture.list_of(kind, RecordFilter::In(scope), 100).await?.len())
}

pub(super) async fn closed_records_are_deleted_by_their_age(fixture: Fixture) -> Outcome {
    for at in 0..6 {
        fixture.insert(if at < 2 { pending(at) } else { record(at, 1, "{}") }).await?;
    }
    insert_others(&fixture).await?;
    let now = async || {
        let list = RecordList::new(KIND, RecordFilter::Open);
        Ok::<_, crate::StoreError>(fixture.host(0).list_records(list).await?.now_ms)
    };
    let before = |time_ms| RecordSelection::ClosedBefore { scope: SCOPE, time_ms };
    let first = fixture.get(0).await?.map_or(0, |record| record.created_ms);
    let deleted = fixture.host(0).delete_records(before(first), Some(KIND), 100).await?;
    expect("the number of records that are older than all", &deleted, &0)?;
    let time = now().await? + 1_000;
    let deleted = fixture.host(0).delete_records(before(time), Some(KIND), 3).await?;
    expect("the number of a limited deletion", &deleted, &3)?;
    let deleted = fixture.host(1).delete_records(before(time), Some(KIND), 3).await?;
    expect("the number of the rest", &deleted, &1)?;
    let left = fixture.list(RecordFilter::In(SCOPE), 100).await?;
    expect("the records that are left", &numbers(&left), &[0, 1])?;
    expect("another scope", &count(&fixture, "other", KIND).await?, &1)?;
    expect("another kind", &count(&fixture, SCOPE, RecordKind::StepReport).await?, &1)?;
    let deleted = fixture.host(1).delete_records(before(time), None, 100).await?;
    expect("the number of all kinds", &deleted, &1)
}

pub(super) async fn records_of_one_owner_are_deleted(fixture: Fixture) -> Outcome {
    let epoch = fixture.claim(1).await?;
    for number in 0..6 {
        let change = record(number, 1 + number / 4, "{}");
        fixture.insert(if number % 2 == 0 { change.open() } else { change }).await?;
    }
    insert_others(&fixture).await?;
    let one = owner(1);
    let (all, open) = (RecordSelection::Of(&one), RecordSelection::OpenOf(&one));
    let delete =
        async |host, selection, kind| fixture.host(host).delete_records(selection, kind, 100).await;
    expect("the open records", &delete(0, open, None).await?, &2)?;
    expect("the others of the owner", &delete(1, all, Some(KIND)).await?, &2)?;
    expect("a repeated deletion", &delete(1, all, Some(KIND)).await?, &0)?;
    expect("the records of another kind", &delete(0, all, None).await?, &1)?;
    let left = fixture.list(RecordFilter::In(SCOPE), 100).await?;
    expect("the records of other owners", &numbers(&left), &[4, 5])?;
    let next = fixture.claim(1).await?;
    ensure!(next > epoch, "epochs start again after a deletion");
    // The same ID can be used again, for a new record.
    let last = left.last().map(|record| record.sequence).unwrap_or_default();
    let again = fixture.insert(pending(0)).await?;
    expect("the version", &again.version, &1)?;
    ensure!(again.sequence > last, "sequence numbers start again after a deletion");
    Ok(())
}

pub(super) async fn all_records_of_a_scope_are_deleted(fixture: Fixture) -> Outcome {
    for number in 0..5 {
        fixture
            .insert(if number < 2 { pending(number) } else { record(number, number, "{}") })
            .await?;
    }
    insert_others(&fixture).await?;
    let all = RecordSelection::In(SCOPE);
    expect("a part", &fixture.host(0).delete_records(all, None, 4).await?, &4)?;
    expect("the rest", &fixture.host(1).delete_records(all, None, 4).await?, &2)?;
    for kind in RecordKind::ALL {
        expect("the records that are left", &count(&fixture, SCOPE, kind).await?, &0)?;
    }
    expect("another scope", &count(&fixture, "other", KIND).await?, &1)
}
