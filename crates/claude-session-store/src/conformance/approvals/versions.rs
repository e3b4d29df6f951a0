//! Records and their versions.

use crate::approval::{Approval, ApprovalFilter, ApprovalWrite};
use serde_json::json;

use super::fixture::{Fixture, Outcome, approval_id, decided, expect, id, pending, session};

/// Returns an approval with every field.
fn complete() -> Approval {
    let value = json!({
        "request": {
            "id": id(1),
            "scope": "scope",
            "session_id": id(1),
            "project": "project",
            "cwd": "/srv/é 'x'",
            "tool_use_id": "toolu_1",
            "tool_name": "mcp__deploy__run",
            "input": { "b": [1, 2.5, null], "a": "\u{0}\"\\ 😀" },
            "agent_id": "agent",
            "requested_at_ms": 1_790_000_000_000_u64,
            "expires_at_ms": 1_790_000_000_001_u64,
            "repeats": id(2),
        },
        "status": "started",
        "decision": { "by": "ana@example.com", "verdict": "allow", "input": { "b": [] } },
        "decided_at_ms": 1_790_000_000_002_u64,
        "is_parked": true,
        "started_in": 7,
        "started_for": "toolu_2",
        "version": 3,
    });
    serde_json::from_value(value).expect("an approval")
}

pub(super) async fn approval_is_returned_as_it_was_stored(fixture: Fixture) -> Outcome {
    let stored = complete();
    fixture.insert(&stored).await?;
    let expected = Some(stored);
    expect("the approval by its ID", &fixture.get(&approval_id(1)).await?, &expected)?;
    let open = fixture.list(ApprovalFilter::OpenOf(&session(1)), 100).await?;
    expect("the open approvals", &open.first(), &expected.as_ref())
}

pub(super) async fn approval_is_inserted_once(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(&first).await?;
    let mut second = first.clone();
    "Write".clone_into(&mut second.request.tool_name);
    for host in 0..2 {
        let is_written = fixture.host(host).write_approval(ApprovalWrite::insert(&second)).await?;
        expect("whether a second approval with the ID was stored", &is_written, &false)?;
    }
    expect("the approval", &fixture.get(&approval_id(1)).await?, &Some(first))
}

pub(super) async fn update_replaces_the_expected_version(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(&first).await?;
    fixture.insert(&pending(2)).await?;
    let mut current = first;
    for number in 0..5 {
        current = decided(&current, &format!("approver {number}"));
        let write = ApprovalWrite::update(&current);
        let is_written = fixture.host(number).write_approval(write).await?;
        expect("whether an update was stored", &is_written, &true)?;
        expect("the approval", &fixture.get(&approval_id(1)).await?, &Some(current.clone()))?;
    }
    expect("another approval", &fixture.get(&approval_id(2)).await?, &Some(pending(2)))
}

pub(super) async fn update_of_another_version_changes_nothing(fixture: Fixture) -> Outcome {
    let first = pending(1);
    fixture.insert(&first).await?;
    let second = decided(&first, "ana");
    expect("the update", &fixture.write(ApprovalWrite::update(&second)).await?, &true)?;
    let other = decided(&first, "bob");
    for replaces in [Some(0), Some(1), Some(3), Some(1 << 40), None] {
        let mut write = ApprovalWrite::update(&other);
        write.replaces = replaces;
        let is_written = fixture.write(write).await?;
        expect(&format!("whether an update of {replaces:?} was stored"), &is_written, &false)?;
    }
    expect("the approval", &fixture.get(&approval_id(1)).await?, &Some(second))?;
    let unknown = decided(&pending(2), "ana");
    let is_written = fixture.write(ApprovalWrite::update(&unknown)).await?;
    expect("whether an update of an unknown approval was stored", &is_written, &false)?;
    expect("the unknown approval", &fixture.get(&approval_id(2)).await?, &None)
}

pub(super) async fn unknown_approvals_are_not_listed(fixture: Fixture) -> Outcome {
    let check = async |scope: &str| {
        expect("an unknown approval", &fixture.get_from(scope, &approval_id(9)).await?, &None)?;
        for filter in [ApprovalFilter::OpenOf(&session(9)), ApprovalFilter::Pending] {
            let found = fixture.list_from(scope, filter, 100).await?;
            expect("the approvals of an unknown session or scope", &found, &[])?;
        }
        Ok(())
    };
    check("scope").await?;
    fixture.insert(&pending(1)).await?;
    check("other").await
}
