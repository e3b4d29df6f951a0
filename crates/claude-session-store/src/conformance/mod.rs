//! The checks that every [`SessionStore`] and every [`RecordStore`] must pass.
//!
//! Call [`run`] in a test of your own store, and [`run_records`] if it stores records. Every check gets a new
//! store:
//!
//! ```
//! use claude_session_store::MemoryStore;
//! use claude_session_store::conformance;
//!
//! # #[allow(clippy::needless_doctest_main)]
//! #[tokio::main]
//! async fn main() {
//!     conformance::run(async || MemoryStore::new()).await.assert();
//!     let hosts = async || {
//!         let store = MemoryStore::new();
//!         [store.clone(), store]
//!     };
//!     conformance::run_records(hosts).await.assert();
//! }
//! ```
//!
//! The suite contains the 14 checks of the official one (`run_session_store_conformance` of the Python
//! SDK), adapted to this trait:
//!
//! | official check | check of this suite |
//! |---|---|
//! | 1: append, then load | `entries_are_loaded_in_the_order_of_their_append` |
//! | 2: unknown session and unknown subpath | `unknown_transcripts_are_empty` |
//! | 3: several appends keep their order | `appends_keep_their_order` |
//! | 4: empty append | `empty_append_changes_nothing` |
//! | 5: subpath independent of the main transcript | `subpaths_are_separate_transcripts` |
//! | 6: project isolation | `projects_are_isolated` |
//! | 7: list of sessions | `list_has_the_sessions_of_its_project` |
//! | 8: subpaths are not sessions | `subpaths_are_not_sessions` |
//! | 9: delete of the main transcript, delete of an unknown session | `deleted_session_is_empty` |
//! | 10: delete cascades to subpaths | `delete_removes_all_transcripts_of_one_session` |
//! | 11: delete of one subpath | `delete_of_a_subpath_keeps_the_others` |
//! | 12: list of subpaths | `subpaths_are_those_of_the_session` |
//! | 13: the main transcript is not a subpath | `main_transcript_is_not_a_subpath` |
//! | 14: summaries | `summaries_are_kept_per_session` |
//!
//! The other checks cover deduplication, concurrency, fencing, large batches, unusual keys, all of Unicode,
//! failed appends, clocks, paging, summaries and retention. Those of records cover versions, writes of several records, fencing,
//! concurrency, lists, unusual keys, all of Unicode, clocks, waiting and deletion.

mod basics;
mod concurrency;
mod content;
mod deduplication;
mod deletion;
mod fencing;
mod fixture;
mod keys;
mod listing;
mod paging;
mod records;
mod report;
mod summaries;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::SessionStore;
use crate::record::RecordStore;

use self::fixture::{Failure, Fixture, Outcome};
pub use self::report::{CheckReport, Report};

/// A check that takes longer has failed. Far more than a slow store needs.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A check: its name, the number of the official check that it covers, and its code.
struct Check<F> {
    name: &'static str,
    official: Option<u8>,
    run: fn(F) -> Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

impl<F> Check<F> {
    /// Runs the check in a task of its own, so that a panic of the store fails one check.
    async fn report(&self, fixture: F) -> CheckReport {
        let start = Instant::now();
        let mut task = tokio::spawn((self.run)(fixture));
        let failure = match tokio::time::timeout(TIMEOUT, &mut task).await {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(Failure(text)))) => Some(text),
            Ok(Err(error)) => Some(format!("the check panicked: {error}")),
            Err(_) => {
                task.abort();
                Some(format!("no result within {TIMEOUT:?}"))
            }
        };
        let (name, official, duration) = (self.name, self.official, start.elapsed());
        CheckReport { name, official, failure, duration }
    }
}

/// Declares the checks by module: `official number => function`, or only the function.
macro_rules! checks {
    ($list:ident: $fixture:ty; $( $module:ident { $( $($official:literal =>)? $name:ident ),+ $(,)? } )+) => {
        pub(in crate::conformance) const $list: &[Check<$fixture>] = &[$($(
            Check {
                name: stringify!($name),
                official: checks!(@official $($official)?),
                run: |fixture| Box::pin($module::$name(fixture)),
            },
        )+)+];
    };
    (@official) => { None };
    (@official $number:literal) => { Some($number) };
}
use checks;

