//! What works on every supported CLI, and what happens on the oldest one when a feature is missing.
//!
//! The suite runs on the oldest, a middle and the newest pinned version; `CLAUDE_E2E_VERSIONS` names
//! others, separated by commas, as `cargo xtask cli-versions` does.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "tests fail by panicking; not every test uses every shared helper"
)]

#[path = "../tools/calc.rs"]
mod calc;
#[path = "../sessions/helpers.rs"]
mod helpers;
#[path = "../kit/support.rs"]
mod support;

mod approvals;
mod cost;
mod mcp_servers;
mod missing_features;
mod simulated;
mod supported_features;
mod tool_inputs;
mod turns;

use std::future::Future;
use std::sync::OnceLock;

use claude_agent_testkit::mock_api::Script;
use tests_e2e::harness::Harness;
use tests_e2e::real_cli::{self, InstalledCli};

use crate::missing_features::on_minimum;
use crate::support::{cache_version, run};

/// Returns the CLIs that the suite runs on, oldest first.
fn versions() -> &'static [InstalledCli] {
    static CLIS: OnceLock<Vec<InstalledCli>> = OnceLock::new();
    CLIS.get_or_init(|| {
        let names = match std::env::var("CLAUDE_E2E_VERSIONS") {
            Ok(names) => names.split(',').map(str::to_owned).collect(),
            Err(_) => real_cli::pinned_versions().to_vec(),
        };
        let install = |name: &String| {
            let cli = real_cli::install_version(name).unwrap_or_else(|error| panic!("{error}"));
            cache_version(&cli);
            cli
        };
        names.iter().map(install).collect()
    })
}

/// Runs the same test on each of them.
fn on_each<F: Future<Output = ()>>(script: impl Fn() -> Script, play: impl Fn(Harness) -> F) {
    run(async {
        for cli in versions() {
            // Only shown when the test fails.
            println!("on claude {}", cli.version);
            play(Harness::real(script(), cli).await.unwrap()).await;
        }
    });
}
