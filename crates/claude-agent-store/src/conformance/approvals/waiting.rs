//! Waiting for changes.

use std::time::Duration;

use claude_agent_kit::approval::{Approval, ApprovalStatus, ApprovalWrite, Approvals, Decision};
use tokio::task::JoinSet;

use super::fixture::{
    Failure, Fixture, Outcome, SCOPE, approval, approval_id, decided, expect, parked, pending,
    session,
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
            let approvals = Approvals::new(SCOPE, fixture.hosts[host % 2].clone());
            waits.spawn(async move { approvals.changed(&known).await });
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
    let approvals = Approvals::new(SCOPE, fixture.hosts[1].clone());
    let found = bounded("a wait", approvals.changed(&first)).await??;
    expect("the change", &found, &Some(next))
}

pub(super) async fn decision_by_another_host_makes_a_conversation_resumable(
    fixture: Fixture,
) -> Outcome {
    let approvals = Approvals::new(SCOPE, fixture.hosts[1].clone());
    let mut watcher = approvals.watch_resumable();
    for number in 1..=3 {
        let waiting = approval(SCOPE, number, number, 1_000, ApprovalStatus::Pending, 1);
        fixture.insert(&waiting).await?;
        let decide = async {
            // The watcher may wait already or not.
            tokio::task::yield_now().await;
            fixture.write(ApprovalWrite::update(&parked(&waiting))).await?;
            let approver = Approvals::new(SCOPE, fixture.hosts[0].clone());
            let decided = approver.decide(&waiting.request.id, Decision::allow("ana")).await;
            decided.map_err(|error| Failure(format!("the decision failed: {error}")))
        };
        let (found, decided) =
            tokio::join!(bounded("a wait for a conversation", watcher.next()), decide);
        let (found, decided) = (found??, decided?);
        expect("the session", &found.session_id, &session(number))?;
        expect("the approvals", &found.approvals, &[decided])?;
    }
    let listed = approvals.resumable().await?;
    expect("the conversations that can continue", &listed.len(), &3)
}
