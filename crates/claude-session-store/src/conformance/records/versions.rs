//! Records and their versions.

use crate::record::{RecordChange, RecordFilter, RecordKey, RecordKind, RecordWrite};

use super::fixture::{
    Fixture, KIND, Outcome, SCOPE, expect, expect_record, id, key, owner, pending, record,
    update_of,
};

pub(super) async fn record_is_returned_as_it_was_stored(fixture: Fixture) -> Outcome {
    let body = "not JSON: \u{1}\"\\ 😀";
    for (number, change) in [
        record(1, 1, body),
        record(2, 1, body).open(),
        record(3, 2, "").open().due_at_ms(Some(0)),
        record(4, 2, body).due_at_ms(Some(1 << 53)),
        record(5, 2, body).due_at_ms(Some(i64::MAX.unsigned_abs())),
    ]
    .into_iter()
    .enumerate()
    {
        let stored = fixture.insert(change.clone()).await?;
        expect_record(Some(&stored), &change)?;
        let all = fixture.list(RecordFilter::In(SCOPE), 100).await?;
        expect("the number of records", &all.len(), &(number + 1))?;
        expect("the record in a list", &all.last(), &Some(&stored))?;
    }
    // Everything but the owner and the time of creation can change.
    let before = fixture.get(3).await?;
    let before = before.as_ref();
    let change = update_of(&record(3, 2, ""), Some(1), "changed").due_at_ms(Some(7));
    expect("the change", &fixture.write(std::slice::from_ref(&change)).await?, &true)?;
    let after = fixture.get(3).await?;
    expect_record(after.as_ref(), &change)?;
    let places = |it: &crate::record::Record| (it.created_ms, it.sequence);
    expect("the place", &after.as_ref().map(places), &before.map(places))
}

pub(super) async fn record_is_inserted_once(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(first.clone()).await?;
    for host in 0..2 {
        let second = [update_of(&first, None, "other")];
        let is_written = fixture.host(host).write_records(RecordWrite::new(&second)).await?;
        expect("whether a second record with the ID was stored", &is_written, &false)?;
    }
    expect_record(fixture.get(1).await?.as_ref(), &first)
}

pub(super) async fn update_replaces_the_expected_version(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(first.clone()).await?;
    fixture.insert(pending(2)).await?;
    for number in 1..6 {
        let next = update_of(&first, Some(number.into()), &format!("change {number}"));
        let write = RecordWrite::new(std::slice::from_ref(&next));
        let is_written = fixture.host(number).write_records(write).await?;
        expect("whether an update was stored", &is_written, &true)?;
        expect_record(fixture.get(1).await?.as_ref(), &next)?;
    }
    expect_record(fixture.get(2).await?.as_ref(), &pending(2))
}

pub(super) async fn update_of_another_version_changes_nothing(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(first.clone()).await?;
    let second = update_of(&first, Some(1), "second");
    expect("the update", &fixture.write(std::slice::from_ref(&second)).await?, &true)?;
    for replaces in [Some(0), Some(1), Some(3), Some(1 << 40), None] {
        let is_written = fixture.write(&[update_of(&first, replaces, "other")]).await?;
        expect(&format!("whether an update of {replaces:?} was stored"), &is_written, &false)?;
    }
    expect_record(fixture.get(1).await?.as_ref(), &second)?;
    let is_written = fixture.write(&[update_of(&pending(2), Some(1), "other")]).await?;
    expect("whether an update of an unknown record was stored", &is_written, &false)?;
    expect("the unknown record", &fixture.get(2).await?, &None)
}

pub(super) async fn unknown_records_are_not_listed(fixture: Fixture) -> Outcome {
    let check = async |scope: &str| {
        let owner = crate::record::OwnerKey::new(scope, &id(9))?;
        let id = id(9);
        for filter in [
            RecordFilter::Id { scope, id: &id },
            RecordFilter::Of(&owner),
            RecordFilter::OpenOf(&owner),
        ] {
            expect("unknown records", &fixture.list(filter, 100).await?, &[])?;
        }
        Ok(())
    };
    check(SCOPE).await?;
    expect("a new store", &fixture.list(RecordFilter::Open, 100).await?, &[])?;
    fixture.insert(pending(1)).await?;
    for filter in [RecordFilter::In("other"), RecordFilter::OpenIn("other")] {
        expect("another scope", &fixture.list(filter, 100).await?, &[])?;
    }
    check("other").await
}

/// Records of two kinds may have one ID.
pub(super) async fn kinds_are_separate(fixture: Fixture) -> Outcome {
    let mut stored = Vec::new();
    for kind in RecordKind::ALL {
        let key = RecordKey::new(SCOPE, kind, &id(1))?;
        let change = RecordChange::insert(key, &owner(1), kind.as_str())?.open();
        stored.push(fixture.insert(change).await?);
    }
    for (kind, expected) in RecordKind::ALL.into_iter().zip(&stored) {
        let owner = owner(1);
        let filters = [RecordFilter::Of(&owner), RecordFilter::In(SCOPE), RecordFilter::Open];
        for filter in filters {
            let found = fixture.list_of(kind, filter, 100).await?;
            expect(&format!("the records of {kind}"), &found[..], std::slice::from_ref(expected))?;
        }
    }
    expect_record(fixture.read(&key(1)).await?.as_ref(), &{
        RecordChange::insert(key(1), &owner(1), KIND.as_str())?.open()
    })
}
