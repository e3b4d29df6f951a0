//! The set-up of a check of approvals.

use std::sync::Arc;

use crate::approval::{
    Approval, ApprovalFilter, ApprovalId, ApprovalList, ApprovalPosition, ApprovalStatus,
    ApprovalStore, ApprovalWrite, Change,
};
use crate::{Epoch, StoreError};
use claude_wire::id::SessionId;
use serde_json::json;

pub(super) use super::super::fixture::{Failure, Outcome, ensure, expect, expect_error, id};

/// The scope that most checks use.
pub(super) const SCOPE: &str = "scope";

/// Two handles of a new store.
#[derive(Clone)]
pub(in super::super) struct Fixture {
    pub(super) hosts: [Arc<dyn ApprovalStore>; 2],
}

impl Fixture {
    pub(in super::super) fn new(hosts: [Arc<dyn ApprovalStore>; 2]) -> Self {
        Self { hosts }
    }

    /// Returns one of the two handles.
    pub(super) fn host(&self, number: u32) -> &dyn ApprovalStore {
        let [one, other] = &self.hosts;
        if number.is_multiple_of(2) { &**one } else { &**other }
    }

    pub(super) async fn claim(&self, session: u32) -> Result<Epoch, StoreError> {
        self.host(0).claim_approvals(SCOPE, &self::session(session)).await
    }

    pub(super) async fn write(&self, write: ApprovalWrite<'_>) -> Result<bool, StoreError> {
        self.host(0).write_approval(write).await
    }

    /// Inserts an approval that does not exist.
    pub(super) async fn insert(&self, approval: &Approval) -> Outcome {
        let is_written = self.write(ApprovalWrite::insert(approval)).await?;
        expect("whether a new approval was stored", &is_written, &true)
    }

    /// Returns an approval of the usual scope, as the other host sees it.
    pub(super) async fn get(&self, id: &ApprovalId) -> Result<Option<Approval>, Failure> {
        self.get_from(SCOPE, id).await
    }

    pub(super) async fn get_from(
        &self,
        scope: &str,
        id: &ApprovalId,
    ) -> Result<Option<Approval>, Failure> {
        let mut found = self.list_from(scope, ApprovalFilter::Id(id), 100).await?;
        ensure!(found.len() <= 1, "one ID has {} approvals", found.len());
        Ok(found.pop())
    }

    /// Returns all approvals of the usual scope, page by page.
    pub(super) async fn list(
        &self,
        filter: ApprovalFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Approval>, Failure> {
        self.list_from(SCOPE, filter, limit).await
    }

    pub(super) async fn list_from(
        &self,
        scope: &str,
        filter: ApprovalFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Approval>, Failure> {
        let (mut found, mut after) = (Vec::new(), None::<ApprovalPosition>);
        loop {
            let list = ApprovalList::new(scope, filter).after(after.as_ref()).limit(limit);
            let page = self.host(1).list_approvals(list).await?;
            ensure!(page.approvals.len() <= limit.max(1), "a page exceeds its limit");
            let foreign = page.approvals.iter().find(|approval| !list.contains(approval));
            ensure!(
                foreign.is_none(),
                "a page has an approval that was not requested: {foreign:?}"
            );
            ensure!(
                page.unreadable.is_empty(),
                "an approval cannot be read: {:?}",
                page.unreadable
            );
            ensure!(!page.more || !page.approvals.is_empty(), "an empty page has a next one");
            after = page.approvals.last().map(ApprovalPosition::of);
            found.extend(page.approvals);
            ensure!(found.len() < 10_000, "the pages do not end");
            if !page.more {
                return Ok(found);
            }
        }
    }
}

/// Waits if the store cannot.
pub(super) async fn wait(change: Change) {
    match change {
        Change::Possible => {}
        Change::AskAgainAfter(time) => tokio::time::sleep(time).await,
    }
}

/// Waits until an approval is not in a known version, as one of the hosts sees it.
pub(super) async fn changed(
    host: &dyn ApprovalStore,
    known: &Approval,
) -> Result<Option<Approval>, StoreError> {
    let id = &known.request.id;
    loop {
        let list = ApprovalList::new(SCOPE, ApprovalFilter::Id(id));
        let found = host.list_approvals(list).await?.approvals.pop();
        if found.as_ref().is_none_or(|found| found.version() != known.version()) {
            return Ok(found);
        }
        wait(host.approval_changed(SCOPE, id, known.version()).await?).await;
    }
}

pub(super) fn session(number: u32) -> SessionId {
    SessionId::from(&*id(number))
}

pub(super) fn approval_id(number: u32) -> ApprovalId {
    ApprovalId::parse(&id(number)).expect("a UUID")
}

/// Returns a pending approval of session 1, with version 1.
pub(super) fn pending(number: u32) -> Approval {
    approval(SCOPE, number, 1, 1_000, ApprovalStatus::Pending, 1)
}

/// Returns the next version of an approval, which `by` has decided.
pub(super) fn decided(earlier: &Approval, by: &str) -> Approval {
    let mut next = serde_json::to_value(earlier).expect("an approval");
    next["status"] = json!("decided");
    next["version"] = json!(earlier.version() + 1);
    next["decision"] = json!({ "by": by, "verdict": "deny", "message": "no" });
    next["decided_at_ms"] = json!(2_000);
    serde_json::from_value(next).expect("an approval")
}

/// Returns the next version of an approval, for which no run waits.
pub(super) fn parked(earlier: &Approval) -> Approval {
    let mut next = serde_json::to_value(earlier).expect("an approval");
    next["is_parked"] = json!(true);
    next["version"] = json!(earlier.version() + 1);
    serde_json::from_value(next).expect("an approval")
}

/// Creates an approval, which only the kit can do in another way.
pub(super) fn approval(
    scope: &str,
    number: u32,
    session: u32,
    requested_at_ms: u64,
    status: ApprovalStatus,
    version: u64,
) -> Approval {
    let value = json!({
        "request": {
            "id": id(number),
            "scope": scope,
            "session_id": id(session),
            "tool_use_id": format!("toolu_{number}"),
            "tool_name": "Bash",
            "input": { "command": "make" },
            "requested_at_ms": requested_at_ms,
        },
        "status": status.as_str(),
        "is_parked": false,
        "version": version,
    });
    serde_json::from_value(value).expect("an approval")
}

/// Returns the numbers in the IDs of approvals.
pub(super) fn numbers(approvals: &[Approval]) -> Vec<u32> {
    let number = |approval: &Approval| {
        let digits = approval.request.id.as_str().split('-').next().unwrap_or_default();
        u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
    };
    approvals.iter().map(number).collect()
}
