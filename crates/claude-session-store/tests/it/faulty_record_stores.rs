//! The conformance suite detects stores of records with typical faults.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use crate::fence_gap::FenceGap;
use claude_session_store::record::{
    OwnerKey, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWatch, RecordWrite,
};
use claude_session_store::{Epoch, MemoryStore, StoreError, StoreFuture, conformance};

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Replaces every version.
    NoVersions,
    /// Reads the versions, and writes later.
    RacyVersions,
    /// Writes the changes before the one that does not apply.
    OneByOne,
    /// Accepts every epoch.
    NoFence,
    /// Reads the epoch, and writes later.
    RacyFence,
    /// Rejects updates without an epoch after a claim.
    FencesDecisions,
    /// Ignores case in scopes.
    IgnoresCase,
    /// Lists a closed record as an open one.
    ListsClosed,
    /// Lists open records that are not due.
    IgnoresDueTimes,
    /// Writes seconds instead of milliseconds.
    Seconds,
    /// Removes space around texts.
    TrimsBodies,
    /// Deletes open records by their age.
    DeletesOpen,
    /// Neither notices changes during a wait nor lets the caller look again.
    WaitsForever,
}

const FAULTS: &[(Fault, &[&str])] = &[
    (
        Fault::NoVersions,
        &[
            "record_is_inserted_once",
            "update_of_another_version_changes_nothing",
            "concurrent_inserts_have_one_winner",
            "concurrent_updates_have_one_winner",
            "one_conflict_prevents_all_changes",
        ],
    ),
    (
        Fault::RacyVersions,
        &["concurrent_inserts_have_one_winner", "concurrent_updates_have_one_winner"],
    ),
    (Fault::OneByOne, &["one_conflict_prevents_all_changes"]),
    (
        Fault::NoFence,
        &[
            "record_claims_are_per_scope_and_owner",
            "write_with_an_earlier_epoch_changes_nothing",
            "write_with_an_unknown_epoch_changes_nothing",
            "write_without_changes_checks_the_epoch",
            "fence_of_one_owner_covers_records_of_others",
            "concurrent_record_claims_have_one_winner",
        ],
    ),
    (Fault::RacyFence, &["nothing_of_an_earlier_owner_is_written_after_a_claim"]),
    (Fault::FencesDecisions, &["write_without_an_epoch_is_not_fenced"]),
    (Fault::IgnoresCase, &["scopes_of_records_are_isolated"]),
    (Fault::ListsClosed, &["lists_have_the_records_that_they_select"]),
    (Fault::IgnoresDueTimes, &["records_are_due_by_the_clock_of_the_store"]),
    (Fault::Seconds, &["clock_is_in_milliseconds_and_does_not_go_back"]),
    (Fault::TrimsBodies, &["bodies_are_kept_byte_for_byte"]),
    (Fault::DeletesOpen, &["closed_records_are_deleted_by_their_age"]),
    (
        Fault::WaitsForever,
        &["change_by_another_host_ends_the_wait", "watcher_of_a_scope_misses_no_change"],
    ),
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

    fn owner(&self, owner: &OwnerKey) -> OwnerKey {
        OwnerKey::new(&self.scope(owner.scope()), owner.owner()).unwrap()
    }

    fn key(&self, key: &RecordKey) -> RecordKey {
        RecordKey::new(&self.scope(key.scope()), key.kind(), key.id()).unwrap()
    }

    async fn stored_version(&self, key: &RecordKey) -> Result<Option<u64>, StoreError> {
        let filter = RecordFilter::Id { scope: key.scope(), id: key.id() };
        let page = self.inner.list_records(RecordList::new(key.kind(), filter)).await?;
        Ok(page.records.first().map(|record| record.version))
    }

    async fn write(&self, original: RecordWrite<'_>) -> Result<bool, StoreError> {
        original.check()?;
        let mut changes = original.changes.to_vec();
        for change in &mut changes {
            change.key = self.key(&change.key);
            if self.fault == Fault::TrimsBodies {
                change.body = change.body.trim().into();
            }
        }
        let owner = original.fence.map(|(owner, epoch)| (self.owner(owner), epoch));
        let fenced = |changes| match &owner {
            Some((owner, epoch)) => RecordWrite::new(changes).fence(owner, *epoch),
            None => RecordWrite::new(changes),
        };
        match self.fault {
            Fault::NoFence => return self.inner.write_records(RecordWrite::new(&changes)).await,
            Fault::RacyFence if owner.is_some() => {
                self.inner.write_records(fenced(&[])).await?;
                self.gap.before_write().await;
                return self.inner.write_records(RecordWrite::new(&changes)).await;
            }
            Fault::FencesDecisions if owner.is_none() && !changes.is_empty() => {
                let of = OwnerKey::new(changes[0].key.scope(), &changes[0].owner)?;
                let write = RecordWrite::new(&changes).fence(&of, Epoch::new(0));
                let is_update = changes[0].replaces.is_some();
                let write = if is_update { write } else { RecordWrite::new(&changes) };
                return self.inner.write_records(write).await;
            }
            Fault::NoVersions => {
                self.inner.write_records(fenced(&[])).await?;
                return self.overwrite(changes).await;
            }
            Fault::RacyVersions => {
                self.inner.write_records(fenced(&[])).await?;
                for change in &changes {
                    if self.stored_version(&change.key).await? != change.replaces {
                        return Ok(false);
                    }
                }
                // The others read the versions meanwhile.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                return self.overwrite(changes).await;
            }
            Fault::OneByOne => {
                self.inner.write_records(fenced(&[])).await?;
                for change in &changes {
                    if !self.inner.write_records(fenced(std::slice::from_ref(change))).await? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            _ => {}
        }
        self.inner.write_records(fenced(&changes)).await
    }

    /// Writes records, whatever versions are stored.
    async fn overwrite(&self, changes: Vec<RecordChange>) -> Result<bool, StoreError> {
        for mut change in changes {
            while !self.inner.write_records(RecordWrite::new(std::slice::from_ref(&change))).await?
            {
                change.replaces = self.stored_version(&change.key).await?;
            }
        }
        Ok(true)
    }

    async fn list(&self, original: RecordList<'_>) -> Result<RecordPage, StoreError> {
        let (scope, id, owner);
        let filter = match original.filter {
            RecordFilter::Id { scope: of, id: of_id } => {
                (scope, id) = (self.scope(of), of_id);
                RecordFilter::Id { scope: &scope, id }
            }
            RecordFilter::Of(of) => {
                owner = self.owner(of);
                RecordFilter::Of(&owner)
            }
            RecordFilter::OpenOf(of) => {
                owner = self.owner(of);
                RecordFilter::OpenOf(&owner)
            }
            RecordFilter::In(of) => {
                scope = self.scope(of);
                RecordFilter::In(&scope)
            }
            RecordFilter::OpenIn(of) if self.fault == Fault::ListsClosed => {
                scope = of.to_owned();
                RecordFilter::In(&scope)
            }
            RecordFilter::OpenIn(of) => {
                scope = self.scope(of);
                RecordFilter::OpenIn(&scope)
            }
            RecordFilter::Due if self.fault == Fault::IgnoresDueTimes => RecordFilter::Open,
            filter @ (RecordFilter::Open | RecordFilter::Due) => filter,
        };
        let list = RecordList::new(original.kind, filter).limit(original.limit);
        let mut page = self.inner.list_records(list.after(original.after)).await?;
        self.gap.read();
        if self.fault == Fault::Seconds {
            page.now_ms /= 1_000;
        }
        Ok(page)
    }
}

impl RecordStore for FaultyStore {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            if self.fault == Fault::RacyFence {
                self.gap.before_claim().await;
            }
            let epoch = self.inner.claim_records(&self.owner(owner)).await;
            self.gap.claimed();
            epoch
        })
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(self.write(write))
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(self.list(list))
    }

    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        if self.fault == Fault::WaitsForever {
            return Box::pin(pending());
        }
        self.inner.records_changed(watch)
    }

    fn poll_interval(&self) -> Duration {
        match self.fault {
            Fault::WaitsForever => Duration::from_secs(3600),
            // Scopes are waited for under other names.
            _ => Duration::from_millis(100),
        }
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        match selection {
            RecordSelection::ClosedBefore { scope, .. } if self.fault == Fault::DeletesOpen => {
                self.inner.delete_records(RecordSelection::In(scope), kind, limit)
            }
            selection => self.inner.delete_records(selection, kind, limit),
        }
    }
}

// On a paused clock, so that the check of a wait that never ends does not take its time.
#[tokio::test(start_paused = true)]
async fn every_fault_of_records_is_detected_by_its_checks() {
    for (fault, checks) in FAULTS {
        let hosts = async || {
            let (inner, gap) = (MemoryStore::new(), Arc::default());
            let store = FaultyStore { fault: *fault, inner, gap };
            [store.clone(), store]
        };
        let report = conformance::run_records(hosts).await;
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
