//! Waiting for changes.

use std::time::Duration;

use crate::approval::{Approval, ApprovalFilter, ApprovalStatus, ApprovalWrite, Decision};
use tokio::task::JoinSet;

use super::fixture::{
    Failure, Fixture, Outcome, SCOPE, approval, approval_id, changed, decided, expect, parked,
    pending, session, wait,
};

/// A wait that takes longer does not end. Far more than a store needs that looks for changes by itself.
const BOUND: Duration = Duration::from_secs(30);

async fn bounded<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, Failure> {
    let ended = tokio::time::timeout(BOUND, wait).await;
    ended.map_err(|_| Failure(format!("{what} did not end within {BOUND:?}")))
}

pub(super) async fn change_by_another_host_ends_the_wait(fixture: Fixture) -> Outcome {
    let mut known: Vec<Approval> = Vec::new();
    for number in 0..8 {
        known.push(pending(number));
        fixture.insert(&known[number as usize]).await?;
    }
    // Several changes, so that a store also wakes waiters that it has woken before.
    for _ in 0..3 {
        let mut waits = JoinSet::new();
        for (host, known) in (0..).zip(known.clone()) {
            let host = fixture.hosts[host % 2].clone();
            waits.spawn(async move { changed(&*host, &known).await });
        }
        let next: Vec<Approval> = known.iter().map(|known| decided(known, "ana")).collect();
        for approval in &next {
            tokio::task::yield_now().await;
            fixture.write(ApprovalWrite::update(approval)).await?;
        }
        while let Some(found) = bounded("a wait", waits.join_next()).await? {
            let found = found??;
            let is_next = found.as_ref().is_some_and(|found| next.contains(found));
            expect("whether the change was returned", &is_next, &true)?;
        }
        known = next;
    }
    Ok(())
}

pub(super) async fn wait_for_a_known_change_ends(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(&first).await?;
    fixture.write(ApprovalWrite::update(&decided(&first, "ana"))).await?;
    for (number, version) in [(1, 1), (1, 3), (2, 1)] {
        let id = approval_id(number);
        for host in 0..2 {
            let wait = fixture.host(host).approval_changed(SCOPE, &id, version);
            bounded("a wait for an earlier change", wait).await??;
        }
    }
    Ok(())
}

pub(super) async fn dropped_wait_has_no_effect(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(&first).await?;
    for host in 0..100 {
        let id = approval_id(1);
        let wait = fixture.host(host).approval_changed(SCOPE, &id, 1);
        // Whether it ends does not matter.
        drop(tokio::time::timeout(Duration::from_millis(1), wait).await);
    }
    let next = decided(&first, "ana");
    fixture.write(ApprovalWrite::update(&next)).await?;
    let found = bounded("a wait", changed(fixture.host(1), &first)).await??;
    expect("the change", &found, &Some(next))
}

pub(super) async fn decision_by_another_host_makes_a_conversation_resumable(
    fixture: Fixture,
) -> Outcome {
    for number in 1..=3 {
        let waiting = approval(SCOPE, number, number, 1_000, ApprovalStatus::Pending, 1);
        fixture.insert(&waiting).await?;
        let parked = parked(&waiting);
        let decided = parked.decide(Decision::allow("ana"), 2_000);
        let decided = decided.map_err(|refusal| Failure(refusal.to_string()))?;
        let mut waits = JoinSet::new();
        let host = fixture.clone();
        waits.spawn(async move { resumable(&host, number).await });
        // The watcher may wait already or not.
        tokio::task::yield_now().await;
        fixture.write(ApprovalWrite::update(&parked)).await?;
        let written = fixture.write(ApprovalWrite::update(&decided)).await?;
        expect("whether the decision was stored", &written, &true)?;
        while let Some(found) = bounded("a wait for a conversation", waits.join_next()).await? {
            expect("the approval", &found??, &decided)?;
        }
    }
    Ok(())
}

/// Waits until a conversation can continue.
async fn resumable(fixture: &Fixture, of: u32) -> Result<Approval, Failure> {
    let session = session(of);
    loop {
        // Created before the list is read, so that a change after that wakes it.
        let changed = fixture.host(1).scope_changed(SCOPE);
        let open = fixture.list(ApprovalFilter::Open, 100).await?;
        let found = open.into_iter().find(|it| {
            it.request.session_id == session && it.status == ApprovalStatus::Decided && it.is_parked
        });
        if let Some(found) = found {
            return Ok(found);
        }
        wait(changed.await?).await;
    }
}
