//! Thousands of queries and sessions leak nothing: no descriptor, thread, child process, task or
//! memory. A separate process counts them.

use crate::support::{SIM, host};

#[test]
fn ten_thousand_queries_in_memory_leak_nothing() {
    host(&["queries", "10000"]);
}

#[test]
fn three_hundred_queries_with_processes_leak_nothing() {
    host(&["queries", "300", SIM]);
}

#[test]
fn ten_thousand_sessions_in_memory_leak_nothing() {
    host(&["sessions", "10000"]);
}

#[test]
fn three_hundred_sessions_with_processes_leak_nothing() {
    host(&["sessions", "300", SIM]);
}

/// The same as `cargo xtask soak`, but short.
#[test]
fn short_soak_leaks_nothing() {
    let output = host(&["soak", "4", SIM]);
    for word in ["sessions", "turns", "hooks", "permissions", "tools", "dropped", "killed"] {
        assert!(output.contains(word), "{output}");
    }
}
