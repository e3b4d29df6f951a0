//! The conformance suite detects stores with typical faults.

use std::sync::Mutex;

use crate::fence_gap::FenceGap;
use claude_session_store::{
    Append, Appended, EntryId, EntryPage, Epoch, List, Load, LoadScope, MemoryStore, NewEntry,
    ProjectKey, Sequence, SessionKey, SessionList, SessionStore, StoreFuture, StoredEntry, Subpath,
    conformance,
};

/// What a store does wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Stores every entry, also a known one.
    NoDeduplication,
    /// Compares IDs of all transcripts of a session.
    IdsPerSession,
    /// Accepts every epoch.
    NoFence,
    /// Reads the epoch, and appends later.
    RacyFence,
    /// Starts epochs and sequence numbers again after a delete.
    ForgetsDeleted,
    /// Stores every entry in an append of its own.
    NotAtomic,
    /// Parses texts and writes them again.
    ParsesTexts,
    /// Replaces lone surrogates and NUL characters.
    ReplacesEscapes,
    /// Ignores case in keys.
    IgnoresCase,
    /// Joins the parts of a key with a colon.
    JoinsKeys,
    /// Deletes the main transcript only.
    NoCascade,
    /// Sorts entries.
    SortsEntries,
    /// Ignores the limit of bytes.
    IgnoresMaxBytes,
    /// Rejects more than 65,535 entries.
    FewParameters,
    /// Applies every summary.
    AppliesEverySummary,
    /// Lists sessions without a main transcript.
    ListsClaims,
    /// Writes seconds instead of milliseconds.
    Seconds,
}

const FAULTS: &[(Fault, &[&str])] = &[
    (
        Fault::NoDeduplication,
        &[
            "repeated_batch_is_skipped",
            "batch_with_known_and_new_entries_stores_the_new_ones",
            "repeated_id_within_a_batch_is_stored_once",
            "changed_entry_is_a_new_version",
            "concurrent_copies_of_a_batch_are_stored_once",
        ],
    ),
    (Fault::IdsPerSession, &["ids_are_per_transcript_and_session"]),
    (
        Fault::NoFence,
        &[
            "earlier_epoch_is_rejected_without_a_change",
            "unknown_epoch_is_rejected",
            "empty_append_checks_the_epoch",
            "delete_keeps_the_fence",
            "concurrent_claims_have_one_winner",
        ],
    ),
    (Fault::RacyFence, &["nothing_of_an_earlier_owner_is_stored_after_a_claim"]),
    (
        Fault::ForgetsDeleted,
        &["sequence_numbers_continue_after_a_delete", "delete_keeps_the_fence"],
    ),
    (Fault::NotAtomic, &["reader_sees_whole_batches_in_their_final_order"]),
    (Fault::ParsesTexts, &["json_is_kept_byte_for_byte"]),
    (Fault::ReplacesEscapes, &["json_is_kept_byte_for_byte", "every_unicode_character_is_kept"]),
    (
        Fault::IgnoresCase,
        &["unusual_scopes_and_projects_are_separate", "unusual_subpaths_are_separate"],
    ),
    (Fault::JoinsKeys, &["unusual_scopes_and_projects_are_separate"]),
    (Fault::NoCascade, &["delete_removes_all_transcripts_of_one_session"]),
    (
        Fault::SortsEntries,
        &["entries_are_loaded_in_the_order_of_their_append", "appends_keep_their_order"],
    ),
    (Fault::IgnoresMaxBytes, &["page_ends_at_the_limit_of_bytes", "page_has_at_least_one_entry"]),
    (Fault::FewParameters, &["batch_of_70000_entries_is_stored"]),
    (Fault::AppliesEverySummary, &["summary_is_applied_only_after_the_last_entry"]),
    (
        Fault::ListsClaims,
        &["claimed_session_without_entries_is_not_listed", "subpaths_are_not_sessions"],
    ),
    (Fault::Seconds, &["list_has_the_sessions_of_its_project"]),
];

