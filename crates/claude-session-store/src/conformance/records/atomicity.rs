//! Several changes in one write.

use crate::StoreErrorKind;
use crate::record::{OwnerKey, RecordChange, RecordKey, RecordKind, RecordWrite};

use super::fixture::{
    Fixture, KIND, Outcome, SCOPE, expect, expect_error, expect_record, id, owner, pending, record,
    update_of,
};

pub(super) async fn changes_are_written_together(fixture: Fixture) -> Outcome {
    let first = [pending(1), record(2, 2, "two"), pending(3)];
    expect("whether three records were stored", &fixture.write(&first).await?, &true)?;
    // In another order, with another owner, kind and scope, and with an insertion between updates.
    let report = RecordKey::new(SCOPE, RecordKind::StepReport, &id(1))?;
    let budget = RecordKey::new("", RecordKind::Budget, "all")?;
    let second = [
        update_of(&first[2], Some(1), "three"),
        RecordChange::insert(report, &owner(3), "report")?,
        update_of(&first[0], Some(1), "one"),
        RecordChange::insert(budget, &OwnerKey::new("", "fleet")?, "budget")?.open(),
    ];
    expect("whether four changes were stored", &fixture.write(&second).await?, &true)?;
    for change in second.iter().chain(&first[1..2]) {
        expect_record(fixture.read(&change.key).await?.as_ref(), change)?;
    }
    Ok(())
}

pub(super) async fn one_conflict_prevents_all_changes(fixture: Fixture) -> Outcome {
    let stored = [pending(1), pending(2)];
    expect("whether two records were stored", &fixture.write(&stored).await?, &true)?;
    let conflicts = [
        update_of(&stored[1], Some(7), "late"),
        update_of(&stored[1], None, "again"),
        update_of(&pending(8), Some(1), "unknown"),
    ];
    for conflict in conflicts {
        for at in 0..3 {
            let mut changes = vec![update_of(&stored[0], Some(1), "changed"), pending(9)];
            changes.insert(at, conflict.clone());
            for host in 0..2 {
                let write = RecordWrite::new(&changes);
                let is_written = fixture.host(host).write_records(write).await?;
                expect("whether changes beside a conflict were stored", &is_written, &false)?;
            }
        }
    }
    for change in &stored {
        expect_record(fixture.read(&change.key).await?.as_ref(), change)?;
    }
    expect("an insertion beside a conflict", &fixture.get(9).await?, &None)
}

pub(super) async fn invalid_writes_are_rejected(fixture: Fixture) -> Outcome {
    let twice = [pending(1), update_of(&pending(1), Some(1), "again")];
    let written = fixture.write(&twice).await;
    expect_error("a write with one record twice", written, StoreErrorKind::Rejected)?;
    let late = [pending(1).due_at_ms(Some(u64::MAX))];
    let written = fixture.write(&late).await;
    expect_error("a due time that is too late", written, StoreErrorKind::Rejected)?;
    let many: Vec<RecordChange> = (0..1_001).map(pending).collect();
    let written = fixture.write(&many).await;
    expect_error("a write of too many records", written, StoreErrorKind::Rejected)?;
    expect("the record", &fixture.get(1).await?, &None)?;
    expect("a write of the limit", &fixture.write(&many[..1_000]).await?, &true)?;
    let filter = crate::record::RecordFilter::In(SCOPE);
    expect("the number of records", &fixture.list_of(KIND, filter, 300).await?.len(), &1_000)
}

pub(super) async fn write_without_changes_checks_the_epoch(fixture: Fixture) -> Outcome {
    expect("a write without changes", &fixture.write(&[]).await?, &true)?;
    let old = fixture.claim(1).await?;
    expect("a write of the owner", &fixture.write_as(0, &[], 1, old).await?, &true)?;
    let new = fixture.claim(1).await?;
    let written = fixture.write_as(1, &[], 1, old).await;
    expect_error("a write of an earlier owner", written, StoreErrorKind::Superseded)?;
    expect("a write of the new owner", &fixture.write_as(1, &[], 1, new).await?, &true)
}
