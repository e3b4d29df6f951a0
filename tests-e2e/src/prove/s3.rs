//! Kills an S3 server and its hosts in the middle of appends. The tests of `claude-agent-store` play a tenth of the
//! runs.

use super::Area;

#[cfg(target_os = "linux")]
#[path = "../../../crates/claude-agent-store/tests/s3/kills.rs"]
mod kills;

/// The claim.
pub const AREA: Area = Area {
    name: "s3",
    claim: "if an S3 server is killed, the connections of a host are stalled or a host is killed during appends and \
            compactions, nothing acknowledged is lost and nothing is stored twice",
    repetitions: 200,
};

/// Runs as a host process, if this process was started as one by [`play`].
#[cfg(target_os = "linux")]
pub fn run_as_host() -> bool {
    kills::run_as_host()
}

/// Plays runs with the seeds from 0, and returns what happened.
///
/// # Errors
/// Returns the violation, or why the server cannot be started.
#[cfg(target_os = "linux")]
pub fn play(runs: usize) -> Result<String, String> {
    let mut server = tests_servers::s3::Server::start()?;
    let mut total = kills::Played::default();
    for seed in 0..runs as u64 {
        total.add(&kills::play(&mut server, seed)?);
    }
    Ok(format!(
        "0 violations; {} kills of the server, {} of a host, {} stalls, {} appends acknowledged, {} failed and \
         repeated, {} had been stored",
        total.servers, total.hosts, total.stalls, total.acknowledged, total.repeated, total.found
    ))
}

/// No process is started as a host.
#[cfg(not(target_os = "linux"))]
pub fn run_as_host() -> bool {
    false
}

/// The server is killed with the means of Linux.
///
/// # Errors
/// Returns an error on this platform.
#[cfg(not(target_os = "linux"))]
pub fn play(_runs: usize) -> Result<String, String> {
    Err("requires Linux".to_owned())
}
