//! The conformance suite detects stores of approvals with typical faults.

use std::sync::Arc;

use crate::fence_gap::FenceGap;
use claude_session_store::approval::{
    Approval, ApprovalFilter, ApprovalId, ApprovalList, ApprovalPage, ApprovalStatus,
    ApprovalStore, ApprovalWrite, Change,
};
use claude_session_store::{Epoch, MemoryStore, SessionId, StoreError, StoreFuture, conformance};

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Replaces every version.
    NoVersions,
    /// Reads the version, and writes later.
    RacyVersions,
    /// Accepts every epoch.
    NoFence,
    /// Reads the epoch, and writes later.
    RacyFence,
    /// Rejects updates without an epoch after a claim.
    FencesDecisions,
    /// Ignores case in scopes.
    IgnoresCase,
    /// Continues after the time of a request, without its ID.
    PagesByTime,
    /// Lists a decided approval as a pending one.
    ListsDecided,
    /// Writes seconds instead of milliseconds.
    Seconds,
    /// Parses inputs and writes them again.
    ParsesInputs,
    /// Does not notice changes during a wait.
    WaitsForever,
}

const FAULTS: &[(Fault, &[&str])] = &[
    (
        Fault::NoVersions,
        &[
            "approval_is_inserted_once",
            "update_of_another_version_changes_nothing",
            "concurrent_inserts_have_one_winner",
            "concurrent_updates_have_one_winner",
        ],
    ),
    (
        Fault::RacyVersions,
        &["concurrent_inserts_have_one_winner", "concurrent_updates_have_one_winner"],
    ),
    (
        Fault::NoFence,
        &[
            "approval_claims_are_per_scope_and_session",
            "write_with_an_earlier_epoch_changes_nothing",
            "write_with_an_unknown_epoch_changes_nothing",
            "concurrent_approval_claims_have_one_winner",
        ],
    ),
    (Fault::RacyFence, &["nothing_of_an_earlier_owner_is_written_after_a_claim"]),
    (Fault::FencesDecisions, &["write_without_an_epoch_is_not_fenced"]),
    (Fault::IgnoresCase, &["scopes_of_approvals_are_isolated"]),
    (Fault::PagesByTime, &["pages_continue_between_requests_of_the_same_time"]),
    (Fault::ListsDecided, &["lists_have_the_approvals_with_their_status"]),
    (Fault::Seconds, &["clock_is_in_milliseconds_and_does_not_go_back"]),
    (Fault::ParsesInputs, &["inputs_are_kept_byte_for_byte"]),
    (Fault::WaitsForever, &["change_by_another_host_ends_the_wait"]),
];

/// A store in memory with a fault.
#[derive(Clone)]
struct FaultyStore {
    fault: Fault,
    inner: MemoryStore,
    gap: Arc<FenceGap>,
}

impl FaultyStore {
    fn scope(&self, scope: &str) -> String {
        if self.fault == Fault::IgnoresCase { scope.to_lowercase() } else { scope.to_owned() }
    }

    async fn stored_version(&self, approval: &Approval) -> Result<Option<u64>, StoreError> {
        let (scope, id) = (&approval.request.scope, &approval.request.id);
        let list = ApprovalList::new(scope, ApprovalFilter::Id(id));
        let page = self.inner.list_approvals(list).await?;
        Ok(page.approvals.first().map(Approval::version))
    }

