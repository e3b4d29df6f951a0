//! The memory of a host is proportional to what it keeps, whatever the CLI sends.

use crate::support::host;

/// Runs a case in a separate process, which may grow by `kept` MiB while it keeps its items and by
/// `most` MiB at its peak. Returns the output of the case.
fn case(name: &str, kept: usize, most: usize) -> String {
    let output = host(&["memory", name]);
    let mut words = output.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<usize>().unwrap();
    let (grown, at_most) = (number(), number());
    assert!(grown <= kept, "{name}: grown by {grown} MiB: {output}");
    assert!(at_most <= most, "{name}: grown by {at_most} MiB at most: {output}");
    output
}

#[test]
fn kept_results_do_not_retain_earlier_large_messages() {
    let output = case("kept-results", 100, 200);
    assert!(output.contains("40 results"), "{output}");
}

#[test]
fn unread_messages_do_not_retain_blank_lines() {
    case("blank-lines", 64, 100);
}

#[test]
fn unread_warnings_do_not_retain_long_names() {
    case("warnings", 64, 120);
}

#[test]
fn unread_responses_end_the_run_with_bounded_memory() {
    let output = case("responses", 200, 200);
    let ended = output.contains("ended: true");
    assert!(ended && output.contains("the CLI does not read stdin"), "{output}");
}

#[test]
fn long_task_ids_are_not_retained() {
    case("tasks", 64, 100);
}

#[test]
fn result_naming_a_million_messages_is_not_retained_per_turn() {
    let output = case("shared", 250, 250);
    assert!(output.contains("90 names"), "{output}");
}
