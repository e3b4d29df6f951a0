//! Lists and pages.

use crate::approval::{
    ApprovalFilter, ApprovalList, ApprovalPosition, ApprovalStatus, ApprovalWrite,
};

use super::fixture::{
    Fixture, Outcome, SCOPE, approval, approval_id, decided, ensure, expect, numbers, pending,
    session,
};

const STATUSES: [ApprovalStatus; 7] = [
    ApprovalStatus::Pending,
    ApprovalStatus::Decided,
    ApprovalStatus::Started,
    ApprovalStatus::Finished,
    ApprovalStatus::OutcomeUnknown,
    ApprovalStatus::Expired,
    ApprovalStatus::Withdrawn,
];

pub(super) async fn lists_have_the_approvals_with_their_status(fixture: Fixture) -> Outcome {
    // Every session has an approval in each state.
    for at in 0..14 {
        let status = STATUSES[at as usize % 7];
        fixture.insert(&approval(SCOPE, at, at / 7, at.into(), status, 1)).await?;
    }
    for (one, open) in [(0, [0, 1, 2]), (1, [7, 8, 9])] {
        let found = fixture.list(ApprovalFilter::OpenOf(&session(one)), 100).await?;
        expect("the open approvals of a session", &numbers(&found), &open)?;
    }
    let found = fixture.list(ApprovalFilter::Pending, 100).await?;
    expect("the pending approvals", &numbers(&found), &[0, 7])?;
    for limit in [1, 2, 100] {
        let found = fixture.list(ApprovalFilter::Open, limit).await?;
        expect("the open approvals", &numbers(&found), &[0, 1, 2, 7, 8, 9])?;
    }
    for at in 0..14 {
        let found = fixture.get(&approval_id(at)).await?.map(|found| found.status);
        expect("the status by ID", &found, &Some(STATUSES[at as usize % 7]))?;
    }
    // A change of the state changes the lists.
    let is_written = fixture
        .write(ApprovalWrite::update(&approval(SCOPE, 0, 0, 0, ApprovalStatus::Decided, 2)))
        .await?;
    expect("whether the change was stored", &is_written, &true)?;
    let found = fixture.list(ApprovalFilter::Pending, 100).await?;
    expect("the pending approvals after a decision", &numbers(&found), &[7])?;
    let withdrawn = approval(SCOPE, 0, 0, 0, ApprovalStatus::Withdrawn, 3);
    fixture.write(ApprovalWrite::update(&withdrawn)).await?;
    let found = fixture.list(ApprovalFilter::OpenOf(&session(0)), 100).await?;
    expect("the open approvals after a withdrawal", &numbers(&found), &[1, 2])?;
    // A request that is made again is the newest one.
    let renewed = approval(SCOPE, 0, 0, 99, ApprovalStatus::Pending, 4);
    fixture.write(ApprovalWrite::update(&renewed)).await?;
    let found = fixture.list(ApprovalFilter::Pending, 100).await?;
    expect("the pending approvals after a renewal", &numbers(&found), &[7, 0])
}

pub(super) async fn approvals_are_listed_in_the_order_of_their_requests(
    fixture: Fixture,
) -> Outcome {
    let times: [u64; 8] = [0, 1, 9, 10, 99, 1_790_000_000_000, 1_790_000_000_001, 1 << 53];
    for at in [3, 7, 0, 5, 1, 6, 4, 2] {
        let time = times[at as usize];
        fixture.insert(&approval(SCOPE, at, 1, time, ApprovalStatus::Pending, 1)).await?;
    }
    let session = session(1);
    let filters = [ApprovalFilter::Pending, ApprovalFilter::OpenOf(&session), ApprovalFilter::Open];
    for filter in filters {
        for limit in [1, 3, 8, 100, usize::MAX] {
            let found = fixture.list(filter, limit).await?;
            expect("the approvals", &numbers(&found), &[0, 1, 2, 3, 4, 5, 6, 7])?;
        }
    }
    let list = ApprovalList::new(SCOPE, ApprovalFilter::Pending).limit(0);
    let page = fixture.host(0).list_approvals(list).await?;
    expect("a page with the limit 0", &(page.approvals.len(), page.more), &(1, true))?;
    let position = ApprovalPosition::of(&pending(1));
    let id = approval_id(0);
    let list = ApprovalList::new(SCOPE, ApprovalFilter::Id(&id)).after(Some(&position));
    let page = fixture.host(0).list_approvals(list).await?;
    expect("an approval before the position", &page.approvals, &[])
}

pub(super) async fn pages_continue_between_requests_of_the_same_time(fixture: Fixture) -> Outcome {
    for at in (0..25).rev() {
        let time = 1_000 + u64::from(at / 10);
        fixture.insert(&approval(SCOPE, at, 1, time, ApprovalStatus::Pending, 1)).await?;
    }
    let expected: Vec<u32> = (0..25).collect();
    let session = session(1);
    let filters = [ApprovalFilter::Pending, ApprovalFilter::OpenOf(&session), ApprovalFilter::Open];
    for filter in filters {
        for limit in [1, 2, 7, 10, 24, 25, 26] {
            let found = fixture.list(filter, limit).await?;
            expect(&format!("the pages of {limit}"), &numbers(&found), &expected)?;
        }
    }
    Ok(())
}

pub(super) async fn changed_approvals_do_not_disturb_the_pages(fixture: Fixture) -> Outcome {
    for at in 0..6 {
        fixture.insert(&pending(at)).await?;
    }
    let list = ApprovalList::new(SCOPE, ApprovalFilter::Pending).limit(3);
    let first = fixture.host(0).list_approvals(list).await?;
    expect("the first page", &numbers(&first.approvals), &[0, 1, 2])?;
    // The position of an approval that is no longer listed is still valid.
    for approval in &first.approvals {
        fixture.write(ApprovalWrite::update(&decided(approval, "ana"))).await?;
    }
    let position = first.approvals.last().map(ApprovalPosition::of);
    let second = fixture.host(1).list_approvals(list.after(position.as_ref())).await?;
    expect("the second page", &numbers(&second.approvals), &[3, 4, 5])?;
    expect("whether more follow", &second.more, &false)
}

pub(super) async fn clock_is_in_milliseconds_and_does_not_go_back(fixture: Fixture) -> Outcome {
    let mut last = 0;
    for number in 0..20 {
        let id = approval_id(number);
        for filter in [ApprovalFilter::Pending, ApprovalFilter::Id(&id)] {
            let page =
                fixture.host(number).list_approvals(ApprovalList::new(SCOPE, filter)).await?;
            // Between 2020 and 2200.
            let is_time = (1_577_836_800_000..7_258_118_400_000).contains(&page.now_ms);
            ensure!(is_time, "not a time: {}", page.now_ms);
            ensure!(page.now_ms >= last, "the clock went back from {last} to {}", page.now_ms);
            last = page.now_ms;
        }
        fixture.insert(&pending(number)).await?;
    }
    Ok(())
}
