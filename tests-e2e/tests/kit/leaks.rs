//! Thousands of queries leave nothing behind. A process of its own counts.

use std::process::Command;

use crate::support::{HOST, SIM};

fn assert_no_growth(arguments: &[&str]) {
    let output = Command::new(HOST).arg("leaks").args(arguments).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
}

#[test]
fn ten_thousand_queries_in_memory_leave_nothing() {
    assert_no_growth(&["10000"]);
}

#[test]
fn three_hundred_queries_with_processes_leave_nothing() {
    assert_no_growth(&["300", SIM]);
}