/// A store in memory with a fault.
struct FaultyStore {
    fault: Fault,
    inner: MemoryStore,
    /// Replaced by a delete with [`Fault::ForgetsDeleted`].
    replaced: Mutex<MemoryStore>,
    gap: FenceGap,
}

impl FaultyStore {
    fn new(fault: Fault) -> Self {
        let (inner, replaced, gap) = Default::default();
        Self { fault, inner, replaced, gap }
    }

    fn inner(&self) -> MemoryStore {
        match self.fault {
            Fault::ForgetsDeleted => self.replaced.lock().unwrap().clone(),
            _ => self.inner.clone(),
        }
    }

    fn project(&self, key: &ProjectKey) -> ProjectKey {
        let (scope, project) = (key.scope(), key.project());
        match self.fault {
            Fault::IgnoresCase => {
                ProjectKey::new(&scope.to_lowercase(), &project.to_lowercase()).unwrap()
            }
            // Long keys are the subject of another check.
            Fault::JoinsKeys if scope.len() < 100 => {
                ProjectKey::new(&format!("{scope}:{project}"), "joined").unwrap()
            }
            _ => key.clone(),
        }
    }

    fn key(&self, key: &SessionKey) -> SessionKey {
        self.project(key.project_key()).session(key.session().clone()).unwrap()
    }

    fn entry(&self, entry: &NewEntry) -> NewEntry {
        let (subpath, id, text) = (entry.subpath(), entry.id(), entry.text());
        let subpath = subpath.cloned();
        match self.fault {
            Fault::NoDeduplication => {
                NewEntry::with_id(subpath, EntryId::unique(), text.clone()).unwrap()
            }
            Fault::IdsPerSession => NewEntry::with_id(None, id.clone(), text.clone()).unwrap(),
            Fault::ParsesTexts => {
                let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
                let text = parsed.map_or_else(|_| text.to_string(), |value| value.to_string());
                NewEntry::with_id(subpath, id.clone(), text).unwrap()
            }
            Fault::ReplacesEscapes => {
                let text = text.replace("\\u0000", "").replace("\\ud800", "\u{fffd}");
                NewEntry::with_id(subpath, id.clone(), text).unwrap()
            }
            Fault::IgnoresCase => {
                let lower =
                    subpath.map(|subpath| Subpath::new(&subpath.as_str().to_lowercase()).unwrap());
                NewEntry::with_id(lower, id.clone(), text.clone()).unwrap()
            }
            _ => entry.clone(),
        }
    }

    async fn append_all(
        &self,
        key: &SessionKey,
        append: Append<'_>,
        entries: &[NewEntry],
    ) -> Result<Appended, claude_session_store::StoreError> {
        let inner = self.inner();
        let mut changed = append;
        changed.entries = entries;
        match self.fault {
            Fault::NoFence => changed.epoch = None,
            Fault::RacyFence if append.epoch.is_some() => {
                let mut check = append;
                check.entries = &[];
                inner.append(key, check).await?;
                self.gap.before_write().await;
                changed.epoch = None;
            }
            Fault::AppliesEverySummary => {
                if let Some(update) = &mut changed.summary {
                    update.after = inner.append(key, Append::new(&[])).await?.last;
                }
            }
            Fault::FewParameters if entries.len() > 65_535 => {
                let kind = claude_session_store::StoreErrorKind::Rejected;
                return Err(claude_session_store::StoreError::new(kind, "too many parameters"));
            }
            Fault::NotAtomic => {
                let mut all = Appended::new(Sequence::new(0), 0, Vec::new());
                for entry in entries.chunks(1) {
                    changed.entries = entry;
                    let one = inner.append(key, changed).await?;
                    all.last = one.last;
                    all.skipped += one.skipped;
                    all.sequences.extend(one.sequences);
                    tokio::task::yield_now().await;
                }
                changed.entries = &[];
                all.last = inner.append(key, changed).await?.last;
                return Ok(all);
            }
            _ => {}
        }
        inner.append(key, changed).await
    }
}

