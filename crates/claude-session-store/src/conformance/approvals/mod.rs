//! The checks of stores of approvals.

mod concurrency;
mod content;
mod fencing;
mod fixture;
mod listing;
mod retention;
mod versions;
mod waiting;

pub(super) use self::fixture::Fixture;
use super::{Check, checks};

checks! {
    CHECKS: Fixture;
    versions {
        approval_is_returned_as_it_was_stored,
        approval_is_inserted_once,
        update_replaces_the_expected_version,
        update_of_another_version_changes_nothing,
        unknown_approvals_are_not_listed,
    }
    fencing {
        approval_claims_return_increasing_epochs,
        approval_claims_are_per_scope_and_session,
        write_with_an_earlier_epoch_changes_nothing,
        write_with_an_unknown_epoch_changes_nothing,
        write_without_an_epoch_is_not_fenced,
    }
    concurrency {
        concurrent_inserts_have_one_winner,
        concurrent_updates_have_one_winner,
        concurrent_approval_claims_have_one_winner,
        nothing_of_an_earlier_owner_is_written_after_a_claim,
    }
    listing {
        lists_have_the_approvals_with_their_status,
        approvals_are_listed_in_the_order_of_their_requests,
        pages_continue_between_requests_of_the_same_time,
        changed_approvals_do_not_disturb_the_pages,
        clock_is_in_milliseconds_and_does_not_go_back,
    }
    content {
        scopes_of_approvals_are_isolated,
        longest_scopes_of_approvals_are_accepted,
        inputs_are_kept_byte_for_byte,
        inputs_keep_every_unicode_character,
        input_of_8_megabytes_is_stored,
    }
    waiting {
        change_by_another_host_ends_the_wait,
        wait_for_a_known_change_ends,
        dropped_wait_has_no_effect,
        decision_by_another_host_makes_a_conversation_resumable,
    }
    retention {
        closed_approvals_are_deleted_by_the_time_of_their_request,
        approvals_of_one_session_are_deleted,
    }
}