    async fn write(&self, original: ApprovalWrite<'_>) -> Result<bool, StoreError> {
        let mut changed = original.approval.clone();
        changed.request.scope = self.scope(&changed.request.scope);
        if self.fault == Fault::ParsesInputs {
            let input: Option<serde_json::Value> = changed.request.input.deserialize().ok();
            changed.request.input = input.map_or(changed.request.input, Into::into);
        }
        let mut write = ApprovalWrite::insert(&changed);
        (write.replaces, write.epoch) = (original.replaces, original.epoch);
        match self.fault {
            Fault::NoFence => write.epoch = None,
            Fault::RacyFence if write.epoch.is_some() => {
                // A write over a version that no record has only checks the epoch.
                let mut check = write;
                check.replaces = Some(u64::MAX);
                self.inner.write_approval(check).await?;
                self.gap.before_write().await;
                write.epoch = None;
            }
            Fault::FencesDecisions if write.replaces.is_some() => {
                write.epoch = write.epoch.or(Some(Epoch::new(0)));
            }
            Fault::NoVersions => return self.overwrite(write).await,
            Fault::RacyVersions => {
                if self.stored_version(&changed).await? != write.replaces {
                    return Ok(false);
                }
                // The others read the version meanwhile.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                return self.overwrite(write).await;
            }
            _ => {}
        }
        self.inner.write_approval(write).await
    }

    /// Writes a record, whatever version is stored.
    async fn overwrite(&self, mut write: ApprovalWrite<'_>) -> Result<bool, StoreError> {
        while !self.inner.write_approval(write).await? {
            write.replaces = self.stored_version(write.approval).await?;
        }
        Ok(true)
    }

    async fn list(&self, original: ApprovalList<'_>) -> Result<ApprovalPage, StoreError> {
        let scope = self.scope(original.scope);
        let mut after = original.after.cloned();
        if let Some(after) = after.as_mut().filter(|_| self.fault == Fault::PagesByTime) {
            after.id = ApprovalId::parse("ffffffff-ffff-ffff-ffff-ffffffffffff").unwrap();
        }
        let list = ApprovalList::new(&scope, original.filter).limit(original.limit);
        let list: ApprovalList<'_> = list.after(after.as_ref());
        let mut page = self.inner.list_approvals(list).await?;
        self.gap.read();
        // Once, because the changed approval would be found again by most checks.
        let is_pair = original.filter == ApprovalFilter::Pending && page.approvals.len() == 2;
        if self.fault == Fault::ListsDecided && is_pair {
            let mut decided = page.approvals[1].clone();
            decided.status = ApprovalStatus::Decided;
            page.approvals.push(decided);
        }
        if self.fault == Fault::Seconds {
            page.now_ms /= 1_000;
        }
        Ok(page)
    }
}

impl ApprovalStore for FaultyStore {
    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            if self.fault == Fault::RacyFence {
                self.gap.before_claim().await;
            }
            let epoch = self.inner.claim_approvals(&self.scope(scope), session).await;
            self.gap.claimed();
            epoch
        })
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(self.write(write))
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        Box::pin(self.list(list))
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        if self.fault != Fault::WaitsForever {
            return self.inner.approval_changed(scope, id, version);
        }
        Box::pin(async move {
            let list = ApprovalList::new(scope, ApprovalFilter::Id(id));
            let page = self.inner.list_approvals(list).await?;
            if page.approvals.first().is_some_and(|stored| stored.version() == version) {
                std::future::pending::<()>().await;
            }
            Ok(Change::Possible)
        })
    }
}

// On a paused clock, so that the check of a wait that never ends does not take its time.
#[tokio::test(start_paused = true)]
async fn every_fault_of_approvals_is_detected_by_its_checks() {
    for (fault, checks) in FAULTS {
        let hosts = async || {
            let (inner, gap) = (MemoryStore::new(), Arc::default());
            let store = FaultyStore { fault: *fault, inner, gap };
            [store.clone(), store]
        };
        let report = conformance::run_approvals(hosts).await;
        let failed: Vec<&str> = report
            .checks()
            .iter()
            .filter(|check| check.failure().is_some())
            .map(conformance::CheckReport::name)
            .collect();
        for check in *checks {
            assert!(failed.contains(check), "{fault:?} is not detected by {check}: {failed:?}");
        }
        // A report that fails everywhere would prove nothing.
        assert!(failed.len() < report.checks().len() / 2, "{fault:?}: {failed:?}");
    }
}
