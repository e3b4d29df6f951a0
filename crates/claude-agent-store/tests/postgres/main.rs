//! The store in a PostgreSQL database, on a real server that the tests start.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod fixture;
#[cfg(target_os = "linux")]
mod pooler;
#[cfg(target_os = "linux")]
mod records;
#[cfg(target_os = "linux")]
mod store;
#[cfg(target_os = "linux")]
#[path = "../support/mod.rs"]
mod support;

/// The server is started and killed with the means of Linux.
#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use libtest_mimic::Arguments;

    let arguments = Arguments::from_args();
    if tests_servers::postgres::is_skipped() {
        return ExitCode::SUCCESS;
    }
    let trials = || {
        let trials = store::trials().into_iter().chain(records::trials()).chain(faults::trials());
        trials.chain(pooler::trials()).collect()
    };
    if arguments.list {
        return libtest_mimic::run(&arguments, trials()).exit_code();
    }
    match fixture::start() {
        Ok(()) => {}
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials());
    fixture::stop();
    conclusion.exit_code()
}
