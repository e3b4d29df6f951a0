//! Deletion of approvals.

use crate::approval::{ApprovalFilter, ApprovalSelection, ApprovalStatus};

use super::fixture::{
    Fixture, Outcome, SCOPE, approval, approval_id, ensure, expect, numbers, session,
};

const CLOSED: [ApprovalStatus; 4] = [
    ApprovalStatus::Finished,
    ApprovalStatus::OutcomeUnknown,
    ApprovalStatus::Expired,
    ApprovalStatus::Withdrawn,
];

pub(super) async fn closed_approvals_are_deleted_by_the_time_of_their_request(
    fixture: Fixture,
) -> Outcome {
    let open = [ApprovalStatus::Pending, ApprovalStatus::Decided, ApprovalStatus::Started];
    for (at, status) in (0..).zip(CLOSED.into_iter().chain(open)) {
        for time in [1_000, 2_000] {
            let number = at * 10 + u32::from(time == 2_000);
            fixture.insert(&approval(SCOPE, number, 1, time, status, 1)).await?;
        }
    }
    fixture.insert(&approval("other", 0, 1, 1_000, ApprovalStatus::Finished, 1)).await?;
    let before = ApprovalSelection::ClosedBefore(2_000);
    let deleted = fixture.host(0).delete_approvals(SCOPE, before, 3).await?;
    expect("the number of a limited deletion", &deleted, &3)?;
    let deleted = fixture.host(1).delete_approvals(SCOPE, before, 3).await?;
    expect("the number of the rest", &deleted, &1)?;
    for at in 0..7 {
        for (number, is_deleted) in [(at * 10, at < 4), (at * 10 + 1, false)] {
            let found = fixture.get(&approval_id(number)).await?;
            expect("whether an approval is deleted", &found.is_none(), &is_deleted)?;
        }
    }
    let other = fixture.get_from("other", &approval_id(0)).await?;
    expect("whether another scope is affected", &other.is_none(), &false)
}

pub(super) async fn approvals_of_one_session_are_deleted(fixture: Fixture) -> Outcome {
    let epoch = fixture.claim(1).await?;
    for number in 0..6 {
        let status = [ApprovalStatus::Started, ApprovalStatus::Finished][number as usize % 2];
        fixture.insert(&approval(SCOPE, number, 1 + number / 4, 1_000, status, 1)).await?;
    }
    let one = session(1);
    let all = ApprovalSelection::Of(&one);
    let open = ApprovalSelection::OpenOf(&one);
    let deleted = fixture.host(0).delete_approvals(SCOPE, open, 100).await?;
    expect("the open approvals", &deleted, &2)?;
    expect(
        "the others of the session",
        &fixture.host(1).delete_approvals(SCOPE, all, 100).await?,
        &2,
    )?;
    expect("those of a repetition", &fixture.host(1).delete_approvals(SCOPE, all, 100).await?, &0)?;
    let left = fixture.list(ApprovalFilter::Open, 100).await?;
    expect("the open approvals of other sessions", &numbers(&left), &[4])?;
    let next = fixture.claim(1).await?;
    ensure!(next > epoch, "epochs start again after a deletion");
    // The same call can be asked about again.
    fixture.insert(&approval(SCOPE, 0, 1, 2_000, ApprovalStatus::Pending, 1)).await
}
