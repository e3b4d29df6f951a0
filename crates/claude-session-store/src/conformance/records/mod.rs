//! The checks of stores of records.

mod atomicity;
mod concurrency;
mod content;
mod deletion;
mod fencing;
mod fixture;
mod listing;
mod versions;
mod waiting;

pub(super) use self::fixture::Fixture;
use super::{Check, checks};

checks! {
    CHECKS: Fixture;
    versions {
        record_is_returned_as_it_was_stored,
        record_is_inserted_once,
        update_replaces_the_expected_version,
        update_of_another_version_changes_nothing,
        unknown_records_are_not_listed,
        kinds_are_separate,
    }
    atomicity {
        changes_are_written_together,
        one_conflict_prevents_all_changes,
        invalid_writes_are_rejected,
        write_without_changes_checks_the_epoch,
    }
    fencing {
        record_claims_return_increasing_epochs,
        record_claims_are_per_scope_and_owner,
        write_with_an_earlier_epoch_changes_nothing,
        write_with_an_unknown_epoch_changes_nothing,
        write_without_an_epoch_is_not_fenced,
        fence_of_one_owner_covers_records_of_others,
    }
    concurrency {
        concurrent_inserts_have_one_winner,
        concurrent_updates_have_one_winner,
        concurrent_writes_of_several_records_have_one_winner,
        concurrent_record_claims_have_one_winner,
        nothing_of_an_earlier_owner_is_written_after_a_claim,
    }
    listing {
        lists_have_the_records_that_they_select,
        records_are_listed_in_the_order_of_their_creation,
        changed_records_do_not_disturb_the_pages,
        records_are_due_by_the_clock_of_the_store,
        clock_is_in_milliseconds_and_does_not_go_back,
    }
    content {
        scopes_of_records_are_isolated,
        owners_and_ids_are_compared_byte_for_byte,
        longest_keys_of_records_are_accepted,
        bodies_are_kept_byte_for_byte,
        bodies_keep_every_unicode_character,
        body_of_8_megabytes_is_stored,
    }
    waiting {
        change_by_another_host_ends_the_wait,
        wait_for_a_known_change_ends,
        dropped_wait_has_no_effect,
        watcher_of_a_scope_misses_no_change,
    }
    deletion {
        closed_records_are_deleted_by_their_age,
        records_of_one_owner_are_deleted,
        all_records_of_a_scope_are_deleted,
    }
}
