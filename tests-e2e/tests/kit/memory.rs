//! The memory of a host is proportional to what it keeps, whatever the CLI sends.

use crate::support::host;

/// Runs a case in a separate process, which may grow by `kept` MiB while it keeps its items and by
/// `most` MiB at its peak. Returns the output of the case.
fn case(name: &str, kept: usize, most: usize) -> String {
    let told = host(&["memory", name]);
    let mut words = told.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<usize>().unwrap();
    let (grown, at_most) = (number(), number());
    assert!(grown <= kept, "{name}: grown by {grown} MiB: {told}");
    assert!(at_most <= most, "{name}: grown by {at_most} MiB at most: {told}");
    told
}

#[test]
fn small_results_that_are_kept_do_not_keep_the_large_messages_before_them() {
    let told = case("kept-results", 100, 200);
    assert!(told.contains("40 results"), "{told}");
}

#[test]
fn unread_messages_do_not_keep_the_blanks_before_them() {
    case("blank-lines", 64, 100);
}

#[test]
fn unread_warnings_do_not_keep_the_long_names_in_requests() {
    case("warnings", 64, 120);
}

#[test]
fn a_cli_that_reads_no_responses_ends_the_run_before_they_take_much_memory() {
    let told = case("responses", 200, 200);
    assert!(told.contains("ended: true") && told.contains("StdinNotRead"), "{told}");
}

#[test]
fn long_task_ids_are_not_kept() {
    case("tasks", 64, 100);
}

#[test]
fn a_result_that_names_a_million_messages_is_not_kept_for_each_turn() {
    let told = case("shared", 250, 250);
    assert!(told.contains("90 names"), "{told}");
}