impl SessionStore for FaultyStore {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            if matches!(self.fault, Fault::ListsClaims) {
                let batch = [NewEntry::new(None, "{}", 0)?];
                self.inner.append(key, Append::new(&batch)).await?;
            }
            if matches!(self.fault, Fault::RacyFence) {
                self.gap.before_claim().await;
            }
            let epoch = self.inner().claim(&self.key(key)).await;
            self.gap.claimed();
            epoch
        })
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let mut entries: Vec<_> =
                append.entries.iter().map(|entry| self.entry(entry)).collect();
            if matches!(self.fault, Fault::ListsClaims)
                && entries.iter().all(|entry| entry.subpath().is_some())
                && !entries.is_empty()
            {
                entries.push(NewEntry::new(None, "{}", 0)?);
            }
            self.append_all(&self.key(key), append, &entries).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async move {
            let lower;
            let mut load: Load<'_> = load;
            match (self.fault, load.subpath) {
                (Fault::IgnoresMaxBytes, _) => load.max_bytes = usize::MAX,
                (Fault::IgnoresCase, LoadScope::Subpath(subpath)) => {
                    lower = Subpath::new(&subpath.as_str().to_lowercase()).unwrap();
                    load.subpath = LoadScope::Subpath(&lower);
                }
                _ => {}
            }
            let mut page = self.inner().load(&self.key(key), load).await?;
            self.gap.read();
            if matches!(self.fault, Fault::SortsEntries) {
                let sequences: Vec<_> = page.entries.iter().map(|entry| entry.sequence).collect();
                page.entries.sort_by(|a, b| a.id.cmp(&b.id));
                for (entry, sequence) in page.entries.iter_mut().zip(sequences) {
                    let StoredEntry { subpath, id, text, .. } = entry.clone();
                    *entry = StoredEntry::new(sequence, subpath, id, text);
                }
            }
            Ok(page)
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(async move {
            let mut page = self.inner().list(&self.project(project), list).await?;
            if matches!(self.fault, Fault::Seconds) {
                page.sessions.iter_mut().for_each(|row| row.modified_ms /= 1_000);
            }
            Ok(page)
        })
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        Box::pin(async move { self.inner().subpaths(&self.key(key)).await })
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let key = self.key(key);
            match (self.fault, subpath) {
                (Fault::ForgetsDeleted, None) => {
                    *self.replaced.lock().unwrap() = MemoryStore::new();
                }
                (Fault::NoCascade, None) => {
                    let mut load = Load::all();
                    load.limit = usize::MAX;
                    let page = self.inner.load(&key, load).await?;
                    self.inner.delete(&key, None).await?;
                    let kept = page.entries.into_iter().filter(|entry| entry.subpath.is_some());
                    let kept: Vec<_> = kept
                        .map(|entry| NewEntry::with_id(entry.subpath, entry.id, entry.text))
                        .collect::<Result<_, _>>()?;
                    self.inner.append(&key, Append::new(&kept)).await?;
                }
                _ => self.inner().delete(&key, subpath).await?,
            }
            Ok(())
        })
    }
}

// On a paused clock, so that the check of a wait that never ends does not take its time.
#[tokio::test(start_paused = true)]
async fn every_fault_is_detected_by_its_checks() {
    for (fault, checks) in FAULTS {
        let report = conformance::run(async || FaultyStore::new(*fault)).await;
        assert!(!report.is_success());
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

#[test]
fn failed_report_panics_with_the_failures() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let make = async || FaultyStore::new(Fault::Seconds);
    let report = runtime.block_on(conformance::run(make));
    let panic = std::panic::catch_unwind(|| report.assert()).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("list_has_the_sessions_of_its_project: not a time: "), "{text}");
}
