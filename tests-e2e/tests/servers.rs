//! Session stores on servers that fail, with hosts that are killed.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::Path;

use claude_agent_testkit::mock_api::Script;
use tests_e2e::harness::Harness;
use tests_e2e::prove::server_faults::{self, ServerKind};
use tests_e2e::prove::{self, Area, killed_hosts};
use tests_e2e::real_cli;
use tests_servers::{postgres, s3};

const HOST: &str = env!("CARGO_BIN_EXE_host");

/// Plays a tenth of the runs of `cargo xtask prove`.
fn play(kind: ServerKind, area: &Area) {
    let runs = area.repetitions / 10;
    let played = server_faults::play(kind, Path::new(HOST), runs, |_, _| {}).unwrap();
    // The runs are of no use if faults always fall between appends.
    let counts = [played.killed_servers, played.killed_hosts, played.stalls, played.found];
    assert!(counts.iter().all(|count| *count >= runs / 2) && played.failed > runs, "{played}");
}

#[test]
fn faults_of_postgres_and_hosts_lose_nothing_acknowledged() {
    if !postgres::is_skipped() {
        play(ServerKind::Postgres, &prove::POSTGRES);
    }
}

#[test]
fn faults_of_postgres_and_hosts_lose_no_acknowledged_change_of_a_record() {
    if !postgres::is_skipped() {
        play(ServerKind::PostgresRecords, &prove::RECORDS);
    }
}

#[test]
fn faults_of_s3_and_hosts_lose_nothing_acknowledged() {
    if !s3::is_skipped() {
        play(ServerKind::S3, &prove::S3);
    }
}

/// `cargo xtask prove killed-hosts-postgres` kills ten times as many.
#[test]
fn hosts_killed_on_postgres_lose_nothing_that_was_acknowledged() {
    if postgres::is_skipped() {
        return;
    }
    let cli = real_cli::install().unwrap();
    let server = postgres::Server::start().unwrap();
    let url = server.url_with_password(server.port());
    let rounds = killed_hosts::POSTGRES.repetitions / 10;
    let count = tokio::runtime::Runtime::new().unwrap().block_on(async {
        let harness = Harness::real(Script::new(), &cli).await.unwrap();
        killed_hosts::count(&harness, Path::new(HOST), &url, rounds, 7).await.unwrap()
    });
    assert!(count.acknowledged > 0);
}
