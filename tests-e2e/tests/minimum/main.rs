//! What the oldest supported CLI can do, and what happens there to what it cannot do.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "in a test a panic is the way to fail; not all tests need all of what they share"
)]

#[path = "../tools/calc.rs"]
mod calc;
#[path = "../sessions/play.rs"]
mod play;
#[path = "../kit/support.rs"]
mod support;

mod lacking;
mod working;

use std::future::Future;
use std::sync::OnceLock;

use claude_agent_testkit::mock_api::Script;
use tests_e2e::real_cli::{self, InstalledCli};
use tests_e2e::stage::Stage;

use crate::support::{know_version, run};

/// The oldest supported CLI.
fn minimum() -> &'static InstalledCli {
    static CLI: OnceLock<InstalledCli> = OnceLock::new();
    CLI.get_or_init(|| {
        let cli = real_cli::install_minimum().unwrap_or_else(|error| panic!("{error}"));
        know_version(&cli);
        cli
    })
}

/// Plays on it.
fn on_minimum<F: Future<Output = ()>>(script: Script, play: impl FnOnce(Stage) -> F) {
    run(async { play(Stage::real(script, minimum()).await.unwrap()).await });
}
