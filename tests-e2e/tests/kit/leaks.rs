//! Thousands of queries leave nothing behind: no descriptor, no thread, no child, no memory. A
//! process of its own counts.

use crate::support::{SIM, host};

#[test]
fn ten_thousand_queries_in_memory_leave_nothing() {
    host(&["leaks", "10000"]);
}

#[test]
fn three_hundred_queries_with_processes_leave_nothing() {
    host(&["leaks", "300", SIM]);
}
