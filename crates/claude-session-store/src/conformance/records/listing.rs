//! Lists and pages.

use crate::record::{OwnerKey, RecordChange, RecordFilter, RecordKey, RecordList};
use crate::{Sequence, StoreError};

use super::fixture::{
    Fixture, KIND, Outcome, SCOPE, ensure, expect, id, key, numbers, owner, pending, record,
    update_of,
};

/// Returns the insertion of a record in another scope.
fn elsewhere(number: u32) -> Result<RecordChange, StoreError> {
    let key = RecordKey::new("other", KIND, &id(number))?;
    Ok(RecordChange::insert(key, &OwnerKey::new("other", &id(1))?, "{}")?.open())
}

pub(super) async fn lists_have_the_records_that_they_select(fixture: Fixture) -> Outcome {
    // Two owners have two open records and one that is not.
    for at in 0..6 {
        let change = record(at, 1 + at / 3, "{}");
        fixture.insert(if at % 3 == 2 { change } else { change.open() }).await?;
    }
    fixture.insert(elsewhere(6)?).await?;
    let (one, two) = (owner(1), owner(2));
    let expected: [(RecordFilter<'_>, &[u32]); 6] = [
        (RecordFilter::Of(&one), &[0, 1, 2]),
        (RecordFilter::OpenOf(&two), &[3, 4]),
        (RecordFilter::In(SCOPE), &[0, 1, 2, 3, 4, 5]),
        (RecordFilter::OpenIn(SCOPE), &[0, 1, 3, 4]),
        (RecordFilter::Open, &[0, 1, 3, 4, 6]),
        (RecordFilter::Due, &[]),
    ];
    for (filter, expected) in expected {
        for limit in [1, 2, 100, usize::MAX] {
            let found = fixture.list(filter, limit).await?;
            expect(&format!("{filter:?} with the limit {limit}"), &*numbers(&found), expected)?;
        }
    }
    // A change of the state changes the lists.
    let closed = update_of(&record(0, 1, "{}"), Some(1), "closed");
    let opened = update_of(&pending(2), Some(1), "opened");
    expect("the changes", &fixture.write(&[closed, opened]).await?, &true)?;
    let found = fixture.list(RecordFilter::OpenIn(SCOPE), 100).await?;
    expect("the open records after a change", &numbers(&found), &[1, 2, 3, 4])?;
    let found = fixture.list(RecordFilter::OpenOf(&one), 100).await?;
    expect("the open records of an owner after a change", &numbers(&found), &[1, 2])
}

pub(super) async fn records_are_listed_in_the_order_of_their_creation(fixture: Fixture) -> Outcome {
    let order = [3, 7, 0, 5, 1, 6, 4, 2];
    for number in order {
        fixture.insert(pending(number)).await?;
    }
    // A change does not move a record.
    let first = fixture.get(3).await?;
    let first = first.as_ref().map(|record| (record.created_ms, record.sequence));
    let changed = [update_of(&pending(3), Some(1), "changed")];
    expect("the change", &fixture.write(&changed).await?, &true)?;
    let owner = owner(1);
    let filters = [
        RecordFilter::Of(&owner),
        RecordFilter::OpenOf(&owner),
        RecordFilter::In(SCOPE),
        RecordFilter::OpenIn(SCOPE),
        RecordFilter::Open,
    ];
    for filter in filters {
        for limit in [1, 3, 8, 100] {
            let found = fixture.list(filter, limit).await?;
            expect("the records", &numbers(&found), &order)?;
            let place = found.first().map(|record| (record.created_ms, record.sequence));
            expect("the place of a changed record", &place, &first)?;
        }
        let page = fixture.host(0).list_records(RecordList::new(KIND, filter).limit(0)).await?;
        expect("a page with the limit 0", &(page.len(), page.more), &(1, true))?;
    }
    let after = first.map_or(Sequence::default(), |(_, sequence)| sequence);
    let id = id(3);
    let list = RecordList::new(KIND, RecordFilter::Id { scope: SCOPE, id: &id }).after(after);
    let page = fixture.host(0).list_records(list).await?;
    expect("a record before the position", &page.records, &[])
}

pub(super) async fn changed_records_do_not_disturb_the_pages(fixture: Fixture) -> Outcome {
    for at in 0..6 {
        fixture.insert(pending(at)).await?;
    }
    let list = RecordList::new(KIND, RecordFilter::OpenIn(SCOPE)).limit(3);
    let first = fixture.host(0).list_records(list).await?;
    expect("the first page", &numbers(&first.records), &[0, 1, 2])?;
    // The position of a record that is no longer listed is still valid.
    for record in &first.records {
        fixture.write(&[RecordChange::update(record, "closed")]).await?;
    }
    let after = first.last().unwrap_or_default();
    let second = fixture.host(1).list_records(list.after(after)).await?;
    expect("the second page", &numbers(&second.records), &[3, 4, 5])?;
    expect("whether more follow", &second.more, &false)
}

pub(super) async fn records_are_due_by_the_clock_of_the_store(fixture: Fixture) -> Outcome {
    let filter = RecordFilter::In(SCOPE);
    let now = fixture.host(0).list_records(RecordList::new(KIND, filter)).await?.now_ms;
    let day = 24 * 3600 * 1000;
    for (number, due) in
        [(0, Some(0)), (1, Some(now + day)), (2, None), (3, Some(now)), (4, Some(now - day))]
    {
        fixture.insert(pending(number).due_at_ms(due)).await?;
    }
    // Closed records are not due.
    fixture.insert(record(5, 1, "{}").due_at_ms(Some(0))).await?;
    fixture.insert(elsewhere(6)?.due_at_ms(Some(1))).await?;
    for limit in [1, 2, 100] {
        let found = fixture.list(RecordFilter::Due, limit).await?;
        expect("the records that are due", &numbers(&found), &[0, 3, 4, 6])?;
    }
    let later = update_of(&pending(3), Some(1), "later").due_at_ms(Some(now + day));
    expect("the change", &fixture.write(&[later]).await?, &true)?;
    let found = fixture.list(RecordFilter::Due, 100).await?;
    expect("the records that are due after a change", &numbers(&found), &[0, 4, 6])
}

pub(super) async fn clock_is_in_milliseconds_and_does_not_go_back(fixture: Fixture) -> Outcome {
    let mut last = 0;
    for number in 0..20 {
        let id = id(number);
        for filter in [RecordFilter::Open, RecordFilter::Id { scope: SCOPE, id: &id }] {
            let page = fixture.host(number).list_records(RecordList::new(KIND, filter)).await?;
            // Between 2020 and 2200.
            let is_time = (1_577_836_800_000..7_258_118_400_000).contains(&page.now_ms);
            ensure!(is_time, "not a time: {}", page.now_ms);
            ensure!(page.now_ms >= last, "the clock went back from {last} to {}", page.now_ms);
            last = page.now_ms;
        }
        let stored = fixture.insert(pending(number)).await?;
        ensure!(stored.created_ms >= last, "a record was created at {}", stored.created_ms);
        expect("the key", &stored.key, &key(number))?;
    }
    Ok(())
}
