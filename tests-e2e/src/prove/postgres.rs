//! Kills a PostgreSQL server in the middle of appends. The tests of `claude-agent-store` play a tenth of the runs.

use super::Area;

#[cfg(target_os = "linux")]
#[path = "../../../crates/claude-agent-store/tests/postgres/kills.rs"]
mod kills;
#[cfg(target_os = "linux")]
#[path = "../../../crates/claude-agent-store/tests/postgres/server.rs"]
#[allow(dead_code, reason = "some of it is only for the tests of the store")]
mod server;

/// The claim.
pub const AREA: Area = Area {
    name: "postgres",
    claim: "if PostgreSQL is killed during appends and started again, nothing acknowledged is lost and nothing \
            is stored twice",
    repetitions: 200,
};

/// Plays runs with the seeds from 0, and returns what happened.
///
/// # Errors
/// Returns the violation, or why the server cannot be started.
#[cfg(target_os = "linux")]
pub fn play(runs: usize) -> Result<String, String> {
    let mut server = server::Server::start()?;
    let mut total = kills::Played::default();
    for seed in 0..runs as u64 {
        total.add(&kills::play(&mut server, seed)?);
    }
    Ok(format!(
        "0 violations; {} kills, {} appends acknowledged, {} failed and repeated, of which {} had been stored",
        total.kills, total.acknowledged, total.repeated, total.found
    ))
}

/// The server is killed with the means of Linux.
///
/// # Errors
/// Returns an error on this platform.
#[cfg(not(target_os = "linux"))]
pub fn play(_runs: usize) -> Result<String, String> {
    Err("requires Linux".to_owned())
}