checks! {
    CHECKS: Fixture;
    basics {
        1 => entries_are_loaded_in_the_order_of_their_append,
        2 => unknown_transcripts_are_empty,
        3 => appends_keep_their_order,
        4 => empty_append_changes_nothing,
        5 => subpaths_are_separate_transcripts,
        12 => subpaths_are_those_of_the_session,
        13 => main_transcript_is_not_a_subpath,
        all_transcripts_share_one_order,
    }
    listing {
        6 => projects_are_isolated,
        7 => list_has_the_sessions_of_its_project,
        8 => subpaths_are_not_sessions,
        modification_times_are_milliseconds_and_increase,
        list_is_sorted_and_paged,
        session_can_be_got_as_it_is_listed,
        invalid_cursor_is_rejected,
    }
    deletion {
        9 => deleted_session_is_empty,
        10 => delete_removes_all_transcripts_of_one_session,
        11 => delete_of_a_subpath_keeps_the_others,
        sequence_numbers_continue_after_a_delete,
        deleted_entries_can_be_appended_again,
        unchanged_session_is_deleted_and_claimed,
        session_that_is_written_to_survives_its_deletion,
        projects_of_a_scope_are_listed,
    }
    summaries {
        14 => summaries_are_kept_per_session,
        summary_is_applied_only_after_the_last_entry,
        summary_is_kept_byte_for_byte,
    }
    deduplication {
        repeated_batch_is_skipped,
        batch_with_known_and_new_entries_stores_the_new_ones,
        repeated_id_within_a_batch_is_stored_once,
        changed_entry_is_a_new_version,
        ids_are_per_transcript_and_session,
    }
    fencing {
        claims_return_increasing_epochs,
        earlier_epoch_is_rejected_without_a_change,
        unknown_epoch_is_rejected,
        append_without_an_epoch_is_not_fenced,
        empty_append_checks_the_epoch,
        claimed_session_without_entries_is_not_listed,
        delete_keeps_the_fence,
        claims_are_per_session,
    }
    concurrency {
        concurrent_appends_store_every_entry_once,
        concurrent_copies_of_a_batch_are_stored_once,
        reader_sees_whole_batches_in_their_final_order,
        concurrent_claims_have_one_winner,
        nothing_of_an_earlier_owner_is_stored_after_a_claim,
        concurrent_sessions_do_not_affect_each_other,
    }
    content {
        every_unicode_character_is_kept,
        json_is_kept_byte_for_byte,
        batch_of_70000_entries_is_stored,
        entry_of_8_megabytes_is_stored,
    }
    keys {
        unusual_scopes_and_projects_are_separate,
        unusual_subpaths_are_separate,
        longest_keys_are_accepted,
    }
    paging {
        page_ends_at_the_limit_of_entries,
        page_ends_at_the_limit_of_bytes,
        page_has_at_least_one_entry,
        load_after_the_end_is_empty,
        pages_of_a_subpath_continue_after_other_transcripts,
    }
}

/// Runs every check on a store of its own and returns the results.
///
/// A check has failed if it panics, or if it has no result after five minutes. A multi-threaded runtime finds
/// more faults of concurrent requests.
///
/// # Panics
/// Panics outside of a Tokio runtime with time enabled.
pub async fn run<S: SessionStore>(make: impl AsyncFn() -> S) -> Report {
    let mut checks = Vec::with_capacity(CHECKS.len());
    for check in CHECKS {
        let store: Arc<dyn SessionStore> = Arc::new(make().await);
        checks.push(check.report(Fixture::new(store)).await);
    }
    Report { checks }
}

/// Runs every check of records and returns the results. `hosts` creates a store and returns two handles of it,
/// as two hosts would open it.
///
/// A check has failed if it panics, or if it has no result after five minutes. A multi-threaded runtime finds
/// more faults of concurrent requests.
///
/// # Panics
/// Panics outside of a Tokio runtime with time enabled.
pub async fn run_records<S: RecordStore>(hosts: impl AsyncFn() -> [S; 2]) -> Report {
    let mut checks = Vec::with_capacity(records::CHECKS.len());
    for check in records::CHECKS {
        let hosts = hosts().await.map(|store| Arc::new(store) as Arc<dyn RecordStore>);
        checks.push(check.report(records::Fixture::new(hosts)).await);
    }
    Report { checks }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_official_check_is_covered_and_listed() {
        let covered: Vec<u8> = CHECKS.iter().filter_map(|check| check.official).collect();
        let numbers: BTreeSet<u8> = covered.iter().copied().collect();
        assert_eq!((numbers, covered.len()), ((1..=14).collect(), 14));
        let docs = include_str!("mod.rs");
        for check in CHECKS.iter().filter(|check| check.official.is_some()) {
            let row = format!("//! | {}: ", check.official.unwrap());
            let row = docs.lines().find(|line| line.starts_with(&row)).unwrap();
            assert!(row.ends_with(&format!("| `{}` |", check.name)), "{row}");
        }
    }

    #[test]
    fn every_check_has_its_own_name() {
        let names = CHECKS.iter().map(|check| check.name);
        let names: Vec<&str> =
            names.chain(records::CHECKS.iter().map(|check| check.name)).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
