//! The store in S3-compatible storage, on a real server that the tests start.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests fail by panicking"
)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod compaction;
#[cfg(target_os = "linux")]
mod fake;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod fixture;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod store;

/// The server is started and killed with the means of Linux.
#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use libtest_mimic::Arguments;

    let arguments = Arguments::from_args();
    if tests_servers::s3::is_skipped() {
        return ExitCode::SUCCESS;
    }
    let trials = || {
        store::trials().into_iter().chain(faults::trials()).chain(compaction::trials()).collect()
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
